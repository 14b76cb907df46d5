"""Invented product titles as a CSV file with the columns id, title and price.

    python generate.py FILE [--titles 1000000] [--seed 0]

No brand, model or price is real. About one title in a thousand is empty, as in real tables.
"""

import argparse
import csv
import random
from collections.abc import Iterator
from pathlib import Path

PROMOTIONS = ("", "", "", "【包邮】", "【官方正品】", "新品首发 ", "🔥爆款 ", "限时特价|")
PRODUCTS = (
    "保温杯", "双肩包", "蓝牙耳机", "电热水壶", "羽绒服", "运动鞋", "台灯", "防晒霜", "乌龙茶", "坚果礼盒",
    "机械键盘", "记忆枕", "空气炸锅", "儿童绘本", "瑜伽垫", "牛仔裤", "洗面奶", "充电宝", "行李箱", "无线鼠标",
)  # fmt: skip
QUALITIES = ("大容量", "轻便", "加厚", "静音", "防水", "便携", "学生款", "家用", "无糖", "复古", "ins风", "高颜值")
SIZES = ("500ml", "1.5L", "20寸", "XL码", "2盒装", "10000mAh", "30g*12袋", "87键", "男女同款", "礼盒装")
MODELS = ("星河S1", "云雀X2", "蓝鲸Pro 5", "小鹿杯")
EMPTY_SHARE, MODEL_SHARE = 0.001, 0.1


def brands() -> list[str]:
    """The organisations of the dictionary."""
    lines = Path(__file__).with_name("brands.tsv").read_text("utf-8").splitlines()
    return [word for word, label in (line.split("\t") for line in lines) if label == "ORG"]


def rows(n: int, draw: random.Random) -> Iterator[tuple[int, str, str]]:
    makers = brands()
    for i in range(1, n + 1):
        thing = draw.choice(MODELS) if draw.random() < MODEL_SHARE else draw.choice(PRODUCTS)
        parts = (draw.choice(PROMOTIONS), draw.choice(makers), draw.choice(QUALITIES), thing, draw.choice(SIZES))
        yield i, "" if draw.random() < EMPTY_SHARE else "".join(parts), f"{draw.randint(900, 99900) / 100:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--titles", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with options.file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("id", "title", "price"))
        writer.writerows(rows(options.titles, random.Random(options.seed)))
    print(f"{options.titles:,} invented titles, {options.file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

"""Train a model with your own labels on your own corpus: here forty invented food orders.

Run: python examples/train_your_own.py
"""

import random
import tempfile
from pathlib import Path

import hanlattice
from hanlattice import Document, Entity, corpus

DISHES = ["宫保鸡丁", "麻婆豆腐", "担担面", "回锅肉", "小笼包", "酸辣粉"]
PLACES = ["老城南馆子", "江边小厨", "巷口面馆", "山上人家"]
PATTERNS = ["我要一份{dish}。", "{place}的{dish}最好吃", "在{place}点了{dish}和米饭", "今天去{place}吗?"]


def order(draw: random.Random) -> Document:
    """One random sentence with its entities."""
    text, entities = "", []
    for piece in draw.choice(PATTERNS).replace("{", "}").split("}"):
        names, label = {"dish": (DISHES, "DISH"), "place": (PLACES, "SHOP")}.get(piece, (None, ""))
        word = piece if names is None else draw.choice(names)
        if names is not None:
            entities.append(Entity(word, label, len(text), len(text) + len(word)))
        text += word
    return Document(text, tuple(entities))


def main() -> None:
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        corpus.write((order(draw) for _ in range(40)), folder / "train.jsonl", "jsonl")
        corpus.write((order(draw) for _ in range(10)), folder / "dev.bmes", "bmes")
        (folder / "words.txt").write_text("\n".join([*DISHES, *PLACES]), encoding="utf-8")

        run = hanlattice.train(
            train=str(folder / "train.jsonl"),  # formats are detected
            dev=str(folder / "dev.bmes"),
            output=folder / "orders",
            settings={
                "lexicon": {"files": [str(folder / "words.txt")]},
                "vectors": {"bigrams": 5000, "words": 5000},  # only the most frequent ones: a small model
                "encoder": {"d_model": 64, "d_feed_forward": 128},
                "training": {"epochs": 12, "optimiser": "adamw", "learning_rate": 0.003},
            },
        )
        print(run.dev)

        ner = hanlattice.load(run.folder)
        for entity in ner("在巷口面馆点了麻婆豆腐").entities:
            print(entity.text, entity.label, entity.start, entity.end, f"{entity.score:.2f}")


if __name__ == "__main__":
    main()

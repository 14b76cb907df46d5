"""Invented clinical notes in doccano's export format: some to train on, and others to test on.

    python generate.py FOLDER [--sentences 200] [--seed 0]

Writes ``annotated.jsonl`` and ``test.jsonl``. The notes come from the templates below and from the words of
``dictionary.tsv``; no note is about a person. The labels are Chinese, as annotators choose them. The test has
templates of its own. About half of its words do not occur in ``annotated.jsonl``, and a few are not in the
dictionary either.
"""

import argparse
import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

LABELS = {"DISEASE": "疾病", "SYMPTOM": "症状", "DRUG": "药品", "EXAM": "检查"}
TRAIN = (
    "患者因{S}{n}天就诊。",
    "主诉：{S}、{S}{n}天，无{S}。",
    "{n}天前无明显诱因出现{S}，伴{S}。",
    "既往有{D}病史{n}年，否认{D}。",
    "诊断考虑{D}，予{M}口服，每日{n}次。",
    "初步诊断：1.{D} 2.{D}",
    "建议完善{E}、{E}检查。",
    "{E}未见明显异常，排除{D}。",
    "长期服用{M}，血压控制尚可。",
    "停用{M}，改为{M}，{n}周后复查{E}。",
    "服药后{S}较前好转，仍有{S}。",
    "家属诉患者夜间{S}明显，曾自服{M}，效果不佳。",
    "复诊，{S}缓解，继续{M}治疗。",
    "对{M}过敏，表现为{S}。",
    "{D}合并{D}，嘱低盐低脂饮食。",
    "查体：神志清，精神可，双肺呼吸音清。",
    "患者要求开具病假条{n}天。",
    "嘱多饮水，注意休息，不适随诊。",
    "{n}年前行阑尾切除术，术后恢复良好。",
    "饮食、睡眠可，大小便正常。",
)
TEST = (
    "近{n}日{S}加重，夜间尤甚，来院查{E}。",
    "母亲患{D}，本人无{D}史。",
    "{M}每次{n}片，饭后服；若出现{S}请停药。",
    "{E}提示{D}可能，转专科进一步诊治。",
    "否认{S}、{S}，{E}正常。",
    "出院带药：{M}、{M}。",
    "随访{n}个月，{D}控制稳定。",
    "接种疫苗后留观{n}分钟，无不适。",
)
# In neither the dictionary nor the training notes.
UNSEEN = {
    "DISEASE": ("腱鞘炎", "足底筋膜炎", "干眼症"),
    "SYMPTOM": ("声音嘶哑", "眼睑跳动", "夜间盗汗"),
    "DRUG": ("舒愈宁颗粒", "清澜滴眼液", "固安康片"),
    "EXAM": ("眼底照相", "足底压力测定"),
}
SLOTS = {"D": "DISEASE", "S": "SYMPTOM", "M": "DRUG", "E": "EXAM"}
TEST_SHARE = 0.3  # notes of the test per note to train on

Words = Mapping[str, Sequence[str]]


def dictionary(path: Path) -> dict[str, list[str]]:
    """The words of each label."""
    words: dict[str, list[str]] = {label: [] for label in LABELS}
    for line in path.read_text("utf-8").splitlines():
        word, label = line.split("\t")
        words[label].append(word)
    return words


def note(template: str, words: Words, draw: random.Random) -> tuple[str, list[tuple[int, int, str]]]:
    """A note and its entities; no word occurs twice in a note."""
    text, used = "", set[str]()
    entities: list[tuple[int, int, str]] = []
    for part in re.split(r"({\w})", template):
        label = SLOTS.get(part.strip("{}")) if part.startswith("{") else None
        if label is not None:
            word = draw.choice([word for word in words[label] if word not in used])
            used.add(word)
            entities.append((len(text), len(text) + len(word), LABELS[label]))
        else:
            word = str(draw.randint(2, 9)) if part == "{n}" else part
        text += word
    return text, entities


def notes(n: int, templates: Sequence[str], words: Words, draw: random.Random) -> list[dict[str, object]]:
    """``n`` different notes, as rows of doccano's export."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    misses = 0
    while len(found) < n and misses < 10_000:
        text, entities = note(draw.choice(templates), words, draw)
        misses += text in found
        found[text] = entities
    rows = enumerate(found.items(), 1)
    return [{"id": i, "text": text, "label": entities, "Comments": []} for i, (text, entities) in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    known = dictionary(Path(__file__).with_name("dictionary.tsv"))
    seen = {label: draw.sample(words, len(words) // 2) for label, words in known.items()}
    others = {label: [w for w in words if w not in seen[label]] for label, words in known.items()}
    test = {label: [*seen[label][: len(others[label])], *others[label], *UNSEEN[label]] for label in known}
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, n, templates, words in (
        ("annotated", options.sentences, TRAIN, seen),
        ("test", int(TEST_SHARE * options.sentences), TEST, test),
    ):
        rows = notes(n, templates, words, draw)
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (options.folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
        print(f"{name}.jsonl: {len(rows)} invented notes")


if __name__ == "__main__":
    main()

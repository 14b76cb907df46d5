"""Invented sentences in which only words tell where a name ends, in the inline format ``[text]{LABEL}``.

    python generate.py FOLDER [--sentences 400] [--seed 0]

Writes ``train.txt``, ``dev.txt`` and ``test.txt``, and the lexicon ``words.txt``. A name is two to four random
characters, and names stand side by side. The lexicon has all names, and for each place where two names meet a word
that crosses it. Most names of the test do not occur in the training sentences.
"""

import argparse
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

CHARACTERS = (
    "安柏长川春东方峰谷广海和河恒华嘉建江金静康兰蓝岭流龙明宁平青泉仁瑞山石双松天通万望文溪夏向新星雪阳云泽正竹"
)
LENGTHS = {"PER": (2, 3), "LOC": (2, 3), "ORG": (3, 4)}
TEMPLATES = (
    "昨天{LOC}{ORG}开工了",
    "{PER}从{LOC}回来了",
    "{ORG}{PER}说不清楚",
    "他们在{LOC}{ORG}等{PER}",
    "{LOC}{PER}今年退休",
    "听说{ORG}要搬到{LOC}",
)
SHARES = {"train": 1.0, "dev": 0.3, "test": 0.75}  # sentences per training sentence

Sentence = Sequence[tuple[str, str]]  # parts of a text, each with its label, empty for text between names


def sentence(draw: random.Random) -> Sentence:
    parts = draw.choice(TEMPLATES).replace("{", "\n{").replace("}", "}\n").split("\n")
    return [_part(part, draw) for part in parts if part]


def _part(part: str, draw: random.Random) -> tuple[str, str]:
    label = part.strip("{}") if part.startswith("{") else ""
    return ("".join(draw.sample(CHARACTERS, draw.choice(LENGTHS[label]))), label) if label else (part, "")


def words_of(found: Sentence) -> set[str]:
    """The names of a sentence, and words that cross the border of two names."""
    names = {text for text, label in found if label}
    pairs = pairwise(found)
    return names | {a[-1] + b[:1] for (a, first), (b, second) in pairs if first and second}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw, words = random.Random(options.seed), set[str]()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, share in SHARES.items():
        sentences = [sentence(draw) for _ in range(int(share * options.sentences))]
        words = words.union(*map(words_of, sentences))
        lines = ("".join(f"[{text}]{{{label}}}" if label else text for text, label in found) for found in sentences)
        (options.folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (options.folder / "words.txt").write_text("".join(f"{word}\n" for word in sorted(words)), "utf-8")
    print(f"{options.sentences} invented sentences to train on, {len(words)} words in the lexicon")


if __name__ == "__main__":
    main()

"""The effect of words that a user adds to the lexicon: invented names, each in its own sentence.

    python benchmarks/invented_names.py [FILE] [--model MODEL] [--failures]

FILE has one line ``{"text", "word", "label"}`` for each name; the default is a file of 300 names in this folder. A
name is right if the model predicts exactly its span with its label. The benchmark counts right names three times:
with the lexicon unchanged, after the word is added without a label, and after it is added with its label. It also
counts ordinary words of another file in this folder that become entities after they are added without a label.
"""

import argparse
import json
from pathlib import Path

import hanlattice
from hanlattice.pipeline import NER

NAMES = Path(__file__).with_suffix(".jsonl")
ORDINARY = NAMES.with_name("ordinary_words.jsonl")


def predicted(ner: NER, text: str, word: str) -> str | None:
    """The label of the first occurrence of ``word`` in ``text``; None if the model predicts no such entity."""
    start = text.index(word)
    return next((e.label for e in ner(text).entities if (e.start, e.end) == (start, start + len(word))), None)


def with_word(ner: NER, row: dict[str, str], label: str | None) -> str | None:
    """The same after the word is added to the lexicon, with ``label`` or without one."""
    lexicon = ner.lexicon.copy()
    lexicon.add(row["word"], label)
    with ner.using(lexicon=lexicon):
        return predicted(ner, row["text"], row["word"])


def becomes_an_entity(ner: NER, text: str, word: str) -> bool:
    """Whether adding a word without a label makes the model predict another entity in a text."""
    lexicon, before = ner.lexicon.copy(), {e.span for e in ner(text).entities}
    lexicon.add(word)
    with ner.using(lexicon=lexicon):
        return any(e.span not in before for e in ner(text).entities)


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=NAMES)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument(
        "--failures", action="store_true", help="print names that are lost without a label, or wrong with one"
    )
    arguments = parser.parse_args()
    lines, ordinary = read(arguments.file), read(ORDINARY)
    rows = [{"text": r["text"], "word": r.get("word") or r["entity"], "label": r["label"]} for r in lines]
    ner = hanlattice.load(arguments.model)
    before = [predicted(ner, row["text"], row["word"]) == row["label"] for row in rows]
    spans = [with_word(ner, row, None) for row in rows]
    plain = [label == row["label"] for label, row in zip(spans, rows, strict=True)]
    labelled = [with_word(ner, row, row["label"]) == row["label"] for row in rows]
    misses = len(rows) - sum(before)
    lost = sum(b and not p for b, p in zip(before, plain, strict=True))
    won = sum(p and not b for b, p in zip(before, plain, strict=True))
    others = sum(label is not None and not p for label, p in zip(spans, plain, strict=True))
    print(f"{len(rows)} names: {sum(before)} right with the lexicon unchanged")
    print(f"added without a label: {sum(plain)} right; {lost} lost, {won} of {misses} missed names gained")
    print(f"added without a label: {others} more are entities with another label")
    print(f"added with their label: {sum(labelled)} right, {sum(labelled) / len(rows):.1%}")
    wrong = sum(becomes_an_entity(ner, **row) for row in ordinary)
    print(f"ordinary words added without a label: {wrong} of {len(ordinary)} become entities")
    if arguments.failures:
        for row, b, p, q in zip(rows, before, plain, labelled, strict=True):
            if (b and not p) or not q:
                print(f"{'lost' if b and not p else ''}{'' if q else ' wrong with its label'}: {row}")


if __name__ == "__main__":
    main()

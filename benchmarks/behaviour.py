"""Pass rates of a model on the behaviour suite: minimal test cases, one file per capability.

    python benchmarks/behaviour.py [--model MODEL] [--engine native] [--failures]

A case passes if the model predicts exactly its ``entities``, in order. Entities of ``optional`` may be predicted as
well. Where two labels are right, a case names both (``ORG|PRODUCT``). ``add`` lists words that are added to the
lexicon before the text is read. The cases are in tests/behaviour. They were written before the model was trained.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hanlattice
from hanlattice.pipeline import NER

CASES = Path(__file__).parent.parent / "tests" / "behaviour"


@dataclass(frozen=True)
class Case:
    """One text with its expected entities as (text, label), and with words to add as (word, label or None)."""

    capability: str
    id: str
    text: str
    entities: list[tuple[str, str]]
    optional: list[tuple[str, str]]
    add: list[tuple[str, str | None]]

    @classmethod
    def of(cls, capability: str, row: dict[str, Any]) -> "Case":
        """The case of one line of a file."""
        lists = ([(surface, label) for surface, label in row.get(k) or []] for k in ("entities", "optional", "add"))
        return cls(capability, row["id"], row["text"], *lists)

    def passes(self, found: list[tuple[str, str]]) -> bool:
        """Whether the predicted entities are right."""
        expected, optional = list(self.entities), list(self.optional)
        for entity in found:
            if expected and _equal(entity, expected[0]):
                expected.pop(0)
                continue
            match = next((o for o in optional if _equal(entity, o)), None)
            if match is None:
                return False
            optional.remove(match)
        return not expected


def _equal(found: tuple[str, str], expected: tuple[str, str]) -> bool:
    """Whether the texts are equal and the label is one of the expected labels."""
    return found[0] == expected[0] and found[1] in expected[1].split("|")


def cases(folder: Path = CASES) -> Iterator[Case]:
    """All cases, in order of capability."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.strip():
                yield Case.of(path.stem, json.loads(line))


def found_in(ner: NER, case: Case) -> list[tuple[str, str]]:
    """The entities that the model predicts, with the words of the case added to the lexicon."""
    lexicon = ner.lexicon.copy()
    lexicon.update((word, label, None) for word, label in case.add)
    with ner.using(lexicon=lexicon):
        return [(e.text, e.label) for e in ner(case.text).entities]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--failures", action="store_true", help="print every case that fails")
    arguments = parser.parse_args()
    ner = hanlattice.load(arguments.model, engine=arguments.engine)
    passed: dict[str, list[bool]] = {}
    for case in cases():
        found = found_in(ner, case)
        ok = case.passes(found)
        passed.setdefault(case.capability, []).append(ok)
        if arguments.failures and not ok:
            print(f"{case.id}: {case.text!r}: found {found}, expected {case.entities}")
    for capability, results in passed.items():
        print(f"{capability:14} {sum(results):3} of {len(results):3}  {sum(results) / len(results):6.1%}")
    every = [ok for results in passed.values() for ok in results]
    print(f"{'all':14} {sum(every):3} of {len(every):3}  {sum(every) / len(every):6.1%}")


if __name__ == "__main__":
    main()

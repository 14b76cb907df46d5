"""What to annotate next: uncertainty, the greedy choice against its definition, and the command."""

import json
from pathlib import Path
from random import Random

import pytest

import hanlattice
from hanlattice.cli import main
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.selection import (
    CANDIDATES,
    LEAST_CANDIDATES,
    Selected,
    _bigrams,
    _chosen,
    read_pool,
    select,
    uncertainty,
)

TEXTS = [
    "李明在北京工作",
    "今天天气很好",
    "雷军在北京发布小米14",
    "李明去上海",
    "雷军在北京发布小米14",
]


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


def entity(start: int, score: float, label: str = "PER") -> Entity:
    return Entity("李明", label, start, start + 2, score)


@pytest.mark.parametrize("name", ["a.txt", "a.TXT", "a.text"])
def test_files_of_texts_are_known_by_their_suffix(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("李明在北京\n今天天气很好\n", encoding="utf-8")
    assert [document.text for document in read_pool([tmp_path / name])] == ["李明在北京", "今天天气很好"]


def test_uncertainty_is_doubt_and_disagreement() -> None:
    assert uncertainty([], [], 9) == 0
    assert uncertainty([entity(0, 0.9)], [entity(0, 0.7)], 4) == pytest.approx((1 - 0.8) / 2)
    assert uncertainty([entity(0, 0.9)], [], 4) == pytest.approx(0.9 / 2)
    assert uncertainty([entity(0, 0.9)], [entity(0, 0.6, "ORG")], 1) == pytest.approx(1.5)
    assert uncertainty([entity(0, 1.0)], [entity(0, 1.0)], 4) == 0


def test_choice_is_greedy() -> None:
    """The heap of bounds chooses what computing every gain again would choose."""
    draw = Random(0)
    candidates = [
        Selected(
            Document("".join(draw.choices("甲乙丙丁戊", k=draw.randint(1, 12)))), draw.choice([0.0, 0.25, 0.5, 1.0])
        )
        for _ in range(60)
    ]
    covered: set[str] = set()
    left, expected = list(range(60)), []

    def gain(i: int) -> float:
        bigrams = _bigrams(candidates[i].document.text)
        return (candidates[i].uncertainty + 1e-6) * (len(bigrams - covered) / len(bigrams))

    for _ in range(25):
        best = max(left, key=lambda i: (gain(i), -i))
        left.remove(best)
        covered |= _bigrams(candidates[best].document.text)
        expected.append(best)
    found = [next(i for i, c in enumerate(candidates) if c is s) for s in _chosen(candidates, 25)]
    assert found == expected


def test_texts_that_are_alike_are_not_both_first() -> None:
    pool = ["听说纪老六把店开到了落雁坡", "听说纪老六把店开到了落雁坡。", "某公司明天开会"]
    candidates = [Selected(Document(text), score) for text, score in zip(pool, (1.0, 0.99, 0.5), strict=True)]
    assert [s.document.text for s in _chosen(candidates, 3)] == [pool[0], pool[2], pool[1]]


def test_select_returns_each_text_once_with_its_entities(ner: hanlattice.NER) -> None:
    pool = [Document(text, id=str(i)) for i, text in enumerate([*TEXTS, " "])]
    chosen = select(ner, pool, 10)
    assert sorted(s.document.id or "" for s in chosen) == ["0", "1", "2", "3"]
    assert chosen[0].uncertainty == max(s.uncertainty for s in chosen) > 0
    assert chosen[-1].document.text == TEXTS[1]
    (found,) = [s.document for s in chosen if s.document.id == "0"]
    assert found.entities == ner(TEXTS[0]).entities
    for n in (1, 2):
        assert [s.document for s in select(ner, pool, n)] == [s.document for s in chosen[:n]]
    with pytest.raises(HanlatticeError, match="at least 1, not 0"):
        select(ner, pool, 0)
    with pytest.raises(DataError, match="no text to choose from"):
        select(ner, [], 5)


def test_only_the_most_uncertain_texts_are_candidates(ner: hanlattice.NER, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equally uncertain ones the first; of the others those that the model doubts."""
    pool = [Document(text, id=str(i)) for i, text in enumerate(TEXTS[:4])]
    order = sorted(select(ner, pool, 4), key=lambda s: (-s.uncertainty, int(s.document.id or 0)))
    for factor, least, most in ((1, 2, 2), (2, 1, 2), (1, 3, 3)):
        monkeypatch.setattr("hanlattice.selection.CANDIDATES", factor)
        monkeypatch.setattr("hanlattice.selection.LEAST_CANDIDATES", least)
        found = {s.document.id for s in select(ner, pool, 1)}
        assert found <= {s.document.id for s in order[:most]}
    monkeypatch.setattr("hanlattice.selection.CANDIDATES", 1)
    monkeypatch.setattr("hanlattice.selection.LEAST_CANDIDATES", 2)
    same = [Document("今天", id="0"), Document("明天", id="1"), Document("后天", id="2")]
    monkeypatch.setattr("hanlattice.selection.uncertainty", lambda *_: 0.5)
    assert {s.document.id for s in select(ner, same, 2)} == {"0", "1"}


def test_the_numbers_of_candidates() -> None:
    assert (CANDIDATES, LEAST_CANDIDATES) == (20, 1000), "as the documentation says"


def test_an_entity_without_a_score_is_certain() -> None:
    certain = Entity("李明", "PER", 0, 2)
    assert uncertainty([certain], [certain], 4) == 0
    assert uncertainty([certain], [], 4) == pytest.approx(0.5)


def test_command_writes_rows_to_correct(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pool.txt").write_text("\n".join([*TEXTS, ""]), encoding="utf-8")
    output = tmp_path / "next.jsonl"
    with pytest.raises(SystemExit) as stop:
        main(["select", str(tmp_path / "pool.txt"), "--output", str(output), "--n", "9"])
    assert stop.value.code in (0, None)
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert rows[0]["uncertainty"] == max(row["uncertainty"] for row in rows) > 0
    assert len(rows) == 4
    assert all(row["uncertainty"] >= 0 for row in rows)
    assert "wrote 4 texts to" in capsys.readouterr().err

"""Entities in several pieces from a corpus to a trained model and back to files, on the text as given."""

import itertools
from pathlib import Path
from typing import Any

import pytest

import tiny
from hanlattice import corpus
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.evaluation.scores import Recall
from hanlattice.pipeline import NER
from hanlattice.spans import Span
from hanlattice.training import Run, Silent, evaluate, train
from hanlattice.training.prepare import Prepared, prepare

PARTS = ["上肢", "下肢", "左手", "右脚", "头部", "腰"]
COMPLAINTS = ["疼痛", "麻木"]


def document(first: str, second: str, complaint: str) -> Document:
    """``first`` and ``second`` share the complaint, which stands behind the second alone."""
    text = f"他{first}和{second}{complaint}。"
    end = len(text) - 1
    begin = end - len(complaint)
    pieces = ((1, 1 + len(first)), (begin, end))
    return Document(
        text,
        (
            Entity(text[1:end], "SYM", 1, end, fragments=pieces),
            Entity(second + complaint, "SYM", begin - len(second), end),
        ),
    )


def documents() -> list[Document]:
    pairs = itertools.permutations(PARTS, 2)
    return [document(*pair, COMPLAINTS[i % 2]) for i, pair in enumerate(pairs)]


def config(folder: Path, decoder: dict[str, Any]) -> Config:
    corpus.write(documents(), folder / "corpus.jsonl", "jsonl")
    settings = tiny.settings(epochs=25, learning_rate=0.03)
    settings["data"] = {name: str(folder / "corpus.jsonl") for name in ("train", "dev", "test")}
    settings["encoder"] = {"name": "bilstm", "d_hidden": 24, "output_dropout": 0.0}
    return Config().with_settings(settings | {"decoder": decoder})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("pieces")
    grid = {
        "name": "word_pairs", "channels": 16, "d_hidden": 24, "d_biaffine": 12, "dropout": 0.0,
        "output_dropout": 0.0, "width": 32,
    }  # fmt: skip
    return train(config(folder, grid), folder / "run")


@pytest.fixture(scope="module")
def ner(run: Run) -> NER:
    from hanlattice.model.weights import load_model

    return load_model(run.folder)


def pieces(document: Document) -> list[tuple[str, ...]]:
    for entity in document.entities:
        assert document.text[entity.start : entity.end] == entity.text
        assert entity.parts == tuple(document.text[start:end] for start, end in entity.fragments)
        assert entity.score is not None
        assert 0 <= entity.score <= 1
    return [entity.parts for entity in document.entities]


FOUND = [("上肢", "疼痛"), ("下肢疼痛",)]


def test_it_is_learnt_and_scored(run: Run, ner: NER) -> None:
    assert run.test is not None
    assert run.test.micro.f1 > 0.9
    assert run.test.forms["discontinuous"].gold == run.test.forms["nested"].gold / 2 == len(documents())
    assert run.test.forms["discontinuous"].recall > 0.9
    assert "discontinuous" in (run.folder / "README.md").read_text(encoding="utf-8")
    assert pieces(ner("他上肢和下肢疼痛。")) == FOUND


@pytest.mark.parametrize("before", ["", "\n", "㍿", "😀", "e\u0301"])
def test_fragments_lie_in_the_text_as_given(ner: NER, before: str) -> None:
    """What stands before is read as more, fewer or other characters, and none of it is of an entity here."""
    text = f"{before}。他上肢和下肢疼痛。"
    found = ner(text)
    assert pieces(found)[-2:] == FOUND
    shift = len(before) + 1
    assert found.entities[-2].fragments == ((1 + shift, 3 + shift), (6 + shift, 8 + shift))


def test_windows_of_a_long_text_are_put_together(ner: NER) -> None:
    before = "今天天气很好。" * 9  # a window holds these alone
    found = ner(f"{before}他上肢和下肢疼痛。")
    assert pieces(found)[-2:] == FOUND
    assert found.entities[-2].fragments == ((len(before) + 1, len(before) + 3), (len(before) + 6, len(before) + 8))


def test_rules_of_a_call(ner: NER) -> None:
    text = "他上肢和下肢疼痛。"
    with ner.using(block={"上肢疼痛": None}):
        assert pieces(ner(text)) == FOUND[1:]
    with ner.using(block={"上肢和下肢疼痛": None}):
        assert pieces(ner(text)) == FOUND
    with ner.using(threshold=1.0):
        assert pieces(ner(text)) == []


def test_what_is_found_is_written_and_read_again(ner: NER, tmp_path: Path) -> None:
    found = ner("他上肢和下肢疼痛。")
    corpus.write([found], tmp_path / "a.jsonl", "jsonl")
    (again,) = corpus.read(tmp_path / "a.jsonl")
    assert again.spans == found.spans
    corpus.write([found], tmp_path / "a", "brat")
    (again,) = corpus.read(tmp_path / "a")
    assert again.spans == found.spans
    lines = (tmp_path / "a" / "000001.ann").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "T1\tSYM 1 3;6 8\t上肢 疼痛"


class Listener(Silent):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, message: str) -> None:
        self.heard.append(message)


class TestADecoderOfWholeEntities:
    """It learns the other entities as if these were not marked, and says so."""

    def prepared(self, folder: Path, decoder: dict[str, Any]) -> tuple[Prepared, str]:
        listener = Listener()
        return prepare(config(folder, decoder), "cpu", listener), "\n".join(listener.heard)

    def test_it_counts_and_names_what_is_out_of_reach(self, tmp_path: Path) -> None:
        _, heard = self.prepared(tmp_path, {"name": "global_pointer", "d_head": 8})
        assert f"{len(documents())} entities that this tagger can never find" in heard
        assert f"this tagger can never find {tmp_path}/corpus.jsonl:1: SYM '上肢和下肢疼痛'" in heard

    def test_its_loss_is_that_without_them(self, tmp_path: Path) -> None:
        """Else a table would learn the whole stretch, and a CRF meet entities that overlap."""
        from hanlattice.inputs.batch import collate

        for decoder in ({"name": "global_pointer", "d_head": 8}, {"name": "crf", "scheme": "BMES"}):
            run, _ = self.prepared(tmp_path, decoder)
            tagger = run.ner.tagger.eval()
            batch = collate([e.encoded for e in run.tasks[0].examples[:4]])
            gold = [e.spans for e in run.tasks[0].examples[:4]]
            whole = [[span for span in spans if not span.gaps] for spans in gold]
            assert whole != [list(spans) for spans in gold]
            assert tagger.loss(batch, gold).item() == tagger.loss(batch, whole).item()

    def test_what_it_misses_is_scored_as_missed(self, ner: NER) -> None:
        whole = [Document(d.text, (Entity.of(d.text, Span(1, len(d.text) - 1, "SYM")),)) for d in documents()]
        assert evaluate(ner, whole).micro.correct == 0
        assert evaluate(ner, documents()).forms["nested"] == Recall(60, evaluate(ner, documents()).micro.correct)


def test_unpunctuated_text_keeps_the_pieces() -> None:
    from hanlattice.training.examples import unpunctuated

    text = "他上肢、下肢，都疼痛。"
    (bare,) = unpunctuated([Document(text, (Entity(text[1:10], "SYM", 1, 10, fragments=((1, 3), (8, 10))),))])
    assert bare.text == "他上肢下肢都疼痛"
    assert bare.entities[0].parts == ("上肢", "疼痛")

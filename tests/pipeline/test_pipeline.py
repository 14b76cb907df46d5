"""The pipeline: offsets on any text, streams, edits of one call, the live lexicon."""

import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import tiny
from hanlattice.document import Document
from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Lexicon
from hanlattice.patterns import Pattern, Patterns
from hanlattice.pipeline import LOOK_AHEAD, NER

SENTENCE = "李明在北京工作。"
AWKWARD = {
    "plain": SENTENCE,
    "empty": "",
    "one character": "李",
    "spaces": "  李明 在 北京  工作。 ",
    "line breaks": "李明\n在\r\n北京\t工作。\n",
    "ideographic space": "\u3000李明\u3000在北京\u3000",
    "blank": " \t\n\u3000 ",
    "Latin": "Li Ming在Beijing的IBM工作, 李明",
    "digits": "2024年,李明在北京1号２号③号工作。",
    "full width": "ＡＢＣ李明在北京，１２３",
    "combining marks": "e\u0301李明\u0301在北\u0300京 n\u0303",
    "composes to fewer": "각李明가각",
    "one to many": "㍿李明㈱在㎏北京ﷺ",
    "emoji": "😀李明👨‍👩‍👧在🇨🇳北京👍🏽",
    "zero width": "李\u200b明在\ufeff北京\u200d",
    "rare planes": "𠮷野家李明在𪚥北京",
    "NUL and controls": "李明\x00在\x01北京\x7f",
    "separators": "李明\u2028在\u2029北京\x85",
}


@pytest.fixture(scope="module")
def ner() -> NER:
    return tiny.ner()


def spans(document: Document) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in document.entities]


def exact(document: Document, text: str) -> None:
    assert document.text == text
    for entity in document.entities:
        assert 0 <= entity.start < entity.end <= len(text)
        assert text[entity.start : entity.end] == entity.text
        assert entity.score is not None
        assert 0 <= entity.score <= 1
    ends = [0, *(entity.end for entity in document.entities)]
    assert all(entity.start >= end for entity, end in zip(document.entities, ends, strict=False))


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_offsets_are_those_of_the_text_as_given(ner: NER, text: str) -> None:
    exact(ner(text), text)


def test_it_finds_what_it_learnt(ner: NER) -> None:
    assert spans(ner(SENTENCE)) == [("李明", "PER"), ("北京", "LOC")]
    found = [ner(document.text).spans for document in tiny.documents()]
    assert found == [document.spans for document in tiny.documents()]


@pytest.mark.parametrize("before", ["①②③", "\u3000\n", "㍿", "e\u0301", "😀👍🏽"])
def test_what_stands_before_moves_entities_and_nothing_else(ner: NER, before: str) -> None:
    """A gap of foreign characters and a full stop leave the sentence as it was, but for its place."""
    text = before + "。" + SENTENCE
    found = ner(text)
    exact(found, text)
    assert ("北京", "LOC") in spans(found)


def test_a_full_width_text_is_read_as_its_half_width_one() -> None:
    ner = tiny.ner()
    half, full = "IBM在北京,李明去了", "ＩＢＭ在北京，李明去了"
    pairs = [(e.start, e.end, e.label) for e in ner(half).entities]
    assert pairs
    assert [(e.start, e.end, e.label) for e in ner(full).entities] == pairs


def test_a_long_text_without_any_pause(ner: NER) -> None:
    text = "李明在北京工作" * 28_572
    assert len(text) > 200_000
    found = ner(text)
    exact(found, text)
    assert found.entities[-1].end > len(text) - 7
    ends = [entity.end for entity in found.entities]
    assert max(b - a for a, b in pairwise(ends)) < 64, "a stretch of the text was not read"


def test_sentences_of_a_long_text_are_read_as_alone(ner: NER) -> None:
    text = SENTENCE * 2_000
    found = ner(text)
    alone = ner(SENTENCE)
    assert len(found.entities) == 2_000 * len(alone.entities)
    assert [(e.start % 8, e.end % 8, e.label) for e in found.entities[:2]] == [
        (e.start, e.end, e.label) for e in alone.entities
    ]


def test_a_batch_reads_as_one_by_one(ner: NER) -> None:
    texts = [*AWKWARD.values(), *(document.text for document in tiny.documents())]
    together = list(ner.pipe(texts, batch_size=7))
    for text, document in zip(texts, together, strict=True):
        alone = ner(text)
        assert document.spans == alone.spans
        scores = [e.score for e in alone.entities]
        assert [e.score for e in document.entities] == pytest.approx(scores, abs=1e-5)


def test_pipe_keeps_order_and_what_comes_along(ner: NER) -> None:
    texts = [SENTENCE[:n] for n in (8, 0, 3, 5, 1)] * 20
    assert [d.text for d in ner.pipe(texts, batch_size=3)] == texts
    pairs = list(ner.pipe(((text, i) for i, text in enumerate(texts)), as_tuples=True, batch_size=3))
    assert [(d.text, i) for d, i in pairs] == [(text, i) for i, text in enumerate(texts)]
    assert [d.text for d in ner(texts)] == texts
    assert list(ner.pipe([])) == []


def test_pipe_reads_an_endless_stream_a_few_batches_ahead(ner: NER) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield SENTENCE

    stream = ner.pipe(endless(), batch_size=2)
    assert next(stream).text == SENTENCE
    assert taken == 2 * LOOK_AHEAD == 32
    pairs = ner.pipe(((text, i) for i, text in enumerate(endless())), as_tuples=True, batch_size=3)
    assert next(pairs)[1] == 0
    assert taken == (2 + 3) * LOOK_AHEAD


def test_to_dict(ner: NER) -> None:
    row = ner(SENTENCE).to_dict()
    assert row["text"] == SENTENCE
    assert [set(entity) for entity in row["entities"]] == [{"start", "end", "text", "label", "score"}] * 2


def test_the_lattice_holds_every_word_on_the_offsets_of_the_text(ner: NER) -> None:
    text = "昨天　李明去了长江大桥局"
    lattice = ner(text).lattice
    assert lattice is not None
    assert {(text[start:end], word) for start, end, word, _ in lattice} == {
        (w, w) for w in ("昨天", "李明", "长江大桥局", "大桥")
    }
    assert len(ner("今").lattice or ()) == 0


def test_the_lattice_has_the_labels_that_were_read(ner: NER) -> None:
    """It is computed when it is needed; edits of the lexicon since the text was read do not change it."""
    words = ner.lexicon.copy()
    with ner.using(lexicon=words):
        words.add("大桥", label="LOC")
        read = ner("大桥")
        words.add("大桥", label="PER")
        assert list(tiny.lattice(read)) == [(0, 2, "大桥", "LOC")]
        assert list(tiny.lattice(ner("大桥"))) == [(0, 2, "大桥", "PER")]


def test_words_longer_than_two_windows_meet_once(ner: NER) -> None:
    """Windows overlap, and a word in the overlap is one word of the lattice."""
    text = "李明在北京工作" * 30
    lattice = tiny.lattice(ner(text))
    expected = ner.lexicon.match(text, 2)
    assert list(zip(lattice.starts, lattice.ends, strict=True)) == list(
        zip(expected.start.tolist(), expected.end.tolist(), strict=True)
    )


@pytest.mark.parametrize("wrong", [["李明"], ["一", "二"], [("一", 2, 3)], [None]])
def test_pairs_that_are_none_are_one_line(ner: NER, wrong: list[object]) -> None:
    with pytest.raises(HanlatticeError, match=r"as_tuples needs pairs \(text, context\), not"):
        list(ner.pipe(wrong, as_tuples=True))  # type: ignore[call-overload]
    with pytest.raises(HanlatticeError, match="batch_size must be at least 1, not '3'"):
        ner.pipe(["一"], batch_size="3")  # type: ignore[call-overload]


class TestUsing:
    def test_threshold(self, ner: NER) -> None:
        document = ner(SENTENCE)
        limit = max(tiny.scores(document))
        with ner.using(threshold=limit):
            assert [e.score for e in ner(SENTENCE).entities] == [limit]
        assert ner(SENTENCE).entities == document.entities

    def test_force_makes_an_entity_and_removes_what_it_overlaps(self, ner: NER) -> None:
        with ner.using(force={"明在北": "ORG", "天气": "LOC"}):
            assert spans(ner(SENTENCE)) == [("明在北", "ORG")]
            assert spans(ner("今天天气很好")) == [("天气", "LOC")]

    def test_force_refuses_a_label_that_the_model_lacks(self, ner: NER) -> None:
        expected = "force: '天气' has the label 'XYZ', which convention 'default' lacks; it has LOC, ORG, PER"
        with pytest.raises(HanlatticeError, match=f"^{expected}$"), ner.using(force={"天气": "XYZ"}):
            pass
        assert spans(ner(SENTENCE)) == [("李明", "PER"), ("北京", "LOC")]

    def test_force_may_have_the_label_of_a_pattern_in_use(self, ner: NER) -> None:
        with ner.using(force={"天气": "DATE"}, patterns=("DATE",)), ner.using(threshold=0.1):
            assert spans(ner("今天天气很好")) == [("今天", "DATE"), ("天气", "DATE")]
        for patterns in (None, False, ("MONEY",)):
            with pytest.raises(HanlatticeError, match="'DATE', which convention"):  # noqa: SIM117
                with ner.using(force={"天气": "DATE"}, patterns=patterns):
                    pass

    def test_force_takes_the_longest_and_reads_through_normalisation(self, ner: NER) -> None:
        with ner.using(force={"ABC": "PER", "ABCD": "ORG"}):
            assert spans(ner("ＡＢＣＤ和ABC")) == [("ＡＢＣＤ", "ORG"), ("ABC", "PER")]

    def test_force_in_a_long_text(self, ner: NER) -> None:
        text = "李明在北京工作。" * 3000
        began = time.perf_counter()
        plainly = spans(ner(text))
        middle = time.perf_counter()
        with ner.using(force={"工作": "ORG", "在北": "PER"}):
            found = spans(ner(text))
        assert time.perf_counter() - middle < 3 * (middle - began) + 1
        assert plainly == [("李明", "PER"), ("北京", "LOC")] * 3000
        assert found == [("李明", "PER"), ("在北", "PER"), ("工作", "ORG")] * 3000

    @pytest.mark.parametrize("labels", [None, "LOC", ["ORG", "LOC"]])
    def test_block(self, ner: NER, labels: str | list[str] | None) -> None:
        with ner.using(block={"北京": labels}):
            assert spans(ner(SENTENCE)) == [("李明", "PER")]

    def test_block_of_another_label_blocks_nothing(self, ner: NER) -> None:
        with ner.using(block={"北京": "ORG"}):
            assert spans(ner(SENTENCE)) == [("李明", "PER"), ("北京", "LOC")]

    def test_the_lattice_of_a_long_text_takes_less_time_than_reading_it(self, ner: NER) -> None:
        began = time.perf_counter()
        document = ner("李明在北京工作。" * 10_000)
        middle = time.perf_counter()
        lattice = document.lattice
        assert time.perf_counter() - middle < middle - began + 1
        assert lattice is not None
        assert len(lattice.words) >= 10_000

    @pytest.mark.parametrize("labels", ["CITY", ["LOC", "CITY"], {"CITY"}])
    def test_block_refuses_a_label_that_no_entity_has(self, ner: NER, labels: str | list[str] | set[str]) -> None:
        expected = (
            "block: '北京' has the label 'CITY', which no entity has;"
            " in convention 'default' entities have LOC, ORG, PER"
        )
        with pytest.raises(HanlatticeError, match=f"^{expected}$"), ner.using(block={"北京": labels}):
            pass

    def test_block_takes_the_labels_of_patterns(self, ner: NER) -> None:
        own = Patterns(own=(Pattern("ROOM", regex="[0-9]+室"),))
        with ner.using(block={"305室": "ROOM", "3月5日": ["DATE", "LOC"]}, patterns=own):
            assert spans(ner("3月5日在305室")) == []
            with ner.using(block={"305室": "ROOM"}):
                assert spans(ner("3月5日在305室")) == [("3月5日", "DATE")]
        with ner.using(block={"3月5日": "DATE"}), ner.using(patterns=True):
            assert spans(ner("3月5日")) == []

    @pytest.mark.parametrize("block", [{1: None}, {"北京": 3}, {"北京": [3]}])
    def test_block_of_another_type_is_refused(self, ner: NER, block: Any) -> None:
        with pytest.raises(HanlatticeError, match=r"^block must map texts to labels"), ner.using(block=block):
            pass

    def test_a_forced_text_is_a_string(self, ner: NER) -> None:
        rules: Any = {1: "ORG"}
        with pytest.raises(HanlatticeError, match=r"^force must map texts"), ner.using(force=rules):
            pass

    def test_lexicon(self, ner: NER) -> None:
        with ner.using(lexicon=Lexicon(["在北京"])):
            lattice = ner(SENTENCE).lattice
        assert lattice is not None
        assert lattice.words == ("在北京",)
        assert "在北京" not in ner.lexicon

    def test_inner_blocks_add_to_outer_ones(self, ner: NER) -> None:
        with ner.using(block={"北京": None}):
            with ner.using(threshold=0.0, force={"工作": "ORG"}):
                assert spans(ner(SENTENCE)) == [("李明", "PER"), ("工作", "ORG")]
            assert spans(ner(SENTENCE)) == [("李明", "PER")]

    def test_a_threshold_of_0_replaces_a_stricter_one(self, ner: NER) -> None:
        with ner.using(threshold=1.0):
            assert spans(ner(SENTENCE)) == []
            with ner.using(threshold=0.0):
                assert spans(ner(SENTENCE)) == [("李明", "PER"), ("北京", "LOC")]
            with ner.using(block={"北京": None}):
                assert spans(ner(SENTENCE)) == []

    def test_an_error_inside_leaves_no_trace(self, ner: NER) -> None:
        with pytest.raises(RuntimeError, match="mine"), ner.using(block={"北京": None}, threshold=1.0):
            raise RuntimeError("mine")
        assert spans(ner(SENTENCE)) == [("李明", "PER"), ("北京", "LOC")]

    def test_a_stream_keeps_what_held_when_it_was_made(self, ner: NER) -> None:
        with ner.using(block={"北京": None}):
            stream = ner.pipe([SENTENCE])
        assert spans(next(stream)) == [("李明", "PER")]

    def test_threads_do_not_see_each_other(self, ner: NER) -> None:
        both = threading.Barrier(3)
        found: dict[str, set[tuple[tuple[str, str], ...]]] = {}

        def work(name: str, **overrides: Any) -> None:
            with ner.using(**overrides):
                both.wait()
                found[name] = {tuple(spans(ner(SENTENCE))) for _ in range(20)}

        threads = [
            threading.Thread(target=work, args=["block"], kwargs={"block": {"北京": None}}),
            threading.Thread(target=work, args=["force"], kwargs={"force": {"工作": "ORG"}}),
            threading.Thread(
                target=work, args=["lexicon"], kwargs={"lexicon": Lexicon(), "force": {"李明": "ORG"}}
            ),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found["block"] == {(("李明", "PER"),)}
        assert found["force"] == {(("李明", "PER"), ("北京", "LOC"), ("工作", "ORG"))}
        (alone,) = found["lexicon"]
        assert alone[0] == ("李明", "ORG")


class TestLiveLexicon:
    def test_an_added_word_is_read_by_the_next_call_and_a_removed_one_no_more(self) -> None:
        ner = tiny.ner()
        text = "李明和孙悟空在花果山工作。"
        assert tiny.lattice(ner(text)).words == ("李明", "工作")
        before = [(e.span, e.score) for e in ner(text).entities]
        ner.lexicon.add("花果山", label="LOC")
        ner.lexicon.update(["孙悟空"])
        lattice = tiny.lattice(ner(text))
        assert list(zip(lattice.words, lattice.labels, strict=True)) == [
            ("李明", None), ("孙悟空", None), ("花果山", "LOC"), ("工作", None),
        ]  # fmt: skip
        assert [(e.span, e.score) for e in ner(text).entities] != before, "the words changed nothing"
        ner.lexicon.remove("花果山")
        ner.lexicon.remove("孙悟空")
        assert tiny.lattice(ner(text)).words == ("李明", "工作")
        assert [(e.span, e.score) for e in ner(text).entities] == before

    def test_a_word_removed_and_added_again_has_its_vector_again(self) -> None:
        ner = tiny.ner()
        before = [(e.span, e.score) for e in ner(SENTENCE).entities]
        ner.lexicon.remove("北京")
        without = [(e.span, e.score) for e in ner(SENTENCE).entities]
        ner.lexicon.add("北京")
        assert [(e.span, e.score) for e in ner(SENTENCE).entities] == before != without

    def test_edits_while_others_read(self) -> None:
        ner = tiny.ner()
        stop = threading.Event()

        def edit() -> None:
            n = 0
            while not stop.is_set():
                ner.lexicon.add(f"新词{n % 50}")
                ner.lexicon.remove(f"新词{(n + 25) % 50}")
                n += 1

        thread = threading.Thread(target=edit)
        thread.start()
        try:
            for _ in range(30):
                assert spans(ner(SENTENCE)) == [("李明", "PER"), ("北京", "LOC")]
                exact(ner("新词1和新词2在北京"), "新词1和新词2在北京")
        finally:
            stop.set()
            thread.join()


def test_a_batch_of_nothing_is_refused(ner: NER) -> None:
    with pytest.raises(HanlatticeError, match="batch_size must be at least 1, not 0"):
        ner.pipe(["南京"], batch_size=0)

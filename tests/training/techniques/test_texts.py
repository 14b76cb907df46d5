"""Techniques that change the training texts: other names, joined sentences, and the order of both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny
from hanlattice import api, corpus
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.training import Silent
from hanlattice.training.augmentation import Variation
from hanlattice.training.examples import annotated_windows, examples
from hanlattice.training.prepare import Prepared, prepare
from hanlattice.training.tasks import n_steps, steps, total_steps
from hanlattice.training.techniques.joined_sentences import JoinedSentences, concatenated
from hanlattice.training.techniques.replaced_names import ReplacedNames, gazetteer_of
from hanlattice.training.window import AnnotatedWindow

WINDOWS, _ = annotated_windows(tiny.documents(), tiny.config().text, Normaliser())


def names(window: AnnotatedWindow) -> list[tuple[str, str]]:
    return [(span.label, window.text[span.start : span.end]) for span in window.spans]


def between(window: AnnotatedWindow) -> list[str]:
    """The text outside names."""
    ends = [0, *(end for span in window.spans for end in (span.start, span.end)), len(window.text)]
    return [window.text[ends[i] : ends[i + 1]] for i in range(0, len(ends), 2)]


def prepared(settings: Mapping[str, Any], **training: Any) -> Prepared:
    return prepare(tiny.config(**training).with_settings(settings), "cpu", Silent())


def texts(run: Prepared, config: Config, epoch: int = 0) -> list[list[str]]:
    """The texts of each step of an epoch."""
    draw = np.random.default_rng((config.training.seed, epoch))
    found = steps(run.tasks, epoch, config.training.batch_size, config.training.bucket, run.variation, draw)
    return [[example.encoded.text for example in step.examples] for step in found]


class TestReplacedNames:
    def test_labels_and_the_rest_of_the_text_stay(self) -> None:
        replace, draw = ReplacedNames(WINDOWS), np.random.default_rng(0)
        known = {pair for window in WINDOWS for pair in names(window)}
        changed = 0
        for window in WINDOWS:
            found = replace(window, draw)
            assert between(found) == between(window)
            assert [span.label for span in found.spans] == [span.label for span in window.spans]
            assert set(names(found)) <= known
            changed += names(found) != names(window)
        assert changed > 15

    def test_a_name_that_occurs_twice_stays_one_name(self) -> None:
        window = AnnotatedWindow("李明说李明好", (Span(0, 2, "PER"), Span(3, 5, "PER")))
        replace, draw = ReplacedNames(WINDOWS), np.random.default_rng(0)
        found = [names(replace(window, draw)) for _ in range(60)]
        assert all(first == second for first, second in found)
        assert {first for first, _ in found} == {pair for w in WINDOWS for pair in names(w) if pair[0] == "PER"}

    @pytest.mark.parametrize(
        ("window", "kept"),
        [
            (AnnotatedWindow("北京大学好", (Span(0, 2, "LOC"), Span(0, 4, "ORG"))), [0, 1]),
            (AnnotatedWindow("肺和胃癌", (Span.of([(0, 1), (3, 4)], "LOC"),)), [0]),
            (
                AnnotatedWindow("去北京见李明的妈妈李", (Span(1, 3, "LOC"), Span(4, 6, "PER"), Span(4, 9, "PER"))),
                [1, 2],
            ),
            (AnnotatedWindow("某物好", (Span(0, 2, "UNSEEN"),)), [0]),
        ],
        ids=["nested", "discontinuous", "nested beside a replaced one", "a label without names"],
    )
    def test_what_stays(self, window: AnnotatedWindow, kept: list[int]) -> None:
        replace = ReplacedNames([*WINDOWS, AnnotatedWindow("肺癌", (Span.of([(0, 1), (1, 2)], "LOC"),))])
        for seed in range(10):
            found = replace(window, np.random.default_rng(seed))
            assert [names(found)[i] for i in kept] == [names(window)[i] for i in kept]
            assert "某物" not in replace.names

    def test_names_of_the_lexicon_are_not_those_of_dev_and_test(self) -> None:
        lexicon = Lexicon(
            [("成都", "LOC", None), ("广州", "LOC", None), ("公司", None, None), ("拉萨", "地名", None)]
        )
        held_out = [AnnotatedWindow("在广州", (Span(1, 3, "LOC"),))]
        gazetteer = gazetteer_of(lexicon, held_out)
        assert gazetteer == {"LOC": ("成都",), "地名": ("拉萨",)}
        assert ReplacedNames(WINDOWS, gazetteer, "lexicon").names == {"LOC": ("成都",), "地名": ("拉萨",)}
        assert set(ReplacedNames(WINDOWS, gazetteer, "both").names["LOC"]) == {*tiny.PLACES, "成都"}
        assert set(ReplacedNames(WINDOWS, gazetteer).names["LOC"]) == set(tiny.PLACES)

    def test_a_run_replaces_names_by_those_of_a_gazetteer(self, tmp_path: Path) -> None:
        """A share of the sentences; not by names of test, and nothing else changes."""
        (tmp_path / "places.txt").write_text("成都\n广州\n", encoding="utf-8")
        corpus.write([Document("在广州", (Entity("广州", "LOC", 1, 3),))], tmp_path / "test.jsonl", "jsonl")
        settings = {
            "data": {"replaced_names": 0.5, "names_from": "lexicon", "test": str(tmp_path / "test.jsonl")},
            "lexicon": {"files": [f"{tmp_path / 'places.txt'}=LOC"], "vector_words": True},
        }
        config = tiny.config().with_settings(settings)
        run = prepared(settings)
        found = "".join(text for step in texts(run, config) for text in step)
        assert found.count("成都") > 4
        assert "广州" not in found
        assert any(place in found for place in tiny.PLACES)

    def test_a_lexicon_without_labels_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"data\.names_from = 'both': no word of the lexicon has one of the"):
            prepared({"data": {"replaced_names": 0.5, "names_from": "both"}})


class TestJoinedSentences:
    def test_neighbours_are_joined_up_to_a_length(self) -> None:
        windows = [AnnotatedWindow(text, (Span(0, 1, "PER"),)) for text in ("甲在。", "乙在", "丙在", "丁在")]
        found = JoinedSentences(windows, 9, 0)(0, np.random.default_rng(0))
        assert found == AnnotatedWindow(
            "甲在。乙在。丙在", (Span(0, 1, "PER"), Span(3, 4, "PER"), Span(6, 7, "PER"))
        )
        assert JoinedSentences(windows, 8, 0)(0, np.random.default_rng(0)) == found
        assert JoinedSentences(windows, 7, 0)(0, np.random.default_rng(0)).text == "甲在。乙在"
        assert JoinedSentences(windows, 4, 0)(0, np.random.default_rng(0)) == windows[0]
        assert JoinedSentences(windows, 99, 0)(3, np.random.default_rng(0)) == windows[3], "the last one"

    def test_offsets_are_those_of_the_names(self) -> None:
        draw = np.random.default_rng(0)
        for random in (False, True):
            join = JoinedSentences(WINDOWS, 40, 16, random=random)
            for i, window in enumerate(WINDOWS):
                found = join(i, draw)
                assert len(found.text) <= 40
                assert found.text.startswith(window.text)
                assert set(names(found)) <= {pair for other in WINDOWS for pair in names(other)}
                assert names(found)[: len(window.spans)] == names(window)

    def test_random_sentences_differ_from_the_next_ones(self) -> None:
        join = JoinedSentences(WINDOWS, 60, 0, random=True)
        found = {join(0, np.random.default_rng(seed)).text for seed in range(10)}
        assert len(found) > 5
        assert JoinedSentences(WINDOWS, 60, 0)(0, np.random.default_rng(0)).text not in found

    def test_discontinuous_names_move_with_their_gaps(self) -> None:
        second = AnnotatedWindow("肺和胃癌", (Span.of([(0, 1), (3, 4)], "病"),))
        assert concatenated(AnnotatedWindow("好", ()), second).spans == (Span.of([(2, 3), (5, 6)], "病"),)

    def test_windows_of_one_sentence_are_not_joined(self) -> None:
        """They share characters, which a joined text would repeat."""
        windows = [AnnotatedWindow(text, ()) for text in ("一二三四", "三四五六", "七八")]
        assert JoinedSentences(windows, 99, 2)(0, np.random.default_rng(0)) == windows[0]
        assert JoinedSentences(windows, 99, 2)(1, np.random.default_rng(0)).text == "三四五六。七八"

    def test_a_run_joins_a_share_of_each_corpus(self) -> None:
        settings = {"data": {"joined": 0.5, "joined_length": 30}}
        config = tiny.config().with_settings(settings)
        lengths = [len(text) for step in texts(prepared(settings), config) for text in step]
        longest = max(len(d.text) for d in tiny.documents())
        assert len(lengths) == len(tiny.documents())
        assert 5 < sum(n > longest for n in lengths) < 25
        assert max(lengths) <= 30

    def test_a_length_above_that_of_windows_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"data\.joined_length \(65\) must be at most text\.window \(64\)"):
            prepared({"data": {"joined": 0.5, "joined_length": 65}})


def test_a_share_of_a_corpus_is_joined_with_all_of_it() -> None:
    """The neighbours of a sentence are those of the corpus, not of the share that an epoch reads."""
    reader = Reader(Vocabulary(tuple(sorted({c for w in WINDOWS for c in w.text})), (), (), (), (), False))
    settings = tiny.config().with_settings({"data": {"joined": 1.0}})
    vary = Variation(settings.data, reader, Lexicon(), Normaliser(), False, settings.text)
    given = examples(WINDOWS, reader, Lexicon())
    whole = {JoinedSentences(WINDOWS, 64, 16)(i, np.random.default_rng(0)).text for i in range(len(WINDOWS))}
    found = [example.encoded.text for example in vary(given, (), 0.2, np.random.default_rng(3))]
    assert len(found) == 6
    assert set(found) <= whole


class TestOrder:
    def test_short_sentences_come_first(self) -> None:
        """In all tasks together, in the first epochs only; every sentence is read once."""
        beside = {"again": {"corpus": str(tiny.folder() / "corpus.bmes"), "share": 0.5}}
        run = prepared({"auxiliary": beside})
        for by_length in (True, False):
            draw = np.random.default_rng(0)
            found = list(steps(run.tasks, 0, 4, 50, run.variation, draw, by_length=by_length))
            lengths = [max(e.encoded.n_nodes for e in step.examples) for step in found]
            assert (lengths == sorted(lengths)) == by_length
            assert len(found) == n_steps(run.tasks, 0, 4)
            own = [id(e) for step in found if step.task is run.tasks[0] for e in step.examples]
            assert sorted(own) == sorted(map(id, run.tasks[0].examples))
        assert {step.task is run.tasks[0] for step in found} == {True, False}

    def test_an_auxiliary_corpus_is_trained_before_the_own_one(self, tmp_path: Path) -> None:
        """Epochs 1 and 2 train the auxiliary corpus, 3 and 4 the own one; 4 the second auxiliary one too."""
        path = str(tiny.folder() / "corpus.bmes")
        changes = {
            "data": {"from_epoch": 3},
            "auxiliary": {
                "first": {"corpus": path, "epochs": 2, "same_convention": True},
                "last": {"corpus": path, "from_epoch": 4, "epochs": 1},
            },
        }
        config = tiny.config(epochs=4).with_settings(changes)
        run = prepare(config, "cpu", Silent())
        used = [[task.is_used_in(epoch) for task in run.tasks] for epoch in range(6)]
        own, first, last = True, True, True
        assert used[0] == used[1] == [not own, first, not last]
        assert used[2:] == [[own, False, False], [own, False, last], [own, False, False], [own, False, False]]
        assert total_steps(run.tasks, 4, 6) == 25
        rows = api.train(config, output=tmp_path / "run").folder / "log.jsonl"
        assert rows.read_text("utf-8").count('"loss": ') == 4

    def test_an_epoch_without_a_corpus_is_refused(self) -> None:
        run = prepared({"data": {"from_epoch": 3}}, epochs=4)
        with pytest.raises(
            ConfigError, match=r"no corpus is trained in epoch 1 of 4: set a smaller data\.from_epoch"
        ):
            run.loop(tiny.config(epochs=4).training)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"training": {"fgm": 1.0}}, "training.fgm"),
        ({"training": {"r_drop": 1.0}}, "training.r_drop"),
        ({"training": {"dropout_samples": 2}}, "training.dropout_samples"),
        ({"training": {"curriculum": 1}}, "training.curriculum"),
        ({"data": {"joined": 0.1}}, "data.joined"),
        ({"data": {"replaced_names": 0.1}}, "data.replaced_names"),
        ({"data": {"from_epoch": 2}}, "data.from_epoch"),
        *(
            (
                {"auxiliary": {"more": {"corpus": "a", "same_convention": True, name: value}}},
                f"auxiliary.more.{name}",
            )
            for name, value in {"weight": 0.5, "from_epoch": 2, "epochs": 3}.items()
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_linear_taggers_refuse_what_they_do_not_have(settings: dict[str, Any], named: str, tmp_path: Path) -> None:
    from hanlattice.config.linear import linear_settings
    from hanlattice.training.linear.run import train_linear

    linear = Config().with_settings({"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}})
    linear = linear.with_settings(settings)
    assert linear_settings(linear) is not None, "a model that has the setting is read"
    with pytest.raises(ConfigError, match=f"the encoder 'linear' has no {named}; remove this setting"):
        train_linear(linear, tmp_path / "model")
    assert not (tmp_path / "model").exists()

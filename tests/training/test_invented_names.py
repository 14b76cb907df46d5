"""Invented names: they replace names and nothing else, and every one of them becomes a user word."""

import numpy as np
import pytest

import tiny
from hanlattice.config.settings import DataConfig
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.training import augmentation
from hanlattice.training.augmentation import Variation
from hanlattice.training.examples import annotated_windows, examples
from hanlattice.training.invented_names import LONGEST, InventedNames
from hanlattice.training.noise import normalised
from hanlattice.training.window import AnnotatedWindow

WINDOWS, _ = annotated_windows(tiny.documents(), tiny.config().text, Normaliser())
LABELS = ("LOC", "ORG", "PER")


def outside(window: AnnotatedWindow) -> str:
    """The text with every outermost name replaced by its label."""
    text = window.text
    for span in sorted(window.spans, reverse=True):
        text = text[: span.start] + span.label + text[span.end :]
    return text


def test_the_text_around_names_and_their_labels_stay() -> None:
    invent, draw = InventedNames(WINDOWS), np.random.default_rng(0)
    known = {w.text[s.start : s.end] for w in WINDOWS for s in w.spans}
    names = []
    for window in WINDOWS * 5:
        found = invent(window, draw)
        assert outside(found) == outside(window)
        names += [found.text[s.start : s.end] for s in found.spans]
    assert all(1 < len(name) <= 2 * LONGEST for name in names)
    assert sum(name in known for name in names) < 0.1 * len(names)
    assert len(set(names)) > 0.5 * len(names)


def test_halves_of_names_and_ends_of_names_are_used() -> None:
    invent, draw = InventedNames([AnnotatedWindow("去北京市", (Span(1, 4, "LOC"),))]), np.random.default_rng(0)
    found = [invent(AnnotatedWindow("在上海", (Span(1, 3, "LOC"),)), draw).text[1:] for _ in range(300)]
    assert 80 < found.count("北京京市") < 160  # SPLICED: 0.4
    assert sum(name.endswith("市") for name in found) > 180  # SPLICED and WITH_ENDING: 0.7


@pytest.mark.parametrize(
    "window",
    [
        AnnotatedWindow("北京大学好", (Span(0, 2, "LOC"), Span(0, 4, "ORG"))),
        AnnotatedWindow("肺和胃癌", (Span.of([(0, 1), (3, 4)], "LOC"),)),
        AnnotatedWindow("李明好", (Span(0, 2, "UNSEEN"),)),
        AnnotatedWindow("没有", ()),
    ],
    ids=["nested", "discontinuous", "label without names", "no names"],
)
def test_other_windows_stay(window: AnnotatedWindow) -> None:
    assert InventedNames(WINDOWS)(window, np.random.default_rng(0)) == window


def test_a_corpus_of_punctuation_has_no_names() -> None:
    window = AnnotatedWindow("……", (Span(0, 2, "LOC"),))
    assert InventedNames([window])(window, np.random.default_rng(0)) == window


def test_every_invented_name_becomes_a_user_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augmentation, "INVENTED", 1.0)
    monkeypatch.setattr("hanlattice.training.user_words.UNLABELLED", 1.0)
    chars = tuple(sorted(set("".join(w.text for w in WINDOWS))))
    reader, lexicon = Reader(Vocabulary(chars, (), tuple(tiny.WORDS), LABELS, LABELS, True)), Lexicon(tiny.WORDS)
    vary = Variation(DataConfig(noise=0.0, user_words=1.0), reader, lexicon, Normaliser(), True)
    given = examples(WINDOWS, reader, lexicon)
    found = vary(given, LABELS, 1.0, np.random.default_rng(0))
    assert sum(a.encoded.text != b.encoded.text for a, b in zip(found, given, strict=True)) > 0.8 * len(given)
    for example in found:
        e = example.encoded
        user = {
            (start, end)
            for start, end, kind in zip(e.start.tolist(), e.end.tolist(), e.word_labels.tolist(), strict=True)
            if kind > len(LABELS)
        }
        assert {(s.start, s.end) for s in example.spans if s.end - s.start <= 24} <= user


def test_noise_is_normalised_like_a_text_to_predict() -> None:
    noisy = AnnotatedWindow("张伟 李明 北京", (Span(0, 2, "PER"), Span(3, 5, "PER"), Span(6, 8, "LOC")))
    found = normalised(noisy, Normaliser(tidy=True))
    assert found == AnnotatedWindow("张伟、李明、北京", noisy.spans)
    assert normalised(noisy, Normaliser()) == noisy
    split = AnnotatedWindow("看见张伟 李明走了", (Span(2, 7, "PER"),))
    assert normalised(split, Normaliser(tidy=True)) == split
    beside = AnnotatedWindow("听Red  Hello吧", (Span(1, 5, "WORK"), Span(5, 11, "WORK")))
    assert normalised(beside, Normaliser(tidy=True)) == beside
    apart = AnnotatedWindow("听Red  Hello吧", (Span(1, 4, "WORK"), Span(6, 11, "WORK")))
    assert normalised(apart, Normaliser(tidy=True)).text == "听Red Hello吧"
    assert normalised(AnnotatedWindow("好\n", (Span(1, 2, "LOC"),)), Normaliser(tidy=True)).spans == ()

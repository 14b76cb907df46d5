"""The linear kernel against the slowest program that states what it computes, and against hostile tables."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hanlattice.engines.linear.tables import (
    NEVER,
    Tables,
    Transitions,
    lanes_of,
    quantised,
    restored,
    stored,
    types_of,
)
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ModelError
from hanlattice.inputs.encoded import Sentences
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels import library
from hanlattice.lexicon import Lexicon
from hanlattice.training.linear.learner import Corpus, LinearLearner

pytestmark = pytest.mark.skipif(not library.levels(), reason="no C compiler, or no processor of x86 with AVX2")

LABELS = ("LOC", "PER")
LANES = lanes_of(2)
TEXTS = ["李明在北京", "A1 北京", "李", "王小明《重庆》", "北京北京北"]
VOCABULARY = Vocabulary(tuple("李明在北京A1王小重庆"), (), (), LABELS, LABELS, True)
LEXICON = Lexicon([("北京", "LOC", None), ("李明", "PER", None), "京北", ("北京北", "LOC", None)])
TAGS = [0, *(group * LANES + label for group in range(4) for label in (1, 2))]  # O, S, B, M, E of two labels


def sentences() -> Sentences:
    lexicon = LEXICON.copy()
    lexicon.add("小明")
    return Reader(VOCABULARY, base=LEXICON).read(TEXTS, lexicon)


def random_tables(window: int = 2, longest: int = 3) -> Tables:
    """Tables with all features of the sentences and random weights."""
    corpus = Corpus(sentences(), np.zeros(sum(map(len, TEXTS)), np.int64))
    corpus.tags[:] = 1  # so that all features are at entities
    learner = LinearLearner(corpus, VOCABULARY, window=window, longest=longest, min_count=1, dropout=0.0, seed=1)
    draw = np.random.default_rng(0)
    learner.rows[:] = draw.normal(size=learner.rows.shape)
    learner.small[:] = np.where(learner.small < -1, learner.small, draw.normal(size=learner.small.shape))
    return learner.tables()


def scores(tables: Tables, sentences: Sentences, i: int) -> np.ndarray:
    """``[N 4*lanes]``: the sums of the rows of all features, from their definition."""
    sentence = sentences[i]
    n, types = len(sentence), types_of(VOCABULARY.chars)
    chars = [1, *(sentence.chars + 2).tolist(), 1]
    kinds = [0, 0, *types[sentence.chars].tolist(), 0, 0]
    first = np.cumsum(np.bitwise_count(tables.masks)) - np.bitwise_count(tables.masks)
    entry = {key: at for at, key in enumerate(tables.keys.tolist())}
    found = np.zeros((n, 4 * LANES), np.int64)

    def add(key: int, position: int, bit: int = 0) -> None:
        at = entry.get(key)
        if at is not None and 0 <= position < n and tables.masks[at] >> bit & 1:
            row = first[at] + bin(int(tables.masks[at]) & (1 << bit) - 1).count("1")
            found[position] += tables.rows[row]

    for start in range(-1, n + 1):
        for length in range(1, tables.longest + 1):
            if start + length > n + 1:
                break
            key = sum(c << 16 * k for k, c in enumerate(chars[start + 1 : start + 1 + length]))
            low, high = start + length - 1 - tables.window, start + tables.window
            for position in range(low, high + 1):
                add(key, position, position - low)
    words = list(zip(sentence.start.tolist(), sentence.end.tolist(), sentence.word_labels.tolist(), strict=True))

    def longest(kind: int, position: int, at_end: bool) -> int:
        there = [e - s for s, e, k in words if k == kind and (e - 1 if at_end else s) == position]
        return min(max(there, default=0), 5)

    for p in range(n):
        add(0xFFFF << 48 | sum(k << 3 * j for j, k in enumerate(kinds[p : p + 5])), p)
        add(0xFFFE << 48 | sum(k << 3 * j for j, k in enumerate(kinds[p + 1 : p + 4])), p)
        for kind in range(VOCABULARY.n_word_kinds if words else 0):
            inside = any(k == kind and s < p < e - 1 for s, e, k in words)
            begins, ends = longest(kind, p, False), longest(kind, p, True)
            if begins or ends or inside:
                add(0xFFFD << 48 | kind << 8 | (begins * 6 + ends) * 2 | inside, p)
            following, before = longest(kind, p + 1, False), longest(kind, p - 1, True)
            if following or before:
                add(0xFFFC << 48 | kind << 8 | following * 6 + before, p)
    return found


@pytest.mark.parametrize("number", [0, 1, 254, 255, 256, 300])
def test_words_of_any_number_of_labels_are_features(number: int) -> None:
    labels = tuple(f"L{i}" for i in range(320))
    vocabulary = replace(VOCABULARY, word_labels=labels)
    read = Reader(vocabulary, base=Lexicon()).read(["李明在北京"], Lexicon([("北京", labels[number], None)]))
    corpus = Corpus(read, np.ones(5, np.int64))
    learner = LinearLearner(corpus, vocabulary, window=1, longest=1, min_count=1, dropout=0.0, seed=1)
    learner.rows[:] = 1.0
    kinds = {int(key) >> 8 & 0xFFFF for key in learner.tables().keys if int(key) >> 48 in (0xFFFC, 0xFFFD)}
    assert kinds == {vocabulary.user_kind + 1 + number}


def path_score(tables: Tables, emissions: np.ndarray, path: tuple[int, ...]) -> float:
    """The score of a sequence of columns; -inf if it does not exist."""
    t = tables.transitions

    def closed(tag: int) -> int | None:
        return tag if tag < LANES else tag - 2 * LANES if tag >= 3 * LANES else None

    if path[0] >= 2 * LANES or closed(path[-1]) is None:
        return -np.inf
    total = emissions[np.arange(len(path)), path].sum() + t.first[path[0]] + t.last[closed(path[-1])]
    for a, b in pairwise(path):
        if b < 2 * LANES:
            if closed(a) is None:
                return -np.inf
            total += t.fresh[closed(a), b]
        elif a // LANES not in (1, 2) or a % LANES != b % LANES:
            return -np.inf
        else:
            total += t.inner[(b // LANES - 2) * 2 + a // LANES - 1, a % LANES]
    return total * tables.scale


def legal(n: int) -> list[tuple[int, ...]]:
    """All sequences of ``n`` columns in which each tag may follow the one before."""
    paths: list[tuple[int, ...]] = [(tag,) for tag in TAGS if tag < 2 * LANES]
    for _ in range(n - 1):
        paths = [
            (*path, tag)
            for path in paths
            for tag in TAGS
            if (path[-1] // LANES in (1, 2)) == (tag >= 2 * LANES)
            and (tag < 2 * LANES or tag % LANES == path[-1] % LANES)
        ]
    return [path for path in paths if path[-1] // LANES in (0, 3)]


def spans_of(path: tuple[int, ...]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for p, tag in enumerate(path):
        if tag >= 2 * LANES:
            found[-1] = (found[-1][0], p + 1, found[-1][2])
        elif tag:
            found.append((p, p + 1, LABELS[tag % LANES - 1]))
    return found


@pytest.mark.parametrize(("window", "longest"), [(2, 3), (3, 4)])
def test_entities_and_probabilities(window: int, longest: int) -> None:
    tables, given = random_tables(window, longest), sentences()
    found, certainty = LinearTagger(tables, VOCABULARY).read(given, certainty=True)
    for i in range(len(TEXTS)):
        if len(TEXTS[i]) > 5:
            continue
        paths = legal(len(TEXTS[i]))
        emissions = scores(tables, given, i)
        weights = np.array([path_score(tables, emissions, path) for path in paths])
        best = int(weights.argmax())
        total = np.logaddexp.reduce(weights)
        assert certainty[i] == pytest.approx(np.exp(weights[best] - total), rel=1e-4)
        assert [(s.start, s.end, s.label) for s in found[i]] == spans_of(paths[best])
        for span in found[i]:
            has = [(span.start, span.end, span.label) in spans_of(path) for path in paths]
            expected = np.exp(np.logaddexp.reduce(weights[has]) - total)
            assert span.score == pytest.approx(expected, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0, 30.0])
def test_best_tags_with_transitions_of_any_size(share: float) -> None:
    """With small ones O is far ahead of most tags, which are then left out; with large ones no tag is left out."""
    tables, given = random_tables(), sentences()
    t = tables.transitions
    parts = (np.where(x > NEVER, x * share, NEVER).astype(np.int32) for x in (t.fresh, t.inner, t.first, t.last))
    tables = replace(tables, transitions=Transitions(*parts))
    found = LinearTagger(tables, VOCABULARY).find(given)
    for i, text in enumerate(TEXTS):
        if len(text) > 5:
            continue
        paths, emissions = legal(len(text)), scores(tables, given, i)
        totals = np.array([path_score(tables, emissions, path) for path in paths])
        best = np.flatnonzero(totals > totals.max() - 1e-9 * abs(totals.max()))
        assert [(s.start, s.end, s.label) for s in found[i]] in [spans_of(paths[k]) for k in best]


def test_only_ngrams_that_can_follow_are_looked_up() -> None:
    """The result is that of all look-ups; without the marks of following characters, longer ones are missed."""
    tables, given = random_tables(3, 4), sentences()
    tagger = LinearTagger(tables, VOCABULARY)
    entries, found = tagger._native._kept[0], list(tagger.find(given))
    followed = entries["mask"] >> 8 != 0
    n_grams = tables.keys[tables.keys < 0xFFFC << 48].tolist()
    prefixes = {key & (1 << (key.bit_length() - 1) // 16 * 16) - 1 for key in n_grams} - {0}
    assert set(entries["key"][followed].tolist()) == prefixes
    tagger._native.struct.has_following = 0
    assert list(tagger.find(given)) == found
    entries["mask"] &= 255
    assert list(tagger.find(given)) == found
    tagger._native.struct.has_following = 1
    assert list(tagger.find(given)) != found


def test_the_gradient_is_that_of_the_loss() -> None:
    """The first step of AdaGrad goes against the gradient; a small step lowers the loss by its length."""
    corpus = Corpus(sentences(), np.zeros(sum(map(len, TEXTS)), np.int64))
    corpus.tags[[0, 1, 3, 4]] = [LANES + 2, 3 * LANES + 2, LANES + 1, 3 * LANES + 1]
    learner = LinearLearner(corpus, VOCABULARY, window=2, longest=2, min_count=1, dropout=0.0, seed=1)
    draw = np.random.default_rng(1)
    learner.rows[:] = draw.normal(size=learner.rows.shape) * 0.1
    before, order = learner.rows.copy(), np.array([0])
    loss = learner.epoch(corpus, order, 1e-3)
    moved = learner.rows - before
    gradient = -np.sign(moved) * np.sqrt(learner._squares)
    expected = float((gradient * moved).sum()) / 1
    small = float(np.abs(learner.small[learner.small > -1]).max())
    assert small <= 1.1e-3
    after = learner.epoch(corpus, order, 0.0)
    own = -float(np.sqrt(learner._small_squares[learner.small > -1] / 2).sum()) * 1e-3
    assert after - loss == pytest.approx(expected + own, rel=0.1)


def test_tables_survive_a_file_and_quantising() -> None:
    tables = random_tables()
    again = restored(stored(tables), 2)
    for name in ("keys", "masks", "rows"):
        assert np.array_equal(getattr(again, name), getattr(tables, name))
    assert np.array_equal(again.transitions.fresh, tables.transitions.fresh)
    rows = np.random.default_rng(0).normal(size=(1000, 4 * LANES)).astype(np.float32)
    small = np.zeros(4 * LANES * LANES + 8 * LANES, np.float32)
    whole, _, scale = quantised(rows, small, 2)
    assert np.abs(whole * scale - rows).max() < 1.51 * scale
    assert np.abs(whole[whole != 0]).min() == 2


def broken(**changes: Any) -> dict[str, Any]:
    weights = dict(stored(random_tables()))
    for name, change in changes.items():
        key = f"linear.{name}"
        weights[key] = change(weights[key])
    return weights


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("version", lambda x: x + 1, "of another version"),
        ("version", lambda x: x.astype(np.int64), "of another version"),
        ("shape", lambda x: x + 4, "linear.shape or linear.scale"),
        ("scale", lambda x: x * np.float32(np.nan), "linear.shape or linear.scale"),
        ("scale", lambda x: -x, "linear.shape or linear.scale"),
        ("keys", lambda x: x[::-1].copy(), "linear.keys are not sorted"),
        ("keys", lambda x: np.repeat(x[:1], len(x)), "linear.keys are not sorted"),
        ("keys", lambda x: x[1:], "linear.masks is uint8"),
        ("masks", lambda x: x & 1, "linear.masks do not fit linear.columns"),
        ("columns", lambda x: x & 1, "linear.columns do not fit linear.weights"),
        ("columns", lambda x: x[:, :1].copy(), "linear.columns is uint8"),
        ("weights", lambda x: x[0], "linear.weights is int8"),
        ("columns", lambda x: x[0, 0], "linear.columns is uint8"),
        ("weights", lambda x: x.astype(np.float32), "linear.weights is float32"),
        ("fresh", lambda x: x[:3].copy(), r"linear.fresh is int32 \[3, 16\]"),
        ("inner", lambda x: x.ravel(), "linear.inner is int32"),
    ],
)
def test_damaged_arrays_are_refused_in_one_line(name: str, change: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as error:
        restored(broken(**{name: change}), 2)
    assert "\n" not in str(error.value)


def test_other_labels_and_missing_arrays_are_refused() -> None:
    with pytest.raises(ModelError, match=r"linear[.]columns is uint8"):
        restored(stored(random_tables()), 9)
    weights = dict(stored(random_tables()))
    del weights["linear.masks"]
    with pytest.raises(ModelError, match=r"linear[.]masks is missing"):
        restored(weights, 2)
    with pytest.raises(ModelError, match="of another version"):
        restored({}, 2)


def test_hostile_numbers_only_give_wrong_entities() -> None:
    """Random keys, masks, weights and transitions of any size, words that overlap in all ways, and long texts."""
    draw = np.random.default_rng(2)
    for _ in range(5):
        keys = np.unique(draw.integers(1, 2**64, 300, np.uint64) >> draw.integers(0, 60, 300, np.uint64))
        masks = draw.integers(0, 256, len(keys)).astype(np.uint8)
        n_rows = int(np.bitwise_count(masks).sum())
        weights = dict(stored(random_tables(3, 4)))
        full = np.iinfo(np.int32)
        weights |= {
            "linear.keys": keys,
            "linear.masks": masks,
            "linear.columns": np.full((n_rows, 4 * LANES // 8), 255, np.uint8),
            "linear.weights": draw.integers(-128, 128, n_rows * 4 * LANES).astype(np.int8),
        }
        for name in ("fresh", "inner", "first", "last"):
            at = f"linear.{name}"
            weights[at] = draw.integers(full.min, full.max, weights[at].shape).astype(np.int32)
        tagger = LinearTagger(restored(weights, 2), VOCABULARY)
        given = sentences()
        wild = given.with_arrays(
            chars=draw.integers(-5, 99, len(given.chars)),
            start=draw.integers(-9, 99, len(given.start)),
            end=draw.integers(-9, 99, len(given.end)),
            word_labels=draw.integers(-9, 99, len(given.start)),
        )
        for one in (given, wild):
            for spans, text in zip(tagger.find(one), TEXTS, strict=True):
                assert all(0 <= s.start < s.end <= len(text) and 0 <= s.score <= 1 for s in spans)


def test_long_texts_take_linear_time_and_stay_exact() -> None:
    tables, n = random_tables(), 60_000
    reader = Reader(VOCABULARY, base=LEXICON)
    given = reader.read(["北" * n, "北京" * (n // 2)], LEXICON)
    (one, two) = LinearTagger(tables, VOCABULARY).find(given)
    short = LinearTagger(tables, VOCABULARY).find(reader.read(["北京" * 40], LEXICON))[0]
    middle = [(s.start - 20, s.end - 20, s.label) for s in short if 20 <= s.start < 60]
    assert middle == [(s.start - 1000, s.end - 1000, s.label) for s in two if 1000 <= s.start < 1040]
    assert all(0 <= s.score <= 1 for s in (*one, *two))

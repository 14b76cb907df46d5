"""An ensemble adds the scores of both models; words and conventions work as with one model."""

import contextlib
import gc
import json
import pickle
import runpy
import shutil
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import numpy as np
import pytest

import hanlattice
import tiny
from hanlattice import NER, api, corpus
from hanlattice.config.files import load_config, save_config
from hanlattice.decoders.structs.decoding import Potentials
from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings, transition_scores
from hanlattice.engines.linear.tables import columns_of_tags
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.engines.second_model import SecondModel
from hanlattice.errors import ConfigError, EngineError, ModelError
from hanlattice.evaluation.calibration import Confidences
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels import library
from hanlattice.lexicon.layers import Snapshot
from hanlattice.model.folder import CARD, CASCADE, CONFIG, DEFAULT, ENSEMBLE, LITE, VOCABULARY, ModelFolder

pytestmark = pytest.mark.skipif(not library.levels(), reason="no compiled kernels for this processor")

ROOT = Path(__file__).parents[2]
TEXTS = [
    "雷军在北京发布小米14。",
    "",
    "昨天，李明去了南京市长江大桥，王芳没有去。",
    "阿里巴巴集团董事局主席马云在杭州会见了美国总统特朗普。" * 12,  # several windows
    "他住在嘉和苑附近，常去隆鑫茶舍。",
]


@pytest.fixture(scope="module")
def ner() -> NER:
    return hanlattice.load(engine="ensemble")


@pytest.fixture(scope="module")
def first() -> NER:
    return hanlattice.load(engine="native")


@pytest.fixture(scope="module")
def second() -> NER:
    return hanlattice.load("lite")


def tags_of(ner: NER, convention: str = "") -> tuple[TagRules, TagScores]:
    return cast(NativeTagger, ner.engine).tags[convention]


def read(ner: NER, texts: list[str]) -> Sentences:
    sentences = ner.reader.read([ner.normaliser(text).text for text in texts], ner.lexicon, ner.labels)
    assert isinstance(sentences, Sentences)
    return sentences


def added_scores(
    second: NER, sentences: Sentences, rules: TagRules, convention: str = ""
) -> tuple[np.ndarray, TagScores]:
    """The emissions and transition scores of the linear tagger alone, with its temperature in neither."""
    tagger = cast(LinearTagger, second.engine).of(convention)
    temperature = tagger.temperature
    columns = columns_of_tags(rules.names, tagger.labels, tagger.tables.rows.shape[1] // 4)
    emissions = np.zeros((len(sentences.chars), 48), np.float32)
    tagger.soften(1.0)
    tagger.add_to(emissions, sentences, columns)
    tagger.soften(temperature)
    return emissions, transition_scores(tagger, rules, columns)


def test_scores_of_the_linear_tagger_lead_to_its_entities(first: NER, second: NER) -> None:
    """Decoded by the kernel of tag decoders, they give the spans and probabilities of its own kernel."""
    rules, _ = tags_of(first)
    texts = [text for text in TEXTS if 0 < len(text) < 100]
    sentences = read(second, texts)
    emissions, scores = added_scores(second, sentences, rules)
    tagger = cast(LinearTagger, second.engine)
    softened = TagScores(*(x / np.float32(tagger.temperature) for x in scores))
    found = ChainKernel(rules, softened).read(emissions / np.float32(tagger.temperature), sentences)
    expected = tagger.find(sentences)
    assert sum(map(len, found)) > 6
    assert [[s.span for s in spans] for spans in found] == [[s.span for s in spans] for spans in expected]
    one, other = ([s.score or 0 for row in rows for s in row] for rows in (found, expected))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_every_transition_is_that_of_the_linear_tagger(first: NER, second: NER) -> None:
    """Scores of transitions, written out from the layout that ``kernels/linear.c`` describes."""
    rules, allowed = tags_of(first)
    tagger = cast(LinearTagger, second.engine)
    t, lanes = tagger.tables.transitions, tagger.tables.rows.shape[1] // 4
    columns = columns_of_tags(rules.names, tagger.labels, lanes)
    found = transition_scores(tagger, rules, columns)

    def fresh(tag: str) -> int:
        label = 0 if tag == "O" else tagger.labels.index(tag[2:]) + 1
        return label + (lanes if tag[0] == "B" else 0)

    def closed(tag: str) -> int:
        label = 0 if tag == "O" else tagger.labels.index(tag[2:]) + 1
        return label + (lanes if tag[0] == "E" else 0)

    inner = {"BM": 0, "MM": 1, "BE": 2, "ME": 3}
    for i, a in enumerate(rules.names):
        assert found.start[i] == (
            pytest.approx(t.first[fresh(a)] * tagger.tables.scale) if a[0] in "OBS" else -np.inf
        )
        assert found.end[i] == (
            pytest.approx(t.last[closed(a)] * tagger.tables.scale) if a[0] in "OES" else -np.inf
        )
        for j, b in enumerate(rules.names):
            score = -np.inf
            if a[0] in "OES" and b[0] in "OBS":
                score = t.fresh[closed(a), fresh(b)] * tagger.tables.scale
            elif a[0] in "BM" and b[0] in "ME" and a[2:] == b[2:]:
                score = t.inner[inner[a[0] + b[0]], closed("S" + a[1:])] * tagger.tables.scale
            assert found.pair[i, j] == pytest.approx(score), (a, b)
            assert np.isfinite(found.pair[i, j]) == np.isfinite(allowed.pair[i, j])


@pytest.mark.parametrize(
    ("weight", "temperature", "convention"),
    [(0.4, 1.6, ""), (1.3, 0.7, ""), (1.3, 0.7, "msra"), (0.9, 1.6, "resume")],
)
def test_the_scores_of_both_models_are_added(
    weight: float, temperature: float, convention: str, first: NER, second: NER
) -> None:
    """Equal to decoding by numpy; the temperature changes the confidences only."""
    ner = hanlattice.load(engine="ensemble", convention=convention)
    linear = hanlattice.load("lite").engine
    both = cast(NativeTagger, first.engine), cast(LinearTagger, linear)
    own = weight if convention else None
    ner.engine = Ensemble(*both, 0.3 if convention == "resume" else weight, temperature, convention_weight=own)
    rules, scores = tags_of(first, convention)
    n = len(rules.names)
    differs = 0
    for text in (TEXTS[0], TEXTS[2], TEXTS[4], "中国国籍，硕士学历，曾任四川长虹董事长。"):
        alone = cast(NativeTagger, first.engine).flat.read(read(first, [text]), convention)[:, :n]
        emissions, added = added_scores(second, read(second, [text]), rules, convention)
        sums = [(a + weight * b) / temperature for a, b in zip(scores, added, strict=True)]
        potentials = Potentials(
            ((alone + weight * emissions[:, :n]) / temperature)[None],
            sums[1], sums[0], sums[2], np.array([len(alone)]),
        )  # fmt: skip
        (expected,) = rules.best(potentials)
        found = ner(text).entities
        assert [(e.start, e.end, e.label) for e in found] == [(s.start, s.end, s.label) for s in expected]
        np.testing.assert_allclose([e.score or 0 for e in found], [s.score or 0 for s in expected], atol=1e-4)
        with first.using(convention=convention or "open"):
            differs += found != first(text).entities
    assert differs


def test_weights_at_which_one_model_decides(ner: NER, first: NER, second: NER) -> None:
    for weight, one in ((1e-6, first), (20.0, second)):
        linear = hanlattice.load("lite").engine
        both = hanlattice.load(engine="ensemble")
        both.engine = Ensemble(cast(NativeTagger, first.engine), cast(LinearTagger, linear), weight, 1.0)
        spans = [[[e.span for e in d.entities] for d in model.pipe(TEXTS)] for model in (both, one)]
        assert spans[0] == spans[1]
    assert [ner(text) for text in TEXTS] != [first(text) for text in TEXTS]


def test_batches_and_threads_do_not_change_the_results(ner: NER) -> None:
    texts = [*TEXTS, *(TEXTS[0][: n % 11] + TEXTS[2][n % 7 :] for n in range(400))]
    expected = [ner(text) for text in texts]
    assert list(ner.pipe(texts)) == expected
    assert list(hanlattice.load(engine="ensemble", threads=2).pipe(texts)) == expected


def test_edits_of_the_lexicon_reach_both_models() -> None:
    ner, second = hanlattice.load(engine="ensemble"), hanlattice.load("lite")
    text, word = "常去隆鑫茶舍喝茶", "隆鑫茶舍"
    for lexicon in (ner.lexicon, second.lexicon):
        lexicon.add(word, "ORG")
    sentences = ner.reader.read([text], ner.lexicon)
    alone = second.reader.read([text], second.lexicon)
    assert np.array_equal(sentences.second.start, alone.start)  # type: ignore[attr-defined]
    assert np.array_equal(sentences.second.word_labels, alone.word_labels)  # type: ignore[attr-defined]
    assert (word, "ORG") in [(e.text, e.label) for e in ner(text).entities]
    assert word in tiny.lattice(ner(text)).words
    copy = pickle.loads(pickle.dumps(ner))
    assert copy(text) == ner(text)
    ner.lexicon.remove(word)
    assert word not in tiny.lattice(ner(text)).words
    other = ner.lexicon.copy()
    other.add(word, "ORG")
    with ner.using(lexicon=other):
        assert (word, "ORG") in [(e.text, e.label) for e in ner(text).entities]


def test_words_of_the_second_model_follow_from_those_of_flat() -> None:
    """Whatever the edits in between: as if all edits had been made at once, on a fresh model."""
    folder = ModelFolder.open()
    live = folder.read_by(hanlattice.load(engine="native").engine).lexicon
    only_second = "埃斯特拉达"
    assert hanlattice.load("lite").lexicon.id(only_second) is not None
    live.remove(only_second)
    loaded = live.copy()
    second = SecondModel("lite", folder, live)
    draw = Random(0)
    # Words of both models with the same and with other labels, of one model only, and of none.
    words = ["北京", "习近平", "新华社", "应当", "世界杯", "隆鑫茶舍", "甲乙丙丁", "新闻联播", "没有", only_second]
    known = [live]
    for step in range(60):
        lexicon = draw.choice(known)
        for _ in range(draw.randint(1, 3)):
            word = draw.choice(words)
            if draw.random() < 0.4:
                lexicon.remove(word)
            else:
                lexicon.add(word, draw.choice([None, "PER", "LOC", "ORG"]))
        if step % 20 == 7:
            known.append(lexicon.copy())
        if step % 20 == 13:
            lexicon.update([f"词{n}号{step}" for n in range(2000)])  # a layer of its own
        found = second.lexicon_of(lexicon)
        fresh = SecondModel("lite", folder, loaded).lexicon_of(lexicon)
        for word in [*words, "词5号13"]:
            ids = found.id(word), fresh.id(word)
            labels = [
                one.label(i) if i is not None else "absent" for one, i in zip((found, fresh), ids, strict=True)
            ]
            assert labels[0] == labels[1], (step, word)


def test_an_unrelated_lexicon_is_matched_as_it_is_in_both_models(ner: NER) -> None:
    """Whatever other lexicons were matched before, and however it was edited."""
    text = "重庆人和药店在渝中区开业，李明去了南京市长江大桥。"
    words = ["渝中区", "药店", "李明", "长江大桥"]
    with ner.using(lexicon=hanlattice.Lexicon(words)):
        expected = ner(text)
    empty = hanlattice.Lexicon()
    with ner.using(lexicon=empty):
        plain = ner(text)
    empty.update([("人和药店", "ORG", None), ("南京市长江大桥", "LOC", None)])
    with ner.using(lexicon=hanlattice.Lexicon()):
        assert ner(text) == plain
    edited = hanlattice.Lexicon(words[:1])
    with ner.using(lexicon=edited):
        assert ner(text) != expected
    edited.update([*words[1:], "开业"])
    edited.remove("开业")
    with ner.using(lexicon=edited):
        assert ner(text) == expected


def test_the_own_lexicon_after_an_empty_one_is_no_edit_of_it(ner: NER) -> None:
    """It would take minutes if all words were added to the second model."""
    expected = ner(TEXTS[0])
    start = time.process_time()
    with ner.using(lexicon=hanlattice.Lexicon()):
        ner(TEXTS[0])
    assert ner(TEXTS[0]) == expected
    assert time.process_time() - start < 5


def test_lexicons_that_are_gone_need_no_memory(ner: NER) -> None:
    gone = []
    for n in range(3):
        lexicon = hanlattice.Lexicon([f"词语{n}号"])
        gone.append(weakref.ref(lexicon))
        with ner.using(lexicon=lexicon):
            ner(TEXTS[0])
        del lexicon
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3


def test_an_edit_while_the_words_are_read_is_made_at_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ModelFolder.open()
    live = folder.read_by(hanlattice.load(engine="native").engine).lexicon
    second = SecondModel("lite", folder, live)
    live.add("隆鑫茶舍")
    copy_at = hanlattice.Lexicon.at

    def edited_meanwhile(self: hanlattice.Lexicon, state: Snapshot) -> hanlattice.Lexicon:
        found = copy_at(self, state)
        if self is live and "甲乙丙丁" not in self:
            self.add("甲乙丙丁")
        return found

    monkeypatch.setattr(hanlattice.Lexicon, "at", edited_meanwhile)
    assert "甲乙丙丁" not in second.lexicon_of(live)
    assert "甲乙丙丁" in second.lexicon_of(live)
    live.remove("甲乙丙丁")
    assert "甲乙丙丁" not in second.lexicon_of(live)
    assert "隆鑫茶舍" in second.lexicon_of(live)


def test_an_edit_after_many_costs_little() -> None:
    """Only the edits since the last call reach the second model."""
    folder = ModelFolder.open()
    live = hanlattice.load(engine="native").lexicon
    second = SecondModel("lite", folder, live)
    live.update([f"词语{n}号" for n in range(100_000)])
    start = time.process_time()
    assert second.lexicon_of(live).id("词语7号") is not None  # the words are added when the lexicon is read
    many = time.process_time() - start
    costs = []
    for attempt in range(3):  # a garbage collection may fall into one of them
        start = time.process_time()
        for n in range(5):
            live.add(f"新词{attempt}{n}")
            second.lexicon_of(live)
            own = live.copy()
            own.add(f"请求{n}", "PER")
            assert second.lexicon_of(own).id(f"请求{n}") is not None
        costs.append(time.process_time() - start)
    assert min(costs) < many / 3


def test_lattices_and_conventions_of_flat_alone(ner: NER, first: NER, second: NER) -> None:
    assert ner.conventions == first.conventions
    assert {"msra", "cluener", "resume", "weibo"} <= set(second.conventions)
    assert "medical" not in second.conventions
    with ner.using(convention="medical"), first.using(convention="medical"):
        assert [ner(text) for text in TEXTS] == [first(text) for text in TEXTS]
    assert tiny.lattice(ner(TEXTS[0])) == tiny.lattice(first(TEXTS[0]))
    assert ner(TEXTS[0]).words == first(TEXTS[0]).words


NEW = "慢慢记"
WITH_NEW = "背单词还是慢慢记好用，就是广告多。"


def score_of_new(ner: NER, words: list[tuple[str, str | None, None]], convention: str = "open") -> float:
    """The largest score of an entity in the place of `NEW`, after words were added to a copy of the lexicon."""
    lexicon = ner.lexicon.copy()
    lexicon.update(words)
    with ner.using(lexicon=lexicon, convention=convention):
        return max((e.score or 0 for e in ner(WITH_NEW).entities if e.text == NEW), default=0.0)


@pytest.fixture
def favouring() -> Callable[[float], NER]:
    """Makes ensembles with a score for words of the user."""

    def made(user_word: float) -> NER:
        settings = EnsembleSettings("lite", 0.5, 1.5, user_word)
        engine = hanlattice.load(engine="native").engine
        return Ensemble.open(ModelFolder.open(), engine, settings=settings)

    return made


def test_a_new_word_without_a_label_favours_entities(favouring: Callable[[float], NER]) -> None:
    plain, favoured = favouring(0.0), favouring(12.0)
    added: list[tuple[str, str | None, None]] = [(NEW, None, None)]
    assert score_of_new(plain, added) + 0.1 < score_of_new(favoured, added)
    others: list[list[tuple[str, str | None, None]]] = [[], [("背单词", None, None)], [(NEW, "PRODUCT", None)]]
    for words in others:
        assert score_of_new(favoured, words) == score_of_new(plain, words), words
    with favoured.using(convention="msra"), plain.using(convention="msra"):
        assert score_of_new(favoured, added, "msra") == score_of_new(plain, added, "msra")
    texts = [WITH_NEW, *TEXTS, WITH_NEW * 3]
    for ner in (plain, favoured):
        ner.lexicon.add(NEW)
    assert [len([e for e in d.entities if e.text == NEW]) for d in favoured.pipe(texts)] == [
        1,
        *[0] * len(TEXTS),
        3,
    ]
    assert list(favoured.pipe(texts)) == [favoured(text) for text in texts]
    unchanged = [(plain(text), favoured(text)) for text in TEXTS]
    assert all(a == b for a, b in unchanged), "words that do not occur have no effect"
    short = [text for text in TEXTS if len(text) < 80]  # engines read windows
    pickled = pickle.loads(pickle.dumps(favoured.reader.read(short, favoured.lexicon)))
    fresh = favoured.reader.read(short, favoured.lexicon)
    assert list(favoured.engine.find(pickled)) == list(favoured.engine.find(fresh))
    favoured.lexicon.remove(NEW)
    assert [e for e in favoured(WITH_NEW).entities if e.text == NEW] == []


def test_a_sentence_beyond_the_window_is_refused(favouring: Callable[[float], NER]) -> None:
    ner = favouring(0.0)
    for n, fits in ((ner.config.text.window, True), (ner.config.text.window + 1, False)):
        sentences = ner.reader.read(["北" * n], ner.lexicon)
        with (
            contextlib.nullcontext() if fits else pytest.raises(EngineError, match="longer than the 80 characters")
        ):
            assert len(list(ner.engine.find(sentences))) == 1


def test_the_score_of_a_new_word_is_added_to_that_of_its_entity(favouring: Callable[[float], NER]) -> None:
    """The odds of an entity there, of whatever label, grow by exp(user_word / temperature)."""
    odds = []
    for user_word in (0.0, 6.0):
        ner = favouring(user_word)
        ner.lexicon.add(NEW)
        engine = cast(Ensemble, ner.engine)
        sentences = read(ner, [WITH_NEW])
        pool, emissions = engine._pools[""], engine.first.emissions(sentences)
        pool.add(emissions, sentences.second)  # type: ignore[attr-defined]
        start = WITH_NEW.index(NEW)
        before = emissions.copy()
        pool.favour(emissions, np.array([start]), np.array([start + 3]), user_word)
        changed = np.argwhere(emissions != before)
        rules, _ = tags_of(hanlattice.load(engine="native"))
        assert {(i, rules.names[j][0]) for i, j in changed} == (
            {(start, "B"), (start + 2, "E")} if user_word else set()
        )
        np.testing.assert_allclose((emissions - before)[emissions != before], user_word / 2 / 1.5, rtol=1e-4)
        odds.append(emissions)
    assert not np.array_equal(odds[0], odds[1])


def test_a_general_dictionary_favours_nothing(
    favouring: Callable[[float], NER], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hanlattice.inputs.reader.MOST_USER_WORDS", 3)
    ner = favouring(12.0)
    few: list[tuple[str, str | None, None]] = [(word, None, None) for word in (NEW, "甲乙丁", "戊己丁")]
    assert score_of_new(ner, few) > 0
    assert score_of_new(ner, [*few, ("壬癸丁", None, None)]) == 0
    for words, is_favoured in (([NEW, "甲乙", "丙丁"], True), ([NEW, "甲乙", "丙丁", "戊己"], False)):
        with ner.using(lexicon=hanlattice.Lexicon(words)):
            assert (NEW in [e.text for e in ner(WITH_NEW).entities]) == is_favoured


def copies(place: Path) -> Path:
    """Copies of both packaged models, as an ensemble that names its second model by a folder."""
    for model, name in ((DEFAULT, "first"), (LITE, "second")):
        shutil.copytree(model, place / name)
    write(place / "first", 'second = "../second"\nweight = 0.4\ntemperature = 1.6\n')
    return place / "first"


def write(folder: Path, content: str) -> None:
    (folder / ENSEMBLE).unlink(missing_ok=True)
    (folder / ENSEMBLE).write_text(content, encoding="utf-8")


def test_automatic_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``auto`` takes the ensemble where a folder names one, and FLAT alone where it does not or cannot."""
    folder = copies(tmp_path)
    assert api.open_model(folder).engine == "ensemble"
    assert isinstance(api.open_model(folder, engine="cascade").ner.engine.accurate, Ensemble)  # type: ignore[attr-defined]
    assert api.open_model(folder, engine="native").engine == "native"

    def refuse(*_: object) -> None:
        raise EngineError("no kernels")

    with monkeypatch.context() as patch:
        patch.setattr(api, "_open_native", refuse)
        opened = api.open_model(folder)
    assert opened.engine == "numpy"
    assert opened.passed_over[0] == ("ensemble", "no kernels")
    (folder / ENSEMBLE).unlink()
    assert api.open_model(folder).engine == "native"
    assert isinstance(api.open_model(folder, engine="cascade").ner.engine.accurate, NativeTagger)  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match=r"has no ensemble\.toml"):
        hanlattice.load(folder, engine="ensemble")
    with pytest.raises(ConfigError, match="runs on the CPU only"):
        hanlattice.load(engine="ensemble", device="cuda")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("weight = 0.4\ntemperature = 1.0", "needs second, the name of a model"),
        (f'second = "lite"\nweight = 1{"0" * 400}\ntemperature = 1.0', "needs second, the name of a model"),
        (
            'second = "lite"\nwieght = 0.4\ntemperature = 1.0',
            "there is no setting 'wieght'; it may have second, weight",
        ),
        ('second = "lite"\nweight = 0.0\ntemperature = 1.0', "above 0.0"),
        ('second = "lite"\nweight = 0.4\ntemperature = 1001.0', "at most 1000"),
        ('second = "lite"\nweight = nan\ntemperature = 1.0', "above 0.0"),
        ('second = "lite"\nweight = true\ntemperature = 1.0', "above 0.0"),
        ('second = "lite"\nweight = 0.4\ntemperature = 1.0\nuser_word = -1.0', "user_word is a number from 0.0"),
        ('second = "lite"\nweight = 0.4\ntemperature = 1.0\nuser_word = 1001.0', "from 0.0 to 1000"),
        ('second = "lite"\nweight = 0.4\ntemperature = 1.0\nuser_word = "much"', "user_word is a number"),
        (
            'second = "lite"\nweight = 0.4\ntemperature = 1.0\nconvention_weight = 0.0',
            "convention_weight is a number",
        ),
        ('second = "lite"\nweight = 0.4\ntemperature = 1.0\nconvention_weight = 1001.0', "at most 1000"),
        ("second =", "not TOML"),
        ('second = "../nothing"\nweight = 0.4\ntemperature = 1.0', "no such folder"),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "ensemble"])
def test_broken_settings_are_one_line(tmp_path: Path, content: str, message: str, engine: api.EngineName) -> None:
    folder = copies(tmp_path)
    write(folder, content)
    with pytest.raises(ModelError, match=message) as error:
        hanlattice.load(folder, engine=engine)
    assert "\n" not in str(error.value)
    assert not isinstance(error.value, EngineError)


def test_the_largest_settings_are_allowed(tmp_path: Path) -> None:
    folder = copies(tmp_path)
    largest = 'second = "lite"\nweight = 1000.0\ntemperature = 1000.0\nuser_word = 1000.0\n'
    write(folder, f"{largest}convention_weight = 1000.0")
    assert EnsembleSettings.of(ModelFolder.open(folder)) == EnsembleSettings("lite", *[1000.0] * 4)
    write(folder, 'second = "lite"\nweight = 2.0\ntemperature = 1.0\nuser_word = 0.0')
    assert EnsembleSettings.of(ModelFolder.open(folder)) == EnsembleSettings("lite", 2.0, 1.0, 0.0, 2.0)


def test_scores_that_are_too_large_for_probabilities(tmp_path: Path) -> None:
    folder = copies(tmp_path)
    for weight, temperature, fits in ((1000.0, 1000.0, True), (1000.0, 1.0, False), (0.4, 0.001, False)):
        write(folder, f'second = "lite"\nweight = {weight}\ntemperature = {temperature}\n')
        if fits:
            assert hanlattice.load(folder)(TEXTS[0]).entities
            continue
        with pytest.raises(ModelError, match="too large; have a smaller weight") as error:
            hanlattice.load(folder)
        assert not isinstance(error.value, EngineError)


def test_models_that_do_not_fit(tmp_path: Path) -> None:
    folder = copies(tmp_path)
    config = load_config(folder / CONFIG)
    (folder / CONFIG).unlink()
    save_config(config.with_settings({"decoder": {"scheme": "BIOES"}}), folder / CONFIG)
    with pytest.raises(EngineError, match=r"the tag scheme BMES .* train it with --decoder.scheme BMES"):
        hanlattice.load(folder, engine="ensemble")
    vocabulary = tmp_path / "second" / VOCABULARY
    fields = json.loads(vocabulary.read_text(encoding="utf-8"))
    vocabulary.unlink()
    vocabulary.write_text(json.dumps({**fields, "convention": "other"}), encoding="utf-8")
    with pytest.raises(ModelError, match=r"differ in their default convention \(other and open\); they cannot"):
        hanlattice.load(folder, engine="ensemble")
    conventions = {**fields["conventions"], "msra": ["GPE"]}
    vocabulary.write_text(json.dumps({**fields, "conventions": conventions}), encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"differ in their labels of convention msra \(GPE and LOC, ORG, PER\); they cannot"
    ):
        hanlattice.load(folder, engine="ensemble")
    write(tmp_path / "second", 'second = "lite"\nweight = 0.4\ntemperature = 1.0\n')
    with pytest.raises(EngineError, match="has no FLAT"):
        hanlattice.load(tmp_path / "second", engine="ensemble")


def test_the_script_writes_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copies(tmp_path)
    (folder / ENSEMBLE).unlink()
    ner = hanlattice.load(engine="native")
    documents = [ner(text) for text in TEXTS]
    wrong = hanlattice.Document(TEXTS[0], documents[0].entities[:1])
    corpus.write([*documents, wrong], tmp_path / "held_out.jsonl", "jsonl")
    script = str(ROOT / "scripts" / "make_ensemble.py")
    options = [str(tmp_path / "held_out.jsonl"), "--model", str(folder)]
    options += ["--convention", f"msra={tmp_path / 'held_out.jsonl'}"]
    monkeypatch.setattr(sys, "argv", [script, *options])
    runpy.run_path(script, run_name="__main__")
    settings = EnsembleSettings.of(ModelFolder.open(folder))
    assert settings.second == "lite"
    assert 0.1 <= settings.weight <= 1.5
    assert 0.1 <= (settings.convention_weight or 0) <= 1.5
    assert 0 <= settings.user_word <= 10
    assert "6 documents of held_out.jsonl" in (folder / ENSEMBLE).read_text(encoding="utf-8")
    assert isinstance(hanlattice.load(folder).engine, Ensemble)


def test_the_script_replaces_the_scores_in_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import make_ensemble

    (tmp_path / CARD).write_text("# Model\n\n## Scores\n\nMicro F1.\n\nold\n\n## How it was made\n\n    command\n")
    monkeypatch.setattr(make_ensemble, "output_of", lambda command: f"| scores of {command[-1].name} |\n")
    about = make_ensemble.about_ensemble("times 0.5", 1_375, 80.0, 82.5, Confidences([1.0] * 3, [True] * 3))
    make_ensemble.write_card(tmp_path, about)
    text = (tmp_path / CARD).read_text(encoding="utf-8")
    assert text.startswith(f"# Model\n\n## Scores\n\nMicro F1.\n\n| scores of {tmp_path.name} |\n\nThe model is")
    assert text.endswith("\n\n## How it was made\n\n    command\n")
    assert "old" not in text
    for part in ("times 0.5", "1,375", "is 82.50 (FLAT", "80.00", "over 3 predicted", "is 0.0000."):
        assert part in " ".join(text.split())


def test_the_packaged_model_is_an_ensemble() -> None:
    """If this fails, one of its models is new: run scripts/make_ensemble.py again, as its first lines say."""
    assert (DEFAULT / ENSEMBLE).is_file()
    assert (DEFAULT / CASCADE).is_file()
    settings = EnsembleSettings.of(ModelFolder.open())
    assert settings.second == "lite"
    assert 0.1 < settings.weight < 1.5

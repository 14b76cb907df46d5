"""A cascade: the fast model answers from its threshold on, the accurate one below; words and options reach both."""

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import hanlattice
import tiny
from hanlattice import NER, Document
from hanlattice.cli import main
from hanlattice.engines.cascade import Cascade, CascadeSettings, certainties
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ConfigError, EngineError, ModelError
from hanlattice.kernels import library
from hanlattice.model.digests import record
from hanlattice.model.folder import CASCADE, DEFAULT, LITE, VOCABULARY

pytestmark = pytest.mark.skipif(not library.levels(), reason="no compiled kernels for this processor")

TEXTS = [
    "雷军在北京发布小米14。",
    "",
    "昨天，李明去了南京市长江大桥，王芳没有去。",
    "阿里巴巴集团董事局主席马云在杭州会见了美国总统特朗普。" * 12,  # several windows
    "他住在嘉和苑附近，常去隆鑫茶舍。",
]
SHORT = [text for text in TEXTS if len(text) < 80]  # one window of both models


@pytest.fixture(scope="module")
def accurate() -> NER:
    return hanlattice.load()


@pytest.fixture(scope="module")
def fast() -> NER:
    return hanlattice.load("lite")


@pytest.fixture
def ner() -> NER:
    return hanlattice.load("cascade")


def engine_of(ner: NER) -> Cascade:
    return cast(Cascade, ner.engine)


def test_each_side_of_the_threshold(ner: NER, fast: NER, accurate: NER) -> None:
    """From a certainty equal to the threshold on, the answer with its confidences is that of the fast model."""
    texts = [TEXTS[0], TEXTS[2], TEXTS[4]]
    plain = [ner.normaliser(text).text for text in texts]
    read = fast.reader.read(plain, fast.lexicon, fast.labels)
    found, certainty = certainties(cast(LinearTagger, fast.engine), read)
    _, probability = cast(LinearTagger, fast.engine).read(read, certainty=True)
    assert certainty == pytest.approx([p ** (1 / len(text)) for p, text in zip(probability, plain, strict=True)])
    assert [len(spans) for spans in found] == [len(fast(text).entities) for text in texts]
    engine_of(ner).threshold = limit = float(np.sort(certainty)[1])
    expected = [(fast if sure >= limit else accurate)(text) for text, sure in zip(texts, certainty, strict=True)]
    assert list(ner.pipe(texts)) == expected
    assert [ner(text) for text in texts] == expected
    for one, sure in zip(expected, certainty, strict=True):
        assert (one == fast(one.text)) is bool(sure >= limit)  # the models differ in each text


def test_thresholds_at_which_one_model_answers_everything(ner: NER, fast: NER, accurate: NER) -> None:
    engine_of(ner).threshold = 0.0
    assert list(ner.pipe(SHORT)) == list(fast.pipe(SHORT))
    engine_of(ner).threshold = 1.1
    assert list(ner.pipe(TEXTS)) == list(accurate.pipe(TEXTS))


@pytest.mark.parametrize("threshold", [0.0, 1.1])
def test_edits_of_the_lexicon_reach_both_models(ner: NER, threshold: float) -> None:
    engine_of(ner).threshold = threshold
    one = hanlattice.load("lite" if threshold == 0 else None)
    for text, word, label in ((TEXTS[4], "隆鑫茶舍", "ORG"), ("我爱嘉和苑", "嘉和苑", "LOC")):
        for lexicon in (ner.lexicon, one.lexicon):
            lexicon.add(word, label)
        assert ner(text) == one(text)
        assert (word, label) in [(e.text, e.label) for e in ner(text).entities]
    for lexicon in (ner.lexicon, one.lexicon):
        lexicon.remove("隆鑫茶舍")
        lexicon.remove("北京")
        lexicon.add("嘉和苑", "PER")
    assert [ner(text) for text in SHORT] == [one(text) for text in SHORT]
    assert pickle.loads(pickle.dumps(ner)).lexicon.id("隆鑫茶舍") is None
    edited = ner.lexicon.copy()
    edited.add("重雷科技", "ORG")
    with ner.using(lexicon=edited):
        assert ("重雷科技", "ORG") in [(e.text, e.label) for e in ner("重雷科技昨天上市").entities]


def test_a_copy_answers_alike(ner: NER) -> None:
    ner.lexicon.add("隆鑫茶舍", "ORG")
    copy = pickle.loads(pickle.dumps(ner))
    assert [copy(text) for text in TEXTS] == [ner(text) for text in TEXTS]


def test_other_conventions_are_those_of_the_accurate_model(ner: NER, accurate: NER) -> None:
    engine_of(ner).threshold = 0.0
    assert ner.conventions == accurate.conventions
    with ner.using(convention="msra"), accurate.using(convention="msra"):
        assert [ner(text) for text in TEXTS] == [accurate(text) for text in TEXTS]
        assert tiny.lattice(ner(TEXTS[0])) == tiny.lattice(accurate(TEXTS[0]))
    assert ner(TEXTS[0]).words == accurate(TEXTS[0]).words


def test_rules_and_thresholds_apply_to_both(ner: NER) -> None:
    for threshold in (0.0, 1.1):
        engine_of(ner).threshold = threshold
        with ner.using(force={"茶舍": "LOC"}, block={"北京": None}, threshold=0.2):
            found = [e.text for document in ner.pipe(TEXTS) for e in document.entities]
        assert "茶舍" in found
        assert "北京" not in found


def test_the_packaged_threshold_is_that_of_the_packaged_models() -> None:
    """If this fails, one of the models is new: run scripts/make_cascade.py again, as its first lines say."""
    settings = CascadeSettings.of(hanlattice.model.folder.ModelFolder.open())
    assert settings.second == "lite"
    assert 0 < settings.threshold < 1


def test_engines_by_name(fast: NER) -> None:
    assert isinstance(hanlattice.load(engine="cascade").engine, Cascade)
    assert hanlattice.model.folder.ModelFolder.open("cascade").path == DEFAULT  # for commands that only look at it
    with pytest.raises(ConfigError, match="the model 'cascade' has its own engine, not 'numpy'"):
        hanlattice.load("cascade", engine="numpy")
    with pytest.raises(EngineError, match=r"has no cascade\.toml"):
        hanlattice.load("lite", engine="cascade")
    with pytest.raises(ConfigError, match="runs on the CPU only"):
        hanlattice.load("cascade", device="cuda")


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--model", "cascade"], ["--engine", "cascade"]):
        with pytest.raises(SystemExit) as left:
            main(["predict", *options, "--format", "jsonl", TEXTS[0]])
        assert not left.value.code
        row = json.loads(capsys.readouterr().out)
        assert Document(row["text"]).text == TEXTS[0]
        assert ("雷军", "PER") in [(e["text"], e["label"]) for e in row["entities"]]


def pair(place: Path) -> Path:
    """Copies of both packaged models, as a cascade that names its fast model by a folder."""
    for model, name in ((DEFAULT, "accurate"), (LITE, "fast")):
        shutil.copytree(model, place / name)
    folder = place / "accurate"
    (folder / CASCADE).unlink()
    (folder / CASCADE).write_text('second = "../fast"\nthreshold = 0.5\n', encoding="utf-8")
    return folder


def test_a_pair_of_folders(tmp_path: Path, ner: NER) -> None:
    folder = pair(tmp_path)
    opened = hanlattice.load(folder, engine="cascade")
    engine_of(ner).threshold = 0.5
    assert list(opened.pipe(TEXTS)) == list(ner.pipe(TEXTS))
    vocabulary = tmp_path / "fast" / VOCABULARY
    fields = json.loads(vocabulary.read_text(encoding="utf-8"))
    vocabulary.unlink()
    vocabulary.write_text(json.dumps({**fields, "convention": "other"}), encoding="utf-8")
    record(tmp_path / "fast")
    with pytest.raises(ModelError, match=r"differ in their default convention \(other and open\); they cannot"):
        hanlattice.load(folder, engine="cascade")
    for text, message in (
        ("threshold = 0.5", "needs second, the name of a model"),
        ('second = "lite"\nthreshold = 1.5', "needs second"),
        ("second =", "not TOML"),
    ):
        (folder / CASCADE).write_text(text, encoding="utf-8")
        with pytest.raises(ModelError, match=message):
            hanlattice.load(folder, engine="cascade")


def test_the_lattice_of_a_document_has_the_words_of_its_time() -> None:
    """It is read by the accurate model when it is needed, perhaps after edits of the lexicon."""
    ner = hanlattice.load("cascade", threads=1)
    before, again = ner("昨天鱼丸王去了北京"), ner("昨天鱼丸王去了北京")
    assert before.lattice is not None
    ner.lexicon.add("鱼丸王")
    ner.lexicon.remove("北京")
    edited = ner("昨天鱼丸王去了北京").lattice
    assert again.lattice is not None
    assert edited is not None
    assert again.lattice.words == before.lattice.words
    assert "北京" in again.lattice.words
    assert "鱼丸王" in edited.words
    assert "北京" not in edited.words


def test_lattices_are_read_in_many_threads() -> None:
    ner = hanlattice.load("cascade", threads=1)
    texts = [f"昨天王小{c}去了南京市长江大桥" for c in "红明李张伟强"] * 4
    expected = [document.lattice for document in ner.pipe(texts)]

    def read(i: int) -> bool:
        ner.lexicon.add(f"鱼丸{i}")
        return [document.lattice for document in ner.pipe(texts)] == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(12)))

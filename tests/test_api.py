"""Opening a model: a broken one is reported, and an engine that cannot run it is passed over with a reason."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import hanlattice
import tiny
from hanlattice import api
from hanlattice.api import EngineName
from hanlattice.config.settings import Config
from hanlattice.engines import onnx
from hanlattice.errors import ConfigError, DataError, EngineError, ModelError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.library import MISSING
from hanlattice.model.folder import GRAPH, MISFIT, VOCABULARY, WEIGHTS

TEXT = "李明在北京工作。"


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A copy of an exported model."""
    return shutil.copytree(tiny.exported(), tmp_path / "model")


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor without kernels."""

    def refuse(*_: object) -> None:
        raise EngineError(MISSING)

    monkeypatch.setattr(api, "_open_native", refuse)


@pytest.mark.usefixtures("no_kernels")
class TestWithoutKernels:
    def test_the_next_engine_is_taken_and_the_reason_is_kept(self, exported: Path) -> None:
        opened = api.open_model(exported)
        assert (opened.engine, opened.passed_over) == ("onnx", (("native", MISSING),))
        assert opened.reason == "the first that runs this model, after native"

    @pytest.mark.parametrize("engine", ["auto", "onnx"])
    def test_weights_cut_short_are_reported_as_such(self, exported: Path, engine: Any) -> None:
        """And not as a graph that belongs to other weights."""
        path = exported / WEIGHTS
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(ModelError, match=f"{WEIGHTS}: broken") as error:
            hanlattice.load(exported, engine=engine)
        assert not isinstance(error.value, EngineError)

    def test_a_graph_of_other_weights_is_reported(self, exported: Path) -> None:
        data = bytearray((exported / WEIGHTS).read_bytes())
        data[-2] ^= 1  # the lowest bit of a number
        (exported / WEIGHTS).write_bytes(data)
        with pytest.raises(ModelError, match=f"{GRAPH} was not exported from this {WEIGHTS}") as error:
            hanlattice.load(exported)
        assert not isinstance(error.value, EngineError)

    @pytest.mark.parametrize(
        ("table", "changed"),
        [
            ("chars", lambda v: replace(v, chars=(*v.chars, "龘"))),
            ("bigrams", lambda v: replace(v, bigrams=v.bigrams[:-1])),
            ("words", lambda v: replace(v, words=(*v.words, "龘龘"))),
            ("label", lambda v: replace(v, word_labels=(*v.word_labels, "NEW"))),
        ],
    )
    @pytest.mark.parametrize("engine", ["onnx", "auto"])
    def test_a_vocabulary_of_another_model_is_reported(
        self, exported: Path, engine: Any, table: str, changed: Callable[[Vocabulary], Vocabulary]
    ) -> None:
        """The graph was exported from these weights, but the vocabulary has more or fewer names than rows."""
        changed(Vocabulary.load(exported / VOCABULARY)).save(exported / VOCABULARY)
        with pytest.raises(ModelError, match=rf"{MISFIT} \(\S*{table}\S*weight has \d+ rows, not \d+\)") as error:
            hanlattice.load(exported, engine=engine)
        assert not isinstance(error.value, EngineError)
        assert str(error.value).startswith(str(exported))

    def test_a_graph_of_another_version_is_passed_over(
        self, exported: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = onnx.feeds
        monkeypatch.setattr(onnx, "feeds", lambda some: {k: v for k, v in whole(some).items() if k != "tail"})
        opened = api.open_model(exported)
        assert opened.engine == "numpy"
        assert "is from another version: its input 'tail' is unknown" in opened.passed_over[1][1]

    def test_numpy_runs_the_packaged_model(self) -> None:
        opened = api.open_model()
        assert opened.engine == "numpy"
        assert opened.reason == "the first that runs this model, after ensemble, native and onnx"
        assert (
            "is not exported for ONNX Runtime; run: hanlattice export FOLDER --model default"
            in opened.passed_over[2][1]
        )

    def test_without_onnxruntime_numpy_runs_an_exported_model(
        self, exported: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        opened = api.open_model(exported)
        assert opened.engine == "numpy"
        with pytest.raises(EngineError, match=r"is not installed: pip install 'hanlattice\[onnx\]'$"):
            hanlattice.load(exported, engine="onnx")


@pytest.mark.parametrize("engine", ["native", "onnx", "numpy"])
def test_engines_of_the_cpu_refuse_another_device(engine: EngineName) -> None:
    message = f"^engine '{engine}' runs on the CPU only, not on 'cuda:1'; use engine='torch', or leave out device$"
    with pytest.raises(ConfigError, match=message):
        hanlattice.load(engine=engine, device="cuda:1")


@pytest.mark.parametrize("threads", [-1, 1.5, "2"])
def test_threads_are_a_number_from_0_on(threads: Any) -> None:
    with pytest.raises(ConfigError, match=f"threads must be a whole number, .*, not {threads!r}"):
        hanlattice.load("lite", threads=threads)
    assert hanlattice.load("lite", threads=1)("雷军在北京。").entities


def test_numbers_that_only_torch_can_read_are_left_to_torch(tmp_path: Path) -> None:
    folder = shutil.copytree(tiny.two_conventions(), tmp_path / "model")
    weights = load_file(folder / WEIGHTS)
    save_file({name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}, folder / WEIGHTS)
    opened = api.open_model(folder)
    assert opened.engine == "torch"
    assert opened.ner(TEXT).entities
    with pytest.raises(EngineError, match="has numbers of the type BF16"):
        hanlattice.load(folder, engine="native")


def test_settings_of_a_linear_tagger_train_one(tmp_path: Path) -> None:
    linear = {"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}, "training": {"epochs": 1}}
    config = Config().with_settings(
        {k: v for k, v in tiny.settings().items() if k in ("data", "lexicon", "vectors")}
    )
    assert api.train(config.with_settings(linear), output=tmp_path / "model").folder == tmp_path / "model"
    assert hanlattice.load(tmp_path / "model").config.encoder.name == "linear"


def test_corpora_are_paths_too(tmp_path: Path) -> None:
    linear = {"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}, "training": {"epochs": 1}}
    data = tiny.settings()["data"]
    train, dev, test = (Path(data[name]) for name in ("train", "dev", "test"))
    run = api.train(settings=linear, train=train, dev=dev, test=test, output=tmp_path / "one")
    assert run.test is not None
    other = tmp_path / train.name
    shutil.copyfile(train, other)
    api.train(settings=linear, train=[train, str(other)], dev=dev, output=tmp_path / "two")
    config = hanlattice.load(tmp_path / "two").config
    assert (config.data.train, config.data.dev) == ((str(train), str(other)), str(dev))


def test_no_documents_are_an_error() -> None:
    with pytest.raises(DataError, match="no documents to score"):
        hanlattice.evaluate(hanlattice.load("lite"), [])

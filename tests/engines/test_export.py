"""Exported models: the same answers without torch, whatever is read, or a reason why not."""

import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import torch

import hanlattice
import tiny
from annotation_checks import switched_off
from hanlattice.cli import main
from hanlattice.encoders.flat import Flat
from hanlattice.engines import export as export_module
from hanlattice.engines.export import TOLERANCE, _difference, _refuse_difference, _refuse_loss, export
from hanlattice.engines.graph import FlatGraph
from hanlattice.engines.onnx import feeds
from hanlattice.errors import HanlatticeError, ModelError
from hanlattice.inputs.batch import collate
from hanlattice.model.folder import GRAPH, LITE, WEIGHTS, ModelFolder
from hanlattice.model.weights import save_weights
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare

TEXTS = [
    "李明在北京工作。",
    "",
    "王",
    "王小红和渝中区",
    "人和药店的长江大桥局很好,赵子龙说" * 9,  # more than a window
    "Ａ公司 \t今天天气很好😀",
    "没有一个词认得",
]
WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else found(name, *rest)
"""

pytestmark = pytest.mark.filterwarnings("ignore")  # of the exporter's own


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_TORCH + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def exported_by_command(source: Path, target: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run ``hanlattice export`` in this process: importing the exporter's packages again takes seconds."""
    command = ["export", str(source), str(target), *options]
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), switched_off(), pytest.raises(SystemExit) as left:
        main(command)
    return subprocess.CompletedProcess(command, int(left.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with live words, stored in 16 bits."""
    folder = tmp_path_factory.mktemp("export") / "model"
    shutil.copytree(tiny.trained(), folder)
    save_weights(tiny.ner().tagger.state_dict(), folder / WEIGHTS, precision="float16")
    return folder


@pytest.fixture(scope="module")
def exported(trained: Path) -> Path:
    folder = trained.parent / "exported"
    done = exported_by_command(trained, folder)
    assert done.returncode == 0, done.stderr
    assert "emissions within" in done.stdout
    return folder


@pytest.fixture(scope="module", autouse=True)
def trace_once() -> Iterator[None]:
    """Trace each model folder once, however often it is exported: tracing takes most of the time."""
    traced, done = export_module._traced, dict[Path, export_module._Traced]()

    def kept(ner: hanlattice.NER, folder: ModelFolder) -> export_module._Traced:
        if folder.path not in done:
            done[folder.path] = traced(ner, folder)
        return replace(done[folder.path], proto=deepcopy(done[folder.path].proto))  # quantisation changes it

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_module, "_traced", kept)
        yield


def same(a: hanlattice.Document, b: hanlattice.Document) -> bool:
    pairs = zip(a.entities, b.entities, strict=True)
    return all(x.span == y.span and abs((x.score or 0) - (y.score or 0)) < 1e-3 for x, y in pairs)


def test_the_same_entities(trained: Path, exported: Path) -> None:
    torchs, onnxs = hanlattice.load(trained, engine="torch"), hanlattice.load(exported, engine="onnx")
    assert hanlattice.load(exported, engine="torch").tagger is not None
    with pytest.raises(HanlatticeError, match="engine='torch'"):
        _ = onnxs.tagger
    expected = list(torchs(TEXTS))
    assert sum(len(d.entities) for d in expected) > 10
    assert all(same(a, b) for a, b in zip(expected, onnxs(TEXTS), strict=True))
    assert all(same(a, onnxs(a.text)) for a in expected)
    documents = tiny.documents()
    assert hanlattice.evaluate(onnxs, documents).micro == hanlattice.evaluate(torchs, documents).micro


def test_a_linear_tagger_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="lite_model is a linear tagger, which runs without torch as it is"):
        export(LITE, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_lexicon_is_live(trained: Path, exported: Path) -> None:
    """Words of lengths that the graph never met, many of them and one of a window's length."""
    torchs, onnxs = hanlattice.load(trained, engine="torch"), hanlattice.load(exported, engine="onnx")
    text = "人和药店的长江大桥局很好赵子龙说" * 4
    words = [text[i : i + n] for n in range(1, 12) for i in range(0, 16, 3)] + [text[:64], text[5:60]]
    for ner in (torchs, onnxs):
        ner.lexicon.update(words)
    assert len(tiny.lattice(onnxs(text))) > 150
    assert same(torchs(text), onnxs(text))


def test_without_torch(exported: Path, trained: Path) -> None:
    code = """
import hanlattice
ner = hanlattice.load(sys.argv[1], engine="onnx")
print([(e.text, e.label) for e in ner(sys.argv[2]).entities])
print(hanlattice.evaluate(ner, sys.argv[4]).micro.f1 > 0.9, "torch" in sys.modules)
for verb in (lambda: hanlattice.load(sys.argv[3], engine="torch"), lambda: hanlattice.train(output="x")):
    try:
        verb()
    except hanlattice.HanlatticeError as error:
        print(error)
"""
    done = run(code, str(exported), TEXTS[0], str(trained), str(tiny.folder() / "corpus.bmes"))
    assert done.returncode == 0, done.stderr
    entities, scored, load, train = done.stdout.splitlines()
    assert entities == "[('李明', 'PER'), ('北京', 'LOC')]"
    assert scored == "True False"
    assert load == "engine='torch' needs torch: pip install 'hanlattice[train]'"
    assert train == "training needs torch: pip install 'hanlattice[train]'"


def test_commands_without_torch(exported: Path) -> None:
    done = run("from hanlattice.cli import main; main()", "predict", TEXTS[0], "--model", str(exported))
    assert "李明" in done.stdout, done.stderr
    done = run("from hanlattice.cli import main; main()", "info", str(exported))
    assert "torch       not installed; to train: pip install" in done.stdout, done.stderr
    done = run("from hanlattice.cli import main; main()", "export", str(exported), "x")
    assert (done.returncode, done.stderr) == (1, "error: export needs torch: pip install 'hanlattice[train]'\n")
    for purpose, *arguments in (
        ("training", "train", "--train", "x", "--output", "y"),
        ("comparing systems", "compare", "equal/flat", "--output", "y"),
    ):
        done = run("from hanlattice.cli import main; main()", *arguments)
        assert done.stderr == f"error: {purpose} needs torch: pip install 'hanlattice[train]'\n"
    corpus = str(tiny.folder() / "corpus.bmes")
    done = run("from hanlattice.cli import main; main()", "evaluate", str(exported), corpus)
    assert "micro" in done.stdout, done.stderr


def test_weights_of_another_model(exported: Path, tmp_path: Path) -> None:
    for name in exported.iterdir():
        (tmp_path / name.name).write_bytes(name.read_bytes())
    ner = hanlattice.load(tmp_path, engine="torch")
    state = ner.tagger.state_dict()
    state["decoder.emission.bias"] += 1
    save_weights(state, tmp_path / WEIGHTS, precision="float16")
    with pytest.raises(ModelError, match="was not exported from this"):
        hanlattice.load(tmp_path, engine="onnx")
    (tmp_path / GRAPH).write_bytes(b"no graph")
    with pytest.raises(ModelError, match="export the model again"):
        hanlattice.load(tmp_path, engine="onnx")


def test_eight_bits_behind_a_gate(trained: Path, tmp_path: Path) -> None:
    corpus = str(tiny.folder() / "corpus.bmes")
    done = exported_by_command(trained, tmp_path / "int8", "--int8", "--dev", corpus, "--most-lost", "5")
    assert done.returncode == 0, done.stderr
    assert "with int8" in done.stdout
    assert {e.text for e in hanlattice.load(tmp_path / "int8", engine="onnx")(TEXTS[0]).entities} == {
        "李明",
        "北京",
    }
    done = exported_by_command(trained, tmp_path / "none", "--int8")
    assert "name a corpus with --dev" in done.stderr
    done = exported_by_command(trained, tmp_path / "none", "--dev", corpus)
    assert "--dev measures what int8 loses; add --int8, or leave out --dev" in done.stderr
    with switched_off(), pytest.raises(ModelError, match="with int8 F1 on dev falls from"):
        export(trained, tmp_path / "none", int8=True, most_lost=-1, dev=tiny.documents())
    assert [path.name for path in tmp_path.iterdir()] == ["int8"]


@pytest.mark.parametrize(("before", "after"), [(0.9, 0.89), (0.9, 0.9), (0.5, 0.9)])
def test_int8_may_lose_a_little_or_gain(before: float, after: float) -> None:
    _refuse_loss(before, after, 0.011)


def test_int8_may_not_lose_more() -> None:
    with pytest.raises(ModelError, match=r"falls from 90\.00 to 88\.00, more than 1\.00"):
        _refuse_loss(0.9, 0.88, 0.01)


@pytest.mark.parametrize(("before", "after"), [(0.9, 0.8), (0.8, 0.9)], ids=["loses", "gains"])
def test_the_gate_compares_f1_before_with_f1_after(
    before: float, after: float, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    f1 = iter([before, after])
    monkeypatch.setattr(export_module, "_f1", lambda ner, dev: next(f1))
    with switched_off():
        if after > before:
            done = export(trained, tmp_path / "new", int8=True, most_lost=0.05, dev=tiny.documents())
            assert (done.float_f1, done.int8_f1) == (before, after)
        else:
            with pytest.raises(ModelError, match=r"falls from 90\.00 to 80\.00, more than 5\.00"):
                export(trained, tmp_path / "new", int8=True, most_lost=0.05, dev=tiny.documents())
    assert (tmp_path / "new").exists() == (after > before)


@pytest.mark.parametrize("difference", [2 * TOLERANCE, float("inf"), float("nan")])
def test_a_graph_with_other_emissions_is_refused(difference: float, tmp_path: Path) -> None:
    _refuse_difference(TOLERANCE, tmp_path)
    with pytest.raises(ModelError, match="exported emissions differ by"):
        _refuse_difference(difference, tmp_path)


def test_nothing_is_written_if_emissions_differ(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hanlattice.engines.export.TOLERANCE", -1.0)
    message = r"exported emissions differ by .*; nothing is written"
    with switched_off(), pytest.raises(ModelError, match=message):
        export(trained, tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []


def test_the_difference_of_emissions_is_measured(trained: Path, exported: Path) -> None:
    ner = hanlattice.load(trained, engine="torch")
    assert 0 < _difference(ner, exported) < TOLERANCE
    with torch.no_grad():
        ner.tagger.get_parameter("decoder.emission.bias")[1] += 0.5
    assert _difference(ner, exported) == pytest.approx(0.5, abs=TOLERANCE)


def test_what_exists_is_left_alone(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="exists already"):
        export(trained, tmp_path)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"decoder": {"name": "biaffine"}}, "decoder 'biaffine' cannot be exported; crf and softmax can"),
        ({"encoder": {"name": "lattice_lstm", "d_hidden": 8}}, "encoder 'lattice_lstm' cannot be exported"),
        ({"encoder": {"layers": 2}}, "has 2 layers"),
        ({"encoder": {"name": "bilstm", "d_hidden": 8}}, "encoder 'bilstm' has LSTMs.*engine numpy"),
        ({"embedding": {"name": "soft_lexicon"}, "encoder": {"name": "none"}}, "'soft_lexicon' cannot be"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value),
)
def test_what_cannot_be_exported(settings: dict[str, dict[str, object]], reason: str, tmp_path: Path) -> None:
    given = tiny.settings(epochs=1)
    for part, changes in settings.items():
        given[part] = changes if "name" in changes else given[part] | changes
    hanlattice.train(output=tmp_path / "model", settings=given)
    with pytest.raises(ModelError, match=reason):
        export(tmp_path / "model", tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


def test_an_encoder_of_characters(tmp_path: Path) -> None:
    given = tiny.settings(epochs=6) | {
        "encoder": {"name": "tener", "d_model": 16, "heads": 2, "d_feed_forward": 24}
    }
    hanlattice.train(output=tmp_path / "model", settings=given)
    done = exported_by_command(tmp_path / "model", tmp_path / "exported")
    assert done.returncode == 0, done.stderr
    pairs = zip(
        hanlattice.load(tmp_path / "model")(TEXTS), hanlattice.load(tmp_path / "exported")(TEXTS), strict=True
    )
    assert all(same(a, b) for a, b in pairs)


VARIANTS: dict[str, dict[str, object]] = {
    "paper": {},
    "code": {"residual": "self", "distances": "ends", "key_projection": False, "origin": 178},
    "scaled": {"scaled": True, "output_projection": True},
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_the_graph_gives_the_same_emissions(variant: dict[str, object]) -> None:
    torch.manual_seed(0)
    ner = prepare(tiny.config().with_settings({"encoder": variant}), "cpu", Silent()).ner
    encoder = ner.tagger.encoder
    assert isinstance(encoder, Flat)
    graph = FlatGraph(ner.tagger, 64).eval()
    texts = [text for text in TEXTS if 0 < len(text) <= 64]
    for some in (texts, texts[:1], texts[1:2], texts[-1:], texts * 8):
        sentences = ner.reader.read(some, ner.lexicon)
        given = {name: torch.from_numpy(array) for name, array in feeds(sentences).items()}
        batch = collate(sentences)
        with torch.inference_mode():
            found, expected = graph(**{name: given[name] for name in graph.inputs}), ner.tagger(batch)
        torch.testing.assert_close(found[batch.mask], expected[batch.mask], atol=2e-5, rtol=1e-5)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Let the system refuse writes beyond a size in bytes, as on a full disk."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(
    ("most", "said"), [(5_000, f"{WEIGHTS}: cannot be copied"), (40_000, "model.onnx: cannot be")]
)
def test_a_full_disk_is_one_line(trained: Path, tmp_path: Path, most: int, said: str) -> None:
    """As no file may grow beyond a size here: the copy of the weights, or the graph."""
    with no_file_above(most):
        done = exported_by_command(trained, tmp_path / "new")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert "File too large" in line
    assert not (tmp_path / "new").exists()

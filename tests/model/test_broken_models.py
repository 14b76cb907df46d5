"""Folders of models that are broken or made by someone hostile: refused in one line before anything reads them."""

import copy
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import hanlattice
import tiny
from hanlattice.api import EngineName, open_model
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS, own_parts
from hanlattice.build.settings import parameters_of, setting_types
from hanlattice.cli import _command, main
from hanlattice.config.files import load_config
from hanlattice.embeddings.words import LONGEST
from hanlattice.engines import known_settings, shapes
from hanlattice.engines.native import flat
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.engines.numpy.tagger import NumpyTagger
from hanlattice.errors import ConfigError, DataError, EngineError, HanlatticeError, ModelError
from hanlattice.kernels import library
from hanlattice.model.digests import CHECKPOINT, RECORD, digest, faults
from hanlattice.model.folder import (
    CARD,
    CASCADE,
    CONFIG,
    ENSEMBLE,
    GRAPH,
    LEXICON,
    LOG,
    SCALE,
    TAGS,
    VOCABULARY,
    WEIGHTS,
)
from hanlattice.model.saving import save
from hanlattice.model.weights import save_model, save_weights
from hanlattice.pipeline import NER
from hanlattice.training import Silent
from hanlattice.training.fine_tuning import settings_for_fine_tuning
from hanlattice.training.prepare import prepare

ENGINES = ("native", "torch", "auto")
TEXT = "李明在北京工作。"

needs_kernels = pytest.mark.skipif(not library.levels(), reason="no C compiler, or no processor with AVX2 or NEON")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two conventions that all engines read but ONNX Runtime, its tables in 8 bits."""
    place = tmp_path_factory.mktemp("broken") / "model"
    shutil.copytree(tiny.two_conventions(), place)
    ner = hanlattice.load(place, engine="torch")
    save_weights(ner.tagger.state_dict(), place / WEIGHTS)
    weights = load_file(place / WEIGHTS)
    for name in shapes.TABLES & weights.keys():
        scale = np.abs(weights[name]).max(1, keepdims=True).astype(np.float16) / np.float16(127) + np.float16(1e-4)
        weights[name] = np.rint(weights[name] / scale).astype(np.int8)
        weights[name + SCALE] = scale
    save_file(weights, place / WEIGHTS)
    hanlattice.load(place)(TEXT)
    return place


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "model", ignore=shutil.ignore_patterns(CHECKPOINT))
    return tmp_path / "model"


def refused(folder: Path, engine: EngineName = "auto", **options: Any) -> str:
    """The line that says why; it is the model that is broken, and not a matter of the engine."""
    with pytest.raises(ModelError) as error:
        hanlattice.load(folder, engine=engine, **options)
    assert not isinstance(error.value, EngineError), error.value
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)
    return str(error.value)


def _with_nan(array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    changed.reshape(-1)[-1] = np.nan
    return changed


def _with_infinity(array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    changed.reshape(-1)[0] = -np.inf
    return changed


LIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a row less": lambda a: a[:-1],
    "a row more": lambda a: np.concatenate([a, a[:1]]),
    "a column less": lambda a: a[..., :-1] if a.ndim > 1 else a[:1],
    "flat": lambda a: a.reshape(-1) if a.ndim > 1 else a[None],
    "empty": lambda a: a[:0],
    "whole numbers": lambda a: a.astype(np.int32),
    "bytes without a scale": lambda a: a.astype(np.int8),
    "not a number": _with_nan,
    "infinity": _with_infinity,
}


@needs_kernels
@pytest.mark.parametrize("lie", LIES)
def test_every_weight_is_checked(folder: Path, lie: str) -> None:
    """What torch refuses too, or would never notice; the kernels would read and write out of bounds."""
    whole = load_file(folder / WEIGHTS)
    for name, array in whole.items():
        if lie in ("not a number", "infinity", "bytes without a scale", "whole numbers") and array.dtype == np.int8:
            continue  # of these there is nothing that is not finite, and they have scales
        save_file({**whole, name: np.ascontiguousarray(LIES[lie](array))}, folder / WEIGHTS)
        assert "weights" in refused(folder, "native")


@needs_kernels
def test_missing_and_additional_weights_are_refused(folder: Path) -> None:
    whole = load_file(folder / WEIGHTS)
    for name in whole:
        save_file({k: v for k, v in whole.items() if k != name}, folder / WEIGHTS)
        refused(folder, "native")
    for name in ("encoder.nothing.weight", "decoder.emission.weight" + SCALE, "encoder.layers.1.attention.u"):
        save_file({**whole, name: np.zeros((3, 1), np.float32)}, folder / WEIGHTS)
        refused(folder, "native")
    save_file(whole, folder / WEIGHTS)
    hanlattice.load(folder, engine="native")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_weights_that_are_not_finite_are_refused(folder: Path, engine: EngineName, value: float, kind: Any) -> None:
    whole = load_file(folder / WEIGHTS)
    for name in (
        *("encoder.char_projection.weight", "decoder.transitions", "embedding.chars.weight" + SCALE),
        *("conventions.names.shift", "conventions.names.decoder.transitions"),
    ):
        changed = whole[name].astype(kind)
        changed.reshape(-1)[3] = value
        save_file({**whole, name: changed}, folder / WEIGHTS)
        assert "not finite" in refused(folder, engine) or "finite numbers" in refused(folder, engine)


@needs_kernels
def test_weights_with_products_that_are_not_finite_are_refused(folder: Path) -> None:
    whole = load_file(folder / WEIGHTS)
    large = {
        name: np.full_like(whole[name], 1e30)
        for name in ("encoder.char_projection.weight", "encoder.layers.0.attention.query.weight")
    }
    save_file({**whole, **large}, folder / WEIGHTS)
    with pytest.warns(RuntimeWarning):
        assert "products of them are not finite" in refused(folder, "native")
    name = "conventions.names.shift"
    save_file({**whole, name: np.full_like(whole[name], 3e38)}, folder / WEIGHTS)
    with np.errstate(all="ignore"):
        assert "products of them are not finite" in refused(folder, "native")


@needs_kernels
def test_int8_matrices_other_than_tables_are_read(folder: Path) -> None:
    """As they are stored where they have more than a thousand rows, such as a wide feed-forward."""
    whole = load_file(folder / WEIGHTS)
    name = "encoder.layers.0.feed_forward.inner.weight"
    scale = np.abs(whole[name]).max(1, keepdims=True) / 127
    small = {name: np.rint(whole[name] / scale).astype(np.int8), name + SCALE: scale.astype(np.float16)}
    save_file({**whole, **small}, folder / WEIGHTS)
    texts = [document.text for document in tiny.documents()]
    native, by_torch = (hanlattice.load(folder, engine=engine) for engine in ("native", "torch"))
    for a, b in zip(native(texts), by_torch(texts), strict=True):
        assert a.spans == b.spans
        assert np.allclose(tiny.scores(a), tiny.scores(b), atol=1e-3)


@needs_kernels
@pytest.mark.parametrize(("beyond", "is_read"), [(0, True), (2, False)])
def test_the_largest_size_that_the_kernels_have_memory_for(beyond: int, is_read: bool) -> None:
    """64 vectors; with more of them arrays on the stack would overflow. Both sides of the limit, on every level."""
    for level in library.levels():
        lanes = library.opened(level).lanes()
        d_model = (flat.PARTS + beyond) * lanes
        if is_read:
            flat.refuse_sizes(4, d_model // 4, lanes)
        else:
            with pytest.raises(
                EngineError, match=rf"at most {flat.PARTS * lanes:,}, not 4 heads of {d_model // 4}"
            ):
                flat.refuse_sizes(4, d_model // 4, lanes)


@needs_kernels
@pytest.mark.parametrize("vectors", [flat.PARTS, flat.PARTS + 2, 2 * flat.PARTS])
def test_models_at_and_beyond_the_largest_size(vectors: int, tmp_path: Path) -> None:
    """The kernels run the largest, and numpy larger ones, without a crash. Both compute the emissions of torch."""
    torch.manual_seed(0)
    size = {"d_model": vectors * library.require_kernels().lanes(), "heads": 4}
    ner = prepare(tiny.config().with_settings({"encoder": size}), "cpu", Silent()).ner
    place = tmp_path / "model"
    save_model(place, ner.tagger, ner.vocabulary, ner.lexicon, ner.config)
    if vectors > flat.PARTS:
        with pytest.raises(EngineError, match="the C kernels need heads that divide"):
            hanlattice.load(place, engine="native")
    opened, by_torch = open_model(place), hanlattice.load(place, engine="torch")
    assert opened.engine == ("native" if vectors <= flat.PARTS else "numpy")
    encoded = opened.ner.reader.read([TEXT], opened.ner.lexicon)
    assert isinstance(opened.ner.engine, NativeTagger | NumpyTagger)
    emissions = opened.ner.engine.emissions(encoded)
    from hanlattice.inputs.batch import collate

    with torch.inference_mode():
        expected = by_torch.tagger(collate(encoded))[0].numpy()
    np.testing.assert_allclose(emissions[:, : expected.shape[1]], expected, atol=5e-4, rtol=1e-3)


def status(*arguments: str) -> int:
    """Of a command."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    return int(ended.value.code or 0)


def changed(folder: Path, table: str, line: str) -> None:
    """A line under a table of the settings, instead of the one with the same key."""
    path, key = folder / CONFIG, line.partition(" ")[0]
    head, _, rest = path.read_text(encoding="utf-8").partition(f"[{table}]\n")
    own, mark, others = rest.partition("\n[")
    kept = [old for old in own.split("\n") if old.partition(" ")[0] != key]
    path.write_text("\n".join([f"{head}[{table}]", line, *kept]) + mark + others, encoding="utf-8")


@needs_kernels
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("table", "line", "said"),
    [
        ("encoder", 'residual = "bogus"', "encoder.residual must be one of 'input', 'self', not 'bogus'"),
        ("encoder", 'scaled = "no"', "encoder.scaled must be of type bool, not 'no'"),
        ("encoder", "scaled = 1", "encoder.scaled must be of type bool, not 1"),
        ("encoder", 'distances = "five"', "encoder.distances must be one of"),
        ("encoder", "origin = 1.5", "encoder.origin must be of type int"),
        ("encoder", "origin = 100000", "encoder.origin must be at least -65,536 and at most"),
        ("encoder", "heads = 0", "encoder.heads must be at least 1"),
        ("encoder", "heads = 5", r"d_model \(32\) must be a multiple of heads \(5\)"),
        ("encoder", "headds = 4", "encoder 'flat' has no setting 'headds'; did you mean 'heads'"),
        ("encoder", "d_model = 64", "weights do not fit the settings and vocabulary"),
        ("encoder", "key_projection = false", "weights do not fit the settings and vocabulary"),
        ("encoder", "composition = false", "weights do not fit the settings and vocabulary"),
        ("embedding", "bigrams = false", "weights do not fit the settings and vocabulary"),
        ("embedding", "dropout = 7", "embedding.dropout must be at least 0 and below 1, not 7"),
        ("decoder", 'scheme = "BIOUX"', "decoder.scheme must be one of"),
        ("decoder", 'constrained = "yes"', "decoder.constrained must be of type bool"),
        ("decoder", "extra_tags = -1", "decoder.extra_tags must be at least 0"),
        ("decoder", "extra_tags = 1", "weights do not fit the settings and vocabulary"),
        ("decoder", "boundaries = false", "weights do not fit the settings and vocabulary"),
        ("conventions.names.decoder", 'scheme = "BIOUX"', "conventions.names.decoder.scheme must be one of"),
        ("conventions.names.decoder", "schema = 1", "conventions.names.decoder 'crf' has no setting 'schema'"),
        ("conventions.names.decoder", "extra_tags = 1", "weights do not fit the settings and vocabulary"),
        ("conventions.names.decoder", "boundaries = false", "weights do not fit the settings and vocabulary"),
        ("conventions.names", "weight = -1", "'conventions.names.weight' must be at least 0"),
        ("conventions.names", 'edges = "none"', "'conventions.names.edges' must be one of"),
        ("lexicon", "min_word_length = 0", "'lexicon.min_word_length' must be at least 1"),
        ("lexicon", 'counts = "some"', "'lexicon.counts' must be one of"),
        ("text", "window = 3", "'text.window' must be at least 4"),
        ("text", "window = 16", r"text.overlap \(16\) must be below text.window \(16\)"),
    ],
)
def test_invalid_settings_of_a_folder_are_refused(
    folder: Path, engine: EngineName, table: str, line: str, said: str
) -> None:
    changed(folder, table, line)
    with pytest.raises(ModelError, match=said) as error:
        hanlattice.load(folder, engine=engine)
    assert not isinstance(error.value, EngineError)


@needs_kernels
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("user_words", False, "weights do not fit"),
        ("user_words", 1, "user_words is neither true nor false"),
        ("word_labels", ["PER", "LOC"], "weights do not fit"),
        ("labels", [["PER"], "LOC", "ORG"], "not a vocabulary of hanlattice"),
        ("labels", [1, 2, 3], "1 is not a string"),
        ("convention", ["open"], r"\['open'\] is not a string"),
        ("convention", "names", "the convention 'names' is there twice"),
        ("conventions", ["names"], "not a vocabulary of hanlattice"),
        ("conventions", {"names": ["name", 1]}, "1 is not a string"),
        ("conventions", {"names": ["name"]}, "weights do not fit"),
        ("conventions", {}, "weights do not fit"),
        ("conventions", {"other": ["name"]}, "there are no settings conventions.other"),
    ],
)
def test_invalid_conventions_of_a_vocabulary_are_refused(
    folder: Path, engine: EngineName, field: str, value: Any, said: str
) -> None:
    fields = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
    (folder / VOCABULARY).write_text(json.dumps({**fields, field: value}), encoding="utf-8")
    assert re.search(said, refused(folder, engine))


def test_a_convention_name_that_torch_reserves_is_refused(folder: Path) -> None:
    for name in (VOCABULARY, CONFIG):
        text = (folder / name).read_text(encoding="utf-8")
        text = text.replace('"names"', '"keys"').replace("[conventions.names", "[conventions.keys")
        (folder / name).write_text(text, encoding="utf-8")
    assert "conventions.keys: 'keys' means something else inside a model" in refused(folder, "torch")


def test_settings_known_without_torch_equal_those_of_the_modules() -> None:
    for kinds, builders in (
        (known_settings.EMBEDDINGS, EMBEDDINGS),
        (known_settings.ENCODERS, ENCODERS),
        (TAGS, DECODERS),
    ):
        for name, known in kinds.items():
            hints, keywords = setting_types(builders[name]), parameters_of(builders[name])
            assert {key: kind for key, (kind, _) in known.items()} == hints
            assert {key: value for key, (_, value) in known.items()} == {k: a.default for k, a in keywords.items()}
    assert shapes.LONGEST == LONGEST


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_truncated_weights_are_named(folder: Path, engine: EngineName, kept: int) -> None:
    """And not a graph beside them, which is whole."""
    (folder / GRAPH).write_bytes(b"a graph that another engine would try")
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:kept])
    said = refused(folder, engine)
    assert WEIGHTS in said
    assert GRAPH not in said


def made_endless(path: Path, kind: str) -> None:
    """Put something that is no file, or that never ends, in the place of a file."""
    path.unlink(missing_ok=True)
    match kind:
        case "device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "link to itself":
            path.symlink_to(path.name)
        case "folder":
            path.mkdir()


@pytest.mark.parametrize("kind", ["device", "pipe", "link to itself", "folder"])
@pytest.mark.parametrize("name", [WEIGHTS, VOCABULARY, CONFIG, LEXICON])
def test_what_is_not_a_file_is_refused(folder: Path, name: str, kind: str) -> None:
    made_endless(folder / name, kind)
    with pytest.raises(HanlatticeError) as error:
        hanlattice.load(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)
    if name == CONFIG:
        with pytest.raises(ConfigError, match="not a file"):
            settings_for_fine_tuning(str(folder))


@pytest.mark.parametrize("kind", ["device", "pipe", "link to itself", "folder"])
@pytest.mark.parametrize("name", [CARD, LOG, GRAPH, ENSEMBLE, CASCADE, RECORD])
def test_other_things_that_are_not_files_are_not_read(folder: Path, name: str, kind: str) -> None:
    made_endless(folder / name, kind)
    assert hanlattice.load(folder)(TEXT).entities
    if name in (CARD, LOG):
        assert open_model(folder).engine
    if name == RECORD:
        (said,) = faults(folder)
        assert said.startswith(f"{RECORD}: ")


def test_a_copy_of_a_model_holds_files_only(folder: Path, tmp_path: Path) -> None:
    """Links to files are followed, but not devices, pipes and links to folders, which may lead round in circles."""
    (tmp_path / "elsewhere.json").write_text("{}", encoding="utf-8")
    (folder / "language").mkdir()
    (folder / "language" / "tokenizer.json").symlink_to(tmp_path / "elsewhere.json")
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "circle").symlink_to(".")
    (folder / "root").symlink_to("/")
    (folder / "nowhere").symlink_to("nothing")
    os.mkfifo(folder / "language" / "pipe")
    whole = {path.name for path in folder.iterdir()} - {"endless", "circle", "root", "nowhere"}
    save(hanlattice.load(folder), tmp_path / "copy")
    assert {path.name for path in (tmp_path / "copy").iterdir()} == whole | {RECORD}
    assert [path.name for path in (tmp_path / "copy" / "language").iterdir()] == ["tokenizer.json"]
    assert (tmp_path / "copy" / "language" / "tokenizer.json").read_text(encoding="utf-8") == "{}"
    assert not (tmp_path / "copy" / "language" / "tokenizer.json").is_symlink()
    assert not list(faults(tmp_path / "copy"))


def test_a_copy_inside_the_model_is_refused(folder: Path, tmp_path: Path) -> None:
    """It would be copied into itself until the disk is full."""
    before = sorted(folder.iterdir())
    (tmp_path / "link").symlink_to(folder)
    for place in (folder / "copy", tmp_path / "link" / "copy"):
        with pytest.raises(ModelError, match="cannot be copied into itself; name a new folder outside of it"):
            save(hanlattice.load(folder), place)
        assert sorted(folder.iterdir()) == before
    beside = folder.with_name(f"{folder.name}-2")
    assert save(hanlattice.load(folder), beside) == beside


def test_a_file_that_cannot_be_copied_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ner = hanlattice.load(folder)

    def copytree(source: Path, target: Path, **options: object) -> None:
        reason = f"[Errno 28] No space left on device: '{source / CARD}' -> '{target / CARD}'"
        raise shutil.Error([(str(source / CARD), str(target / CARD), reason)])

    monkeypatch.setattr(shutil, "copytree", copytree)
    with pytest.raises(DataError) as raised:
        save(ner, tmp_path / "copy")
    assert str(raised.value) == f"{folder / CARD}: cannot be copied to {CARD}: No space left on device"
    assert not list(tmp_path.glob("*copy*"))


def test_every_copy_of_a_model_is_made_that_way() -> None:
    package = Path(hanlattice.__file__).parent
    copies = [path for path in package.rglob("*.py") if "copytree" in path.read_text(encoding="utf-8")]
    assert copies == [package / "model" / "copies.py"]


@pytest.mark.parametrize("base", ["../other.toml", "/etc/passwd", "/dev/zero", "config.toml"])
def test_settings_of_a_model_name_no_other_file(folder: Path, base: str) -> None:
    path = folder / CONFIG
    path.write_text(f'base = "{base}"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert "the settings of a model have no 'base'" in refused(folder)
    with pytest.raises(ConfigError, match="have no 'base'"):
        settings_for_fine_tuning(str(folder))


def test_a_broken_graph_is_named_by_engines_that_read_it(tmp_path: Path) -> None:
    place = tmp_path / "model"
    hanlattice.train(output=place, settings=tiny.settings(epochs=1) | {"encoder": {"name": "none"}})
    (place / GRAPH).write_bytes(b"no graph")
    assert f"{GRAPH} cannot be run" in refused(place)
    assert hanlattice.load(place, engine="torch").tagger is not None


class TestWhichEngine:
    """An engine that is not made for a model is passed over; what is broken ends the search."""

    @needs_kernels
    def test_the_first_engine_that_runs_the_model_is_chosen(self, folder: Path) -> None:
        opened = open_model(folder)
        assert (opened.engine, opened.passed_over) == ("native", ())

    def test_reasons_against_other_engines_are_kept(self, tmp_path: Path) -> None:
        settings = tiny.settings(epochs=1) | {"decoder": {"name": "biaffine"}}
        opened = open_model(hanlattice.train(output=tmp_path / "model", settings=settings).folder)
        assert opened.engine == "torch"
        (native, why), (onnx, why_not), (numpy, _) = opened.passed_over
        assert (native, onnx, numpy) == ("native", "onnx", "numpy")
        assert "neither C kernels nor numpy run the decoder 'biaffine'" in why
        assert "cannot run the decoder 'biaffine'" in why_not

    def test_info_prints_the_engine_and_the_reasons(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = tiny.settings(epochs=1) | {"decoder": {"name": "biaffine"}}
        place = hanlattice.train(output=tmp_path / "model", settings=settings).folder
        assert status("info", str(place)) == 0
        out = capsys.readouterr().out
        assert (
            "engine      torch: the first that runs this model, after native, onnx and numpy\n"
            "            not native: "
        ) in out
        assert "\n            not onnx: " in out

    def test_info_of_a_broken_model_is_a_one_line_error(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / WEIGHTS).write_bytes(b"")
        assert status("info", str(folder)) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"error: {folder / WEIGHTS}: broken")
        assert err.count("\n") == 1


class TestDigests:
    def test_a_saved_model_has_no_faults(self, folder: Path, tmp_path: Path) -> None:
        ner = hanlattice.load(folder, engine="torch")
        saved = tmp_path / "saved"
        save_model(saved, ner.tagger, ner.vocabulary, ner.lexicon, ner.config, card="mine\n")
        assert not list(faults(saved))
        recorded = json.loads((saved / RECORD).read_text(encoding="utf-8"))
        assert recorded == {path.name: digest(path) for path in saved.iterdir() if path.name != RECORD}
        assert not list(faults(tiny.trained()))

    def test_verify_prints_a_line_for_each_fault(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        shutil.copytree(tiny.trained(), folder, dirs_exist_ok=True)
        assert status("info", str(folder), "--verify") == 0
        assert capsys.readouterr().out == f"{folder}: all files are as they were saved\n"
        (folder / CHECKPOINT).unlink()  # which is no part of the model
        data = bytearray((folder / WEIGHTS).read_bytes())
        data[-1] ^= 1
        (folder / WEIGHTS).write_bytes(data)
        (folder / CARD).unlink()
        (folder / "language").mkdir()
        (folder / "language" / "tokenizer.json").write_text("{}", encoding="utf-8")
        assert status("info", str(folder), "--verify") == 1
        assert capsys.readouterr().out.splitlines() == [
            f"{CARD}: missing",
            "language/tokenizer.json: not there when the model was saved",
            f"{WEIGHTS}: changed since the model was saved",
        ]

    @pytest.mark.parametrize("record", [None, "[]", "{", "[" * 100_000, '{"../../secret": "x"}'])
    def test_broken_records_are_faults(self, folder: Path, record: str | None) -> None:
        for path in folder.iterdir():
            path.unlink()
        if record is not None:
            (folder / RECORD).write_text(record, encoding="utf-8")
        (said,) = faults(folder)
        assert said.startswith((RECORD, "../../secret: missing"))


FOREIGN = """
from pathlib import Path
Path(__file__).with_name("was-run").write_text("", encoding="utf-8")
from hanlattice.encoders.bilstm import BiLSTM as Real
class Encoder(Real):
    def __init__(self, d_in, tables, *, d_hidden: int = 8):
        super().__init__(d_in, d_hidden=d_hidden)
"""


class TestOwnParts:
    """A folder can name code; it runs only where the caller trusts it."""

    @pytest.fixture
    def own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "foreign").mkdir()
        (tmp_path / "foreign" / "evil.py").write_text(FOREIGN, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        for name in ("foreign", "foreign.evil"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        settings = tiny.settings(epochs=1) | {"encoder": {"name": "foreign.evil:Encoder", "d_hidden": 6}}
        run = hanlattice.train(output=tmp_path / "model", settings=settings)  # by the caller's own settings
        (tmp_path / "foreign" / "was-run").unlink()
        for name in ("foreign", "foreign.evil"):
            sys.modules.pop(name, None)
        return run.folder

    @pytest.mark.parametrize("engine", ["auto", "torch"])
    def test_own_parts_need_trust(self, own: Path, engine: EngineName) -> None:
        assert "'foreign.evil:Encoder' is code from outside this library" in refused(own, engine)
        assert not (own.parent / "foreign" / "was-run").exists()
        assert hanlattice.load(own, engine=engine, trust=True)(TEXT).text == TEXT
        assert (own.parent / "foreign" / "was-run").exists()

    def test_commands(self, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
        corpus = str(tiny.folder() / "corpus.bmes")
        for arguments in (
            ["predict", TEXT, "--model", str(own)],
            ["evaluate", str(own), corpus],
            ["info", str(own)],
        ):
            assert status(*arguments) == 1
            assert "with trust=True (--trust)" in capsys.readouterr().err
            assert status(*arguments, "--trust") == 0
        for command in ("predict", "evaluate", "calibrate", "explain", "export", "benchmark", "serve", "annotate"):
            assert "--trust" in {option for parameter in _command(command).params for option in parameter.opts}

    def test_own_parts_within_other_parts_need_trust(self, own: Path) -> None:
        for settings in (
            '[encoder]\nname = "augmented"\n[encoder.inner]\nname = "foreign.evil:Encoder"\n',
            '[embedding]\nname = "stack"\n[embedding.parts.a]\nname = "foreign.evil:Encoder"\n',
        ):
            (own / CONFIG).write_text(settings, encoding="utf-8")
            assert "is code from outside this library" in refused(own)
        assert not (own.parent / "foreign" / "was-run").exists()

    @pytest.mark.parametrize("engine", ["auto", "torch"])
    def test_own_decoders_of_conventions_need_trust(self, folder: Path, engine: EngineName) -> None:
        changed(folder, "conventions.names.decoder", 'name = "foreign.evil:Decoder"')
        said = refused(folder, engine)
        assert "conventions.names.decoder 'foreign.evil:Decoder' is code from outside this library" in said
        assert own_parts(load_config(folder / CONFIG)) == {"foreign.evil:Decoder"}

    def test_own_parts_of_a_start_need_trust(
        self, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Its code is not run for being named there; where one's own settings name the same, it is one's own."""
        start = {"training": {"start": str(own), "epochs": 1}}
        with pytest.raises(ModelError, match="is code from outside this library"):
            hanlattice.train(output=tmp_path / "a", settings=tiny.settings() | start)
        assert not (own.parent / "foreign" / "was-run").exists()
        corpus = str(tiny.folder() / "corpus.bmes")
        command = [
            "train",
            "--start",
            str(own),
            "--train",
            corpus,
            "--dev",
            corpus,
            "--output",
            str(tmp_path / "b"),
        ]
        vectors = ["--vectors", str(tiny.folder() / "vectors.safetensors"), "--training.epochs", "1", "--quiet"]
        vectors += ["--training.least_steps", "0"]
        assert status(*command, *vectors) == 1
        assert "'foreign.evil:Encoder', code from outside this library" in capsys.readouterr().err
        assert status(*command, *vectors, "--trust") == 0
        assert (tmp_path / "b" / CARD).exists()

    def test_parts_of_the_library_may_be_named_by_path(self, folder: Path) -> None:
        changed(folder, "decoder", 'name = "hanlattice.decoders.tagging:CRF"')
        assert hanlattice.load(folder)(TEXT).text == TEXT

    @pytest.mark.parametrize(
        "name",
        [
            "hanlattice.annotation.__main__:run",
            "hanlattice.decoders.tagging:torch",
            "hanlattice.files:atomic_write",
            "os:system",
        ],
    )
    def test_paths_of_other_objects_are_refused(self, folder: Path, name: str) -> None:
        changed(folder, "decoder", f'name = "{name}"')
        assert "is code from outside this library" in refused(folder)

    @pytest.mark.parametrize("name", [":", "a:", ":b", "a b:C", "a..b:C", "a:b:c", "..a:b", "a:b.c", "\\n:"])
    def test_invalid_part_names_are_refused(self, folder: Path, name: str) -> None:
        changed(folder, "decoder", f'name = "{name}"')
        assert "is neither the name of a part nor package.module:Class" in refused(folder, trust=True)
        with pytest.raises(ConfigError, match="neither the name of a part nor package"):
            hanlattice.train(output=folder / "x", settings=tiny.settings() | {"decoder": {"name": name}})


FORKED = """
import os, sys, signal
import hanlattice
from hanlattice.engines.native import tagger
tagger.NODES_OF_A_THREAD = 20
folder, engine, threads, text = sys.argv[1:]
ner = hanlattice.load(folder, engine=engine, threads=int(threads))
texts = [text] * 40
before = [d.spans for d in ner(texts)]
if sys.argv[2] == "native":
    assert ner.engine._pool._threads, "no thread was used"
ner._lock.acquire()  # as another thread may hold it that very moment
ner.lexicon._lock.acquire()
def ends_as(child):
    os._exit(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
def failed(*what):
    sys.__excepthook__(*what)
    os._exit(1)
sys.excepthook = failed
child = os.fork()
if child:
    ends_as(child)
signal.alarm(60)
ner.lexicon.add("花果山")
assert [d.spans for d in ner(texts)] == before
grandchild = os.fork()
if grandchild:
    ends_as(grandchild)
signal.alarm(60)
assert [d.spans for d in ner(texts)] == before
os._exit(0)
"""


def forked(folder: Path, engine: EngineName, threads: int) -> None:
    code = [sys.executable, "-c", FORKED, str(folder), engine, str(threads), TEXT]
    done = subprocess.run(code, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr


class TestForks:
    """A child has none of the threads of its parent, so it makes its own."""

    @needs_kernels
    def test_native(self, whole: Path) -> None:
        forked(whole, "native", 3)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_onnx(self, threads: int) -> None:
        forked(tiny.exported(), "onnx", threads)


def spans(ner: NER) -> list[Any]:
    return [document.spans for document in ner([d.text for d in tiny.documents()])]


class TestCopies:
    @pytest.mark.parametrize("engine", ["auto", "torch"])
    @pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda ner: pickle.loads(pickle.dumps(ner))])
    def test_the_folder_is_opened_again(
        self, whole: Path, engine: EngineName, copied: Callable[[NER], NER]
    ) -> None:
        ner = hanlattice.load(whole, engine=engine, threads=1)
        again = copied(ner)
        assert again is not ner
        assert type(again.engine) is type(ner.engine)
        assert getattr(again.engine, "threads", 1) == getattr(ner.engine, "threads", 1)
        assert spans(again) == spans(ner)
        again.lexicon.add("花果山")
        assert "花果山" not in ner.lexicon

    @pytest.mark.parametrize("engine", ["auto", "torch"])
    def test_the_convention_is_the_same(self, whole: Path, engine: EngineName) -> None:
        ner = hanlattice.load(whole, engine=engine, convention="names")
        ner.lexicon.add("花果山", label="place")
        again = pickle.loads(pickle.dumps(ner))
        assert (again.convention, again.labels) == ("names", ("name", "place"))
        assert spans(again) == spans(ner)
        with pytest.raises(DataError, match="has the label 'NOWHERE', which the model does not know"):
            again.lexicon.add("水帘洞", label="NOWHERE")
        with pytest.raises(DataError, match="more than the 64 that the model"):
            again.lexicon.add("洞" * 65)

    @pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda ner: pickle.loads(pickle.dumps(ner))])
    def test_a_convention_that_was_chosen_later_is_the_same(
        self, whole: Path, copied: Callable[[NER], NER]
    ) -> None:
        ner = hanlattice.load(whole)
        ner.convention = "names"
        again = copied(ner)
        assert (again.convention, again.labels) == ("names", ("name", "place"))
        assert spans(again) == spans(ner)
        again.convention = again.vocabulary.convention
        assert copied(again).convention == again.convention != ner.convention

    def test_only_lexicon_edits_are_copied(self, whole: Path) -> None:
        ner = hanlattice.load(whole)
        plain = len(pickle.dumps(ner))
        ner.lexicon.add("花果山", label="LOC", weight=2)
        ner.lexicon.remove("北京")
        data = pickle.dumps(ner)
        assert plain < 2000 < len(data)
        again = pickle.loads(data)
        assert list(again.lexicon.entries()) == list(ner.lexicon.entries())
        again.lexicon.add("ＡＢＣ")
        assert "ABC" in list(again.lexicon)  # written as the model reads, as before
        assert "花果山" in [word for _, _, word, _ in again("他在花果山").lattice]

    def test_the_packaged_model(self) -> None:
        ner = hanlattice.load()
        assert pickle.loads(pickle.dumps(ner))("马云在杭州").spans == ner("马云在杭州").spans

    def test_a_model_without_a_folder_cannot_be_copied(self, whole: Path) -> None:
        ner = hanlattice.load(whole, engine="torch")
        other = NER(ner.engine, ner.vocabulary, ner.lexicon, ner.config)
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(HanlatticeError, match="not loaded from a folder cannot be copied"):
                copied(other)

    def test_a_missing_folder_is_an_error(self, folder: Path) -> None:
        data = pickle.dumps(hanlattice.load(folder))
        shutil.rmtree(folder)
        with pytest.raises(ModelError, match="no such folder"):
            pickle.loads(data)


def test_an_unavailable_device_is_an_error(whole: Path) -> None:
    for device in ("cuda:99", "hpu"):
        with pytest.raises(ModelError, match=f"the device '{device}' cannot be used here") as error:
            hanlattice.load(whole, device=device)
        assert "\n" not in str(error.value)

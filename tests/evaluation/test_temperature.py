"""Calibrated copies of models predict the same entities with other confidences."""

import shutil
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest

import hanlattice
import tiny
from hanlattice import corpus
from hanlattice.cli import main
from hanlattice.config.files import load_config, read_toml
from hanlattice.corpus.labels import relabelled
from hanlattice.decoders.tagging import Softmax
from hanlattice.document import Document
from hanlattice.errors import DataError, ModelError
from hanlattice.evaluation.calibration import Confidences
from hanlattice.evaluation.temperature import HIGHEST, LOWEST, PRECISION, _fitted, calibrate, confidences, minimum
from hanlattice.model.digests import CHECKPOINT, faults
from hanlattice.model.folder import CARD, CONFIG, DEFAULT, ENSEMBLE, GRAPH, WEIGHTS
from hanlattice.model.weights import load_weights, save_weights, stored_precision

DECODERS: dict[str, dict[str, Any]] = {
    "crf": {},
    "softmax": {},
    "multilabel": {},
    "cascade_pointer": {"threshold": 0.3},
    "softmax_pointer": {"d_hidden": 12},
    "mrc": {"d_query": 16, "d_hidden": 12},
    "enumeration": {"d_hidden": 32, "width": 6, "dropout": 0.0},
    "token_pairs": {"d_hidden": 16, "objective": "log_sum_exp"},
    "biaffine": {"d_span": 8},
    "global_pointer": {"d_head": 8, "threshold": 0.6},
    "efficient_global_pointer": {"d_head": 8},
    "word_pairs": {"channels": 12, "d_hidden": 24, "d_biaffine": 8, "dropout": 0.0},
}


def partly_annotated() -> list[Document]:
    """The tiny corpus without a third of its entities, so that a model that predicts them is counted as wrong."""
    documents = tiny.documents()
    kept = [tuple(e for j, e in enumerate(d.entities) if (i + j) % 3) for i, d in enumerate(documents)]
    return [replace(d, entities=entities) for d, entities in zip(documents, kept, strict=True)]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "dev.jsonl"
    corpus.write(partly_annotated(), path, "jsonl")
    return path


def spans(ner: hanlattice.NER) -> list[list[Any]]:
    return [[e.span for e in document.entities] for document in ner([d.text for d in tiny.documents()])]


@pytest.mark.parametrize("name", DECODERS)
def test_calibration_lowers_the_loss_and_keeps_the_entities(name: str, dev: Path, tmp_path: Path) -> None:
    epochs = 60 if name in ("cascade_pointer", "multilabel") else 50 if name == "biaffine" else 40
    settings = tiny.settings(epochs=epochs, evaluate_from=epochs)
    settings["decoder"] = {"name": name, **DECODERS[name]}
    if name == "biaffine":
        settings["encoder"] |= {"d_model": 16}  # with which it learns sooner
    elif name != "crf":  # which is also run by the engines without torch
        settings["encoder"] = {"name": "bilstm", "d_hidden": 10}
    hanlattice.train(output=tmp_path / "model", settings=settings)
    done = calibrate(tmp_path / "model", dev, tmp_path / "calibrated")
    assert done.temperature > 1  # the model was overconfident
    assert done.after.loss < done.before.loss
    ner = hanlattice.load(tmp_path / "calibrated", engine="torch")  # the engine that calibrated it
    assert confidences(ner, partly_annotated()) == done.after
    assert spans(ner) == spans(hanlattice.load(tmp_path / "model"))
    threshold = DECODERS[name].get("threshold", 0.5)
    written = load_config(tmp_path / "calibrated" / CONFIG).decoder.settings.get("threshold", 0.5)
    assert log(written / (1 - written)) == pytest.approx(log(threshold / (1 - threshold)) / done.temperature)


def test_copy_keeps_precision_and_files(dev: Path, tmp_path: Path) -> None:
    """The copy has all files but the exported graph and the checkpoint, and a section added to the model card."""
    model = tmp_path / "model"
    shutil.copytree(tiny.trained(), model)
    (model / GRAPH).write_bytes(b"of these weights")
    for precision in ("float32", "float16", "int8"):
        state = load_weights(tiny.trained() / WEIGHTS)
        state["embedding.chars.weight"] = state["embedding.chars.weight"].repeat(200, 1)
        save_weights(state, tmp_path / WEIGHTS, precision=precision)
        assert stored_precision(tmp_path / WEIGHTS) == precision
        loaded = load_weights(tmp_path / WEIGHTS)
        save_weights(loaded, tmp_path / WEIGHTS, precision=precision)
        assert all(tensor.equal(loaded[key]) for key, tensor in load_weights(tmp_path / WEIGHTS).items())
    save_weights(load_weights(model / WEIGHTS), model / WEIGHTS, precision="float16")
    done = calibrate(model, dev, tmp_path / "new" / "copy")
    assert done.exported
    assert stored_precision(done.folder / WEIGHTS) == "float16"
    assert {path.name for path in done.folder.iterdir()} == {path.name for path in model.iterdir()} - {
        GRAPH,
        CHECKPOINT,
    }
    card = (done.folder / CARD).read_text(encoding="utf-8")
    assert card.startswith((model / CARD).read_text(encoding="utf-8").rstrip())
    assert f"scores are divided by {done.temperature:.3f}" in card
    twice = (calibrate(done.folder, dev, tmp_path / "twice").folder / CARD).read_text(encoding="utf-8")
    assert twice.count("## Confidences") == 1
    assert twice.rindex("## Confidences") == card.rindex("## Confidences")
    assert "on dev.jsonl" in card
    assert list(faults(done.folder)) == [], "its digests are those of its own files"
    again = calibrate(done.folder, dev, tmp_path / "again")
    assert again.temperature == pytest.approx(1.0, abs=0.05)
    assert not again.exported


def test_a_temperature_that_is_not_better_than_none_is_not_taken() -> None:
    ner, documents = tiny.ner(), partly_annotated()[:6]
    better_than_any = Confidences([1.0], [True])
    assert _fitted(ner, documents, better_than_any) == 1.0
    assert _fitted(ner, documents, confidences(ner, documents)) != 1.0


def test_labels_of_the_corpus_are_renamed(dev: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = tmp_path / "renamed.jsonl"
    corpus.write(relabelled(corpus.read(dev), {"PER": "NR", "LOC": "NS"}), renamed, "jsonl")
    printed = []
    for file, options in ((dev, []), (renamed, ["--map", "NR=PER,NS=LOC"])):
        with pytest.raises(SystemExit) as left:
            main(["calibrate", str(file), str(tmp_path / file.stem), "--model", str(tiny.trained()), *options])
        assert not left.value.code
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_the_command(dev: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["calibrate", str(tiny.trained()), str(dev), str(tmp_path / "calibrated")])
    assert not left.value.code
    temperature, error, loss, entities = capsys.readouterr().out.splitlines()
    assert float(temperature.removeprefix("temperature: ")) > 1
    for line in (error, loss):
        before, after = (float(part.split()[-2]) for part in line.split(","))
        assert after < before
    assert entities.startswith("entities found: ")


class TestErrors:
    def test_nothing_is_written_after_an_error(self, dev: Path, tmp_path: Path) -> None:
        for name, documents, message in (
            (
                "right",
                tiny.documents(),
                "all .* predicted entities are correct here, so there is nothing to fit",
            ),
            ("wrong", [replace(d, entities=()) for d in tiny.documents()], "no predicted entity is correct here"),
        ):
            path = tmp_path / f"{name}.jsonl"
            corpus.write(documents, path, "jsonl")
            with pytest.raises(DataError, match=message):
                calibrate(tiny.trained(), path, tmp_path / "new")
        (tmp_path / "empty.jsonl").touch()
        with pytest.raises(DataError, match="the file is empty"):
            calibrate(tiny.trained(), tmp_path / "empty.jsonl", tmp_path / "new")
        with pytest.raises(ModelError, match="no such folder"):
            calibrate(tmp_path / "none", dev, tmp_path / "new")
        assert not (tmp_path / "new").exists()

    def test_existing_output_is_kept(self, dev: Path, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="exists already"):
            calibrate(tiny.trained(), dev, tmp_path)

    def test_a_decoder_without_a_temperature(self, dev: Path, tmp_path: Path) -> None:
        settings = tiny.settings() | {"decoder": {"name": f"{__name__}:Hard"}}
        hanlattice.train(output=tmp_path / "model", settings=settings)
        with pytest.raises(ModelError, match="Hard has no temperature"):
            calibrate(tmp_path / "model", dev, tmp_path / "new", trust=True)
        assert not (tmp_path / "new").exists()


class Hard(Softmax):
    """A decoder defined by a user."""

    def soften(self, temperature: float) -> dict[str, Any]:
        return super(Softmax, self).soften(temperature)


def test_the_search_covers_temperatures_up_to_16_and_ends_within_a_hundredth() -> None:
    assert (2**LOWEST, 2**HIGHEST) == (1 / 16, 16)
    for best in (-3.9, -0.3, 0.0, 2.2, 3.9):
        found = minimum(lambda x, best=best: (x - best) ** 2, LOWEST, HIGHEST, PRECISION)  # type: ignore[misc]
        assert found == pytest.approx(best, abs=0.0151)


@pytest.mark.parametrize("low", [-4.0, -3.99, -3.9, -3.7])
def test_a_minimum_in_many_places(low: float) -> None:
    """Wherever it is, the interval that is left holds it, and each step evaluates the function once."""
    for i in range(60):
        best = low + i / 10
        evaluated: list[float] = []

        def loss(x: float, best: float = best, evaluated: list[float] = evaluated) -> float:
            evaluated.append(x)
            return abs(x - best)

        inside = min(max(best, low), 2.0)
        assert minimum(loss, low, 2.0, 0.01) == pytest.approx(inside, abs=0.00501)
        assert len(evaluated) == len(set(evaluated)) <= 16
        assert all(low <= x <= 2 for x in evaluated)


def test_minimum_of_unimodal_functions() -> None:
    evaluated = []

    def loss(x: float) -> float:
        evaluated.append(x)
        return abs(x - 1.234) + 0.1 * (x - 1.234) ** 2

    assert minimum(loss, -4, 4, 0.03) == pytest.approx(1.234, abs=0.015)
    assert len(evaluated) < 16
    assert minimum(lambda x: x, -4, 4, 0.03) == pytest.approx(-4, abs=0.03)
    assert minimum(lambda x: -x, -4, 4, 0.03) == pytest.approx(4, abs=0.03)


def test_a_linear_tagger_is_calibrated_without_torch(tmp_path: Path) -> None:
    """Twice: the second temperature multiplies the first one, and changes little."""
    texts = ["李明在北京工作。", "王小红和张伟去了上海。", "今天天气很好", "南京市长江大桥", "雷军发布小米手机"]
    ner = hanlattice.load("lite")
    documents = [replace(document, source=None) for document in ner.pipe(texts)]
    wrong = [replace(d, entities=d.entities[i % 2 :]) for i, d in enumerate(documents * 3)]
    corpus.write(wrong, tmp_path / "dev.jsonl", "jsonl")
    done = calibrate("lite", tmp_path / "dev.jsonl", tmp_path / "once")
    assert done.after.loss < done.before.loss
    again = hanlattice.load(tmp_path / "once")
    assert [d.spans for d in again.pipe(texts)] == [d.spans for d in documents]
    settings = [load_config(folder / CONFIG).decoder.settings for folder in (ner.folder or Path(), done.folder)]
    first, second = (found.get("temperature", 1.0) for found in settings)
    assert second == pytest.approx(first * done.temperature)
    assert "torch" not in type(again.engine).__module__


def test_the_temperature_of_an_ensemble_is_that_of_both_models(tmp_path: Path) -> None:
    """The copy finds the same entities, and its confidences are those that the command prints."""
    texts = ["李明在北京工作。", "王小红和张伟去了上海。", "今天天气很好", "南京市长江大桥", "雷军发布小米手机"]
    ner = hanlattice.load()
    documents = [replace(document, source=None) for document in ner.pipe(texts)]
    wrong = [replace(d, entities=d.entities[i % 2 :]) for i, d in enumerate(documents * 3)]
    corpus.write(wrong, tmp_path / "dev.jsonl", "jsonl")
    done = calibrate(None, tmp_path / "dev.jsonl", tmp_path / "once")
    assert done.after.loss < done.before.loss
    again = hanlattice.load(tmp_path / "once")
    assert "Ensemble" in repr(again)
    assert [d.spans for d in again.pipe(texts)] == [d.spans for d in documents]
    assert confidences(again, wrong).loss == pytest.approx(done.after.loss, abs=1e-6)
    before, after = (read_toml(folder / ENSEMBLE) for folder in (ner.folder or Path(), done.folder))
    assert after == {**before, "temperature": pytest.approx(before["temperature"] * done.temperature)}
    assert list(faults(done.folder)) == []


def test_a_convention_of_one_model_of_an_ensemble(tmp_path: Path) -> None:
    """FLAT alone reads it, so its head is calibrated, and the ensemble stays as it is."""
    texts = ["李明在北京工作。", "王小红去了上海。", "中国政府欢迎朋友们", "江泽民说很好"]
    with hanlattice.load().using(convention="news1998") as ner:
        documents = [replace(document, source=None) for document in ner.pipe(texts)]
    wrong = [replace(d, entities=d.entities[i % 2 :]) for i, d in enumerate(documents * 3)]
    corpus.write(wrong, tmp_path / "dev.jsonl", "jsonl")
    done = calibrate(None, tmp_path / "dev.jsonl", tmp_path / "once", convention="news1998")
    again = hanlattice.load(tmp_path / "once", convention="news1998")
    assert confidences(again, wrong).loss == pytest.approx(done.after.loss, abs=1e-3)
    assert (done.folder / ENSEMBLE).read_bytes() == (DEFAULT / ENSEMBLE).read_bytes()

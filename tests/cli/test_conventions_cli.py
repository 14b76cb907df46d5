"""``--convention`` of the commands, and labels of words that a model does not know."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import tiny
from hanlattice import Lexicon, api, corpus
from hanlattice.annotation import Job
from hanlattice.cli import main
from hanlattice.document import Document
from hanlattice.errors import DataError, UnknownConvention
from hanlattice.pipeline import NER
from served import environment

SENTENCE = "李明在北京工作。"
UNKNOWN = "error: the model has no convention 'nmaes'; it has open, names\n"


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as left:
            main(list(map(str, arguments)))
        return Result(int(left.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of convention ``names``."""
    path = tmp_path_factory.mktemp("gold") / "names.jsonl"
    corpus.write(tiny.other_documents(), path, "jsonl")
    return path


def model() -> Path:
    return tiny.two_conventions()


def entities(row: str) -> list[tuple[str, str]]:
    return [(e["text"], e["label"]) for e in json.loads(row)["entities"]]


class TestPredict:
    @pytest.mark.parametrize(
        ("options", "labels"),
        [
            ([], ["PER", "LOC"]),
            (["--convention", "open"], ["PER", "LOC"]),
            (["--convention", "names"], ["name", "place"]),
        ],
        ids=" ".join,
    )
    def test_predicts_with_the_convention(self, run: Run, options: list[str], labels: list[str]) -> None:
        result = run("predict", SENTENCE, "--model", model(), "--format", "jsonl", *options)
        assert (result.code, result.err) == (0, "")
        assert entities(result.out) == list(zip(["李明", "北京"], labels, strict=True))

    def test_a_model_of_one_convention_has_the_default_one(self, run: Run) -> None:
        plain = run("predict", SENTENCE, "--model", tiny.trained())
        assert run("predict", SENTENCE, "--model", tiny.trained(), "--convention", "default") == plain
        wrong = run("predict", SENTENCE, "--model", tiny.trained(), "--convention", "open")
        assert wrong == (2, "", "error: the model has no convention 'open'; it has default\n")


class TestUnknown:
    @pytest.mark.parametrize("command", ["predict", "explain"])
    def test_is_a_one_line_error_with_status_2(self, run: Run, command: str) -> None:
        assert run(command, SENTENCE, "--model", model(), "--convention", "nmaes") == (2, "", UNKNOWN)

    def test_for_a_corpus_is_a_one_line_error_with_status_2(self, run: Run, gold: Path, tmp_path: Path) -> None:
        named = ("--convention", "nmaes")
        assert run("evaluate", model(), gold, *named) == (2, "", UNKNOWN)
        assert run("calibrate", model(), gold, tmp_path / "out", *named) == (2, "", UNKNOWN)
        assert run("benchmark", model(), *named) == (2, "", UNKNOWN)
        assert run("annotate", gold, tmp_path / "out.jsonl", "--model", model(), *named) == (2, "", UNKNOWN)
        assert list(tmp_path.iterdir()) == []

    def test_ends_a_service_before_it_starts(self) -> None:
        arguments = ["serve", "--model", str(model()), "--port", "0", "--convention", "nmaes"]
        done = subprocess.run(
            [sys.executable, "-m", "hanlattice", *arguments],
            env=environment(), capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (2, "", UNKNOWN)

    def test_raises_an_unknown_convention_error(self) -> None:
        with pytest.raises(UnknownConvention, match="it has open, names"):
            api.load(model(), convention="nmaes")
        with pytest.raises(UnknownConvention), api.load(model()).using(convention="nmaes"):
            pass
        with pytest.raises(UnknownConvention):
            Job(model=str(model()), convention="nmaes").identity()


class TestEvaluate:
    def test_compares_the_labels_of_the_convention(self, run: Run, gold: Path) -> None:
        result = run("evaluate", model(), gold, "--convention", "names", "--format", "json")
        scores = json.loads(result.out)
        assert result.err == ""
        assert "convention names" in scores["mode"]
        (report,) = scores["models"].values()
        assert report["micro"]["f1"] > 0.9
        assert report["per_type"].keys() == {"name", "place"}

    def test_warns_of_labels_of_another_convention(self, run: Run, gold: Path) -> None:
        result = run("evaluate", model(), gold, "--format", "json")
        assert "has the labels LOC, ORG, PER, but the gold also has name, place" in result.err
        assert json.loads(result.out)["models"][str(model())]["micro"]["correct"] == 0

    def test_reachable_recall_is_that_of_the_convention(self) -> None:
        ner = api.load(model(), engine="torch", convention="names")
        report = api.evaluate(ner, tiny.other_documents())
        assert "reachable" not in report.forms
        with ner.using(convention="open"):
            assert api.evaluate(ner, tiny.other_documents()).forms["reachable"].correct == 0

    def test_another_model_may_have_another_convention(self, run: Run, tmp_path: Path) -> None:
        place = tmp_path / "gold.jsonl"
        corpus.write(tiny.documents(), place, "jsonl")
        both = ("evaluate", model(), place, "--compare", tiny.trained(), "--format", "json")
        result = run(*both, "--convention", "open", "--compare-convention", "default")
        assert [report["micro"]["f1"] > 0.9 for report in json.loads(result.out)["models"].values()] == [True] * 2
        wrong = run(*both, "--convention", "open")
        assert wrong == (2, "", "error: the model has no convention 'open'; it has default\n")

    def test_one_model_with_two_conventions_has_two_reports(self, run: Run, gold: Path) -> None:
        both = (
            "evaluate",
            gold,
            "--model",
            model(),
            "--compare",
            model(),
            "--convention",
            "names",
            "--format",
            "json",
        )
        reports = json.loads(run(*both, "--compare-convention", "open").out)["models"]
        assert list(reports) == [f"{model()} (names)", f"{model()} (open)"]
        assert [report["micro"]["correct"] > 0 for report in reports.values()] == [True, False]
        assert list(json.loads(run(*both).out)["models"]) == [f"{model()} (1)", f"{model()} (2)"]

    def test_the_page_of_errors(self, run: Run, gold: Path, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        result = run("evaluate", model(), gold, "--convention", "names", "--errors", page)
        assert result.code == 0
        assert "convention names" in page.read_text(encoding="utf-8")


class TestOthers:
    def test_annotate(self, run: Run, tmp_path: Path) -> None:
        texts, output = tmp_path / "texts.txt", tmp_path / "out.jsonl"
        texts.write_text(f"{SENTENCE}\n", encoding="utf-8")
        options = ("--model", model(), "--convention", "names", "--quiet")
        assert run("annotate", texts, output, *options) == (0, "", "")
        assert entities(output.read_text(encoding="utf-8")) == [("李明", "name"), ("北京", "place")]

    def test_an_annotation_run_has_one_convention(self) -> None:
        jobs = [Job(model=str(model()), convention=name).identity() for name in ("", "open", "names")]
        assert jobs[0] == jobs[1]
        assert [key for key in jobs[0] if jobs[0][key] != jobs[2][key]] == ["convention"]

    @pytest.mark.parametrize("by", ["influence", "attention"])
    def test_explain(self, run: Run, by: str) -> None:
        result = run("explain", SENTENCE, "--model", model(), "--convention", "names", "--by", by)
        assert result.out.startswith("entities: 李明 name, 北京 place\n")

    def test_attention_is_that_of_the_convention(self) -> None:
        from hanlattice.explain import attention

        ner = api.load(model(), engine="torch")
        first = attention(ner, SENTENCE).weights
        with ner.using(convention="names"):
            assert (attention(ner, SENTENCE).weights != first).any()

    def test_benchmark(self, run: Run) -> None:
        options = ("--lengths", "20", "--batch-sizes", "1", "--seconds", "0.01", "--format", "jsonl", "--quiet")
        result = run("benchmark", model(), "--convention", "names", *options)
        assert (result.code, result.err) == (0, "")
        assert json.loads(result.out.splitlines()[0])["characters_per_second"] > 0

    def test_info_lists_them(self, run: Run) -> None:
        out = run("info", model()).out
        assert (
            "\nlabels      LOC, ORG, PER\nconventions open   LOC, ORG, PER\n            names  name, place\n" in out
        )
        assert "\nconventions " not in run("info", tiny.trained()).out

    def test_calibrate_changes_the_confidences_of_one_convention(self, run: Run, tmp_path: Path) -> None:
        texts = [d.text for d in tiny.documents()]
        odd = [d if i % 3 else Document(d.text) for i, d in enumerate(tiny.other_documents())]
        corpus.write(odd, tmp_path / "dev.jsonl", "jsonl")
        output = tmp_path / "calibrated"
        options = ("--convention", "names", "--quiet")
        assert run("calibrate", model(), tmp_path / "dev.jsonl", output, *options) == (0, "", "")
        before, after = api.load(model(), engine="torch"), api.load(output, engine="torch")
        assert scores(before, texts, "open") == pytest.approx(scores(after, texts, "open"))
        assert scores(before, texts, "names") != pytest.approx(scores(after, texts, "names"), abs=1e-3)
        assert "by convention names" in (output / "README.md").read_text(encoding="utf-8")

    def test_export_keeps_them(self, run: Run) -> None:
        options = ("--model", tiny.exported(), "--engine", "onnx", "--convention", "names")
        assert "place" in run("predict", SENTENCE, *options).out


class TestWords:
    """``--lexicon FILE`` with labels that the model does not know."""

    @pytest.fixture
    def words(self, tmp_path: Path) -> Path:
        path = tmp_path / "words.txt"
        path.write_text("东门\n\n西门\tplace\n红药\tDRUG\t2\n", encoding="utf-8")
        return path

    def test_name_the_file_and_the_line(self, run: Run, words: Path, gold: Path) -> None:
        message = (
            f"error: {words}:4: the word '红药' has the label 'DRUG', which the model does not know; it knows LOC,"
            " ORG, PER, name, place\n"
        )
        for command in (
            ("predict", SENTENCE, "--model", model()),
            ("explain", SENTENCE, "--model", model()),
            ("evaluate", model(), gold),
        ):
            code, out, err = run(*command, "--lexicon", words)
            assert (code, out, err.splitlines(keepends=True)[-1]) == (1, "", message)

    def test_in_a_run_of_annotation_too(self, run: Run, words: Path, tmp_path: Path) -> None:
        texts = tmp_path / "texts.txt"
        texts.write_text(f"{SENTENCE}\n", encoding="utf-8")
        result = run("annotate", texts, tmp_path / "out.jsonl", "--model", model(), "--lexicon", words)
        assert result.code == 1
        assert f"{words}:4: the word '红药'" in result.err

    def test_of_a_compiled_lexicon_have_no_line(self, run: Run, tmp_path: Path) -> None:
        Lexicon([("红药", "DRUG", None)]).save(tmp_path / "words.lexicon")
        result = run("predict", SENTENCE, "--model", model(), "--lexicon", tmp_path / "words.lexicon")
        assert result.err.startswith(f"error: {tmp_path / 'words.lexicon'}: the word '红药'")

    def test_from_python_too(self, words: Path) -> None:
        lexicon = api.load(model()).lexicon
        with pytest.raises(DataError, match=f"{words}:4: "):
            lexicon.update(words)
        with pytest.raises(DataError, match="'DRUG', which the model does not know; it knows LOC, ORG"):
            lexicon.add("红药", label="DRUG")
        assert "东门" not in lexicon

    def test_are_learned_if_training_reads_the_list(self, words: Path, tmp_path: Path) -> None:
        settings = tiny.config(epochs=1).with_settings({"lexicon": {"files": [str(words)]}})
        ner = api.load(api.train(settings, output=tmp_path / "model").folder)
        assert "DRUG" in ner.vocabulary.word_labels
        ner.lexicon.add("蓝药", label="DRUG")
        assert "蓝药" in ner.lexicon


def scores(ner: NER, texts: list[str], convention: str) -> list[float]:
    with ner.using(convention=convention):
        return [entity.score or 0.0 for document in ner(texts) for entity in document.entities]

"""The command line: what goes where, with which exit status, and what happens when something is wrong."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

import hanlattice
import tiny
from hanlattice import __version__, api, corpus
from hanlattice.cli import COMMANDS, main
from hanlattice.cli.options import check_writable
from hanlattice.cli.predict import _write_conll
from hanlattice.config.files import load_config
from hanlattice.document import Document, Entity
from hanlattice.errors import ModelError
from hanlattice.evaluation.scores import evaluate_spans
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.edits import save_edits
from hanlattice.model.digests import CHECKPOINT
from hanlattice.model.folder import EDITS

SENTENCE = "李明在北京工作。"
COMMAND = [sys.executable, "-m", "hanlattice"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        assert not isinstance(left.value.code, str)
        return Result(left.value.code or 0, *capsys.readouterr())

    return call


def spawn(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    """The command in a process of its own, its three streams in our hands."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, **{**pipes, "text": True, "env": ENVIRONMENT, **options})


def streams(process: "subprocess.Popen[str]") -> tuple[IO[str], IO[str], IO[str]]:
    """Standard input, output and error of a process that has all three in pipes."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def one_error(result: Result, message: str, code: int = 1) -> None:
    """One line on stderr that says so, and nothing on stdout."""
    assert result.code == code
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert re.search(message, line), line
    assert line.startswith("error: ")


def spans_of(row: str) -> list[list[object]]:
    """Start, end and label of the entities of a JSON line."""
    return [[entity[key] for key in ("start", "end", "label")] for entity in json.loads(row)["entities"]]


def file_of(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


class TestEveryCommand:
    def test_help_is_fast_and_does_not_import_torch(self) -> None:
        code = (
            "import sys\nfrom hanlattice.cli import main\n"
            "try:\n    main(['--help'])\nexcept SystemExit as left:\n    assert not left.code\n"
            "heavy = {'torch', 'numpy', 'rich', 'safetensors'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
        )
        used = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert done.returncode == 0, done.stderr
            assert [line.split()[0] for line in done.stdout.split("Commands:")[1].splitlines()[1:]] == list(
                COMMANDS
            )
            used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert min(used) < 0.4

    @pytest.mark.parametrize("command", COMMANDS)
    def test_has_help(self, run: Run, command: str) -> None:
        result = run(command, "--help")
        assert result.code == 0
        assert result.out.startswith(f"Usage: hanlattice {command}")
        assert result.err == ""

    def test_version(self, run: Run) -> None:
        assert run("--version") == (0, f"hanlattice {__version__}\n", "")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["predictt", "x"],
            ["predict"],
            ["predict", "x", "--colour"],
            ["predict", "x", "--format", "pdf"],
            ["predict", "x", "--threshold", "2"],
            ["predict", "x", "--batch-size", "0"],
            ["predict", "x", "--patterns", "XX"],
            ["predict", "x", "--patterns", "all", "--today", "5 March"],
            ["predict", "x", "--today", "2024-03-05"],
            ["predict", "x", "--force", "北京=XX"],
            ["predict", "x", "--block", "北京=XX"],
            ["predict", "x", "--device", "disk"],
            ["predict", "x", "--format", "brat"],
            ["predict", "x", "--output", "x.JSON"],
            ["train", "--train", "x"],
            ["train", "a.toml", "b.toml", "--output", "x"],
            ["train", "a.toml", "--paper", "flat/weibo", "--output", "x"],
            ["train", "--output", "x", "--training.epochs"],
            ["evaluate", "default"],
            ["evaluate", "default", "x", "--map", "NR"],
            ["lexicon", "build", "x"],
            ["lexicon", "weigh"],
        ],
        ids=" ".join,
    )
    def test_wrong_usage_is_2(self, run: Run, arguments: Sequence[str]) -> None:
        result = run(*arguments)
        assert result.code == 2
        assert result.out == ""
        assert "Usage: hanlattice" in result.err

    def test_stdin_may_be_a_socket(self, tmp_path: Path) -> None:
        ours, theirs = socket.socketpair()
        words = file_of(tmp_path / "words.txt", "北京\n")
        with ours, theirs, spawn("lexicon", "match", words, "-", stdin=theirs) as process:
            ours.sendall("在北京\n".encode())
            ours.shutdown(socket.SHUT_WR)
            assert "北京" in process.communicate()[0]

    def test_a_full_disk(self, tmp_path: Path) -> None:
        words = file_of(tmp_path / "words.txt", "北京\n")
        with open("/dev/full", "w") as full, spawn("lexicon", "match", words, "北京", stdout=full) as process:
            assert process.communicate()[1] == "error: No space left on device\n"
            assert process.returncode == 1

    def test_debug_prints_the_traceback_in_any_position(self, tmp_path: Path) -> None:
        for arguments in (["--debug", "predict", "x"], ["predict", "x", "--debug"]):
            with pytest.raises(ModelError, match="no such folder"):
                main([*arguments, "--model", str(tmp_path / "no")])

    def test_debug_after_two_dashes_is_a_text(self, run: Run) -> None:
        result = run("predict", "--model", tiny.trained(), "--format", "jsonl", "--", "--debug")
        assert json.loads(result.out)["text"] == "--debug"


class TestPredict:
    @pytest.fixture
    def predict(self, run: Run) -> Run:
        return lambda *arguments: run("predict", *arguments, "--model", tiny.trained())

    def test_a_text_as_a_table(self, predict: Run) -> None:
        result = predict(SENTENCE)
        head, *rows = result.out.splitlines()
        assert head.split() == ["text", "label", "start", "end", "score"]
        assert [row.split()[:4] for row in rows] == [["李明", "PER", "0", "2"], ["北京", "LOC", "3", "5"]]
        assert result.code == 0
        assert result.err == ""

    def test_columns_are_aligned_by_the_width_of_characters(self, predict: Run) -> None:
        head, *rows = predict("张伟去了长江大桥局。李明在北京工作。").out.splitlines()
        wide = [len(row.split()[0]) for row in rows]
        assert len(set(wide)) > 1
        # A Chinese character takes two columns, so a row is as much shorter as it has of them.
        assert {row.index(row.split()[1]) + n for row, n in zip(rows, wide, strict=True)} == {head.index("label")}

    def test_files_and_texts_with_their_titles(self, predict: Run, tmp_path: Path) -> None:
        file = file_of(tmp_path / "texts.txt", f"{SENTENCE}\n\n今天天气很好\n")
        result = predict(file, "重庆\t和")
        titles = [line for line in result.out.splitlines() if line.startswith("#")]
        assert titles == [f"# {SENTENCE}", "# ", "# 今天天气很好", r"# 重庆\t和"]
        assert result.out.count("(no entities)") >= 2

    def test_jsonl_equals_the_library_result(self, predict: Run, tmp_path: Path) -> None:
        texts = [document.text for document in tiny.documents()] + [""]
        file = file_of(tmp_path / "texts.txt", "".join(f"{text}\n" for text in texts))
        rows = [json.loads(line) for line in predict(file, "--format", "jsonl", "--batch-size", 4).out.splitlines()]
        expected = [document.to_dict() for document in tiny.ner().pipe(texts)]
        assert [row["text"] for row in rows] == texts
        for row, document in zip(rows, expected, strict=True):
            for entity, other in zip(row["entities"], document["entities"], strict=True):
                assert entity.pop("score") == pytest.approx(other.pop("score"), abs=1e-5)
            assert row == document

    def test_conll_and_brat_can_be_read_again(self, predict: Run, tmp_path: Path) -> None:
        file = file_of(tmp_path / "texts.txt", f"{SENTENCE}\n王小红和重庆\n")
        expected = [tiny.ner()(text).spans for text in (SENTENCE, "王小红和重庆")]
        columns = file_of(tmp_path / "out.bmes", predict(file, "--format", "conll").out)
        assert [document.spans for document in corpus.read(columns)] == expected
        assert predict(file, "--format", "brat", "--output", tmp_path / "brat").code == 0
        assert [document.spans for document in corpus.read(tmp_path / "brat")] == expected

    def test_entities_that_conll_cannot_hold_are_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        nested = Document("重庆大学", (Entity("重庆大学", "ORG", 0, 4), Entity("重庆", "LOC", 0, 2, 0.5)))
        stream = StringIO()
        _write_conll([nested, Document("好", (), "an id"), nested], stream, False)
        assert stream.getvalue().count("B-ORG") == 2
        assert capsys.readouterr().err.splitlines() == [
            "note: conll holds no overlapping entities: 2 left out; --format jsonl holds all"
        ]

    def test_a_whole_file_is_one_text_named_after_it(self, predict: Run, tmp_path: Path) -> None:
        text = f"{SENTENCE}\r\n{SENTENCE}\n"
        path = tmp_path / "letter.txt"
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        row = json.loads(predict(path, "--whole", "--format", "jsonl").out)
        assert (row["text"], row["id"]) == (text, "letter")
        assert {(e["text"], e["start"]) for e in row["entities"]} >= {("北京", 3), ("北京", 13)}
        predict(path, "--whole", "--format", "brat", "--output", tmp_path / "brat")
        assert {file.name for file in (tmp_path / "brat").iterdir()} == {"letter.txt", "letter.ann"}

    def test_html_marks_entities_and_escapes_the_rest(self, predict: Run, tmp_path: Path) -> None:
        out = tmp_path / "page.html"
        predict(f"<script>&{SENTENCE}", "--format", "html", "-o", out)
        page = out.read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert "&lt;script&gt;&amp;" in re.sub("<small>.*?</small>|</?mark[^>]*>", "", page)
        assert "<script" not in page
        assert "http" not in page
        assert re.search(r'<mark [^>]*title="LOC 0\.\d+ \[12, 14\)">北京<small>LOC</small></mark>', page)

    def test_the_ending_of_the_output_is_its_format(self, predict: Run, tmp_path: Path) -> None:
        for name, kind in (("a.jsonl", "jsonl"), ("a.CONLL", "conll"), ("a.html", "html"), ("a.txt", "table")):
            expected = predict(SENTENCE, "--format", kind).out
            predict(SENTENCE, "--output", tmp_path / name)
            assert (tmp_path / name).read_text("utf-8") == expected
        predict(SENTENCE, "--output", tmp_path / "b.jsonl", "--format", "table")
        assert (tmp_path / "b.jsonl").read_text("utf-8") == predict(SENTENCE).out

    def test_json_as_input_is_noted_unless_quiet(self, predict: Run, tmp_path: Path) -> None:
        file = file_of(tmp_path / "texts.jsonl", f'{{"text": "{SENTENCE}"}}\n')
        note = f"note: {file}: read as plain text, with its JSON; put the texts alone into a file\n"
        assert predict(file).err == note
        assert predict(file, "--quiet").err == ""
        assert predict("a.jsonl b").err == "", "it is a text"

    def test_threshold(self, predict: Run) -> None:
        assert predict(SENTENCE, "--threshold", 1.0).out == "(no entities)\n"

    def test_words_of_a_lexicon_are_added(self, predict: Run, tmp_path: Path) -> None:
        words = file_of(tmp_path / "words.txt", "东海龙宫\tLOC\n")
        compiled = tmp_path / "words.bin"
        Lexicon(["龙宫"]).save(compiled)
        text = "上海的东海龙宫很好,李明说"
        before = predict(text).out
        ner = tiny.ner()
        ner.lexicon.update(["龙宫"])
        ner.lexicon.add("东海龙宫", "LOC")
        found = predict(text, "--lexicon", words, "--lexicon", compiled, "--format", "jsonl").out
        assert spans_of(found) == [[*e.span[:3]] for e in ner(text).entities]
        assert spans_of(found) != spans_of(predict(text, "--format", "jsonl").out)
        assert predict(text).out == before

    def test_added_words_are_normalised_as_texts_are(self, predict: Run, tmp_path: Path) -> None:
        wide = file_of(tmp_path / "wide.txt", "ＡＢＣ\n花果山\n")
        narrow = file_of(tmp_path / "narrow.txt", "ABC\n花果山\n")
        text = "李明和ABC在ＡＢＣ工作。"
        by_wide, by_narrow, without = (
            predict(text, *options, "--format", "jsonl")
            for options in (("--lexicon", wide), ("--lexicon", narrow), ())
        )
        assert by_wide == by_narrow != without

    @pytest.mark.parametrize("row", ["{}", " {} "], ids=["word", "blanks"])
    def test_a_word_that_is_too_long_is_named_with_its_line(self, predict: Run, tmp_path: Path, row: str) -> None:
        words = file_of(tmp_path / "words.txt", f"北京\n上海\n{row.format('长' * 65)}\n")
        one_error(predict(SENTENCE, "--lexicon", words), f"{words}:3: the word '长长")

    def test_blank_lines_of_a_lexicon_are_noted_unless_quiet(self, predict: Run, tmp_path: Path) -> None:
        words = file_of(tmp_path / "words.txt", "\n花果山\n \n")
        assert predict(SENTENCE, "--lexicon", words).err == f"note: {words}: 2 blank lines skipped\n"
        assert predict(SENTENCE, "--lexicon", words, "--quiet").err == ""
        assert predict(SENTENCE, "--lexicon", file_of(words, "\n"), "--quiet").out == predict(SENTENCE).out

    def test_empty_input_replaces_an_old_output_and_is_checked_alike(self, run: Run, tmp_path: Path) -> None:
        empty, old = file_of(tmp_path / "empty.txt", ""), file_of(tmp_path / "out.jsonl", "old")
        assert run("predict", empty, "--format", "jsonl", "--output", old, "--model", tiny.trained()).code == 0
        assert old.read_text() == ""
        one_error(run("predict", empty, "--model", tmp_path / "gone"), "gone: no such folder")

    def test_a_whole_text_from_standard_input_keeps_its_line_ends(self, tmp_path: Path) -> None:
        arguments = ["predict", "--whole", "-", "--format", "jsonl", "--model", str(tiny.trained())]
        done = subprocess.run(
            [*COMMAND, *arguments], input="李明\r\n北京\r\n".encode(), capture_output=True, env=ENVIRONMENT
        )
        assert json.loads(done.stdout)["text"] == "李明\r\n北京\r\n", done.stderr

    def test_a_whole_file_may_be_utf16(self, predict: Run, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_bytes("李明\r\n北京\n".encode("utf-16"))
        assert (
            json.loads(predict("--whole", tmp_path / "a.txt", "--format", "jsonl").out)["text"] == "李明\r\n北京\n"
        )

    def test_empty_input_gives_empty_output(self, predict: Run, tmp_path: Path) -> None:
        assert predict(file_of(tmp_path / "empty.txt", "")) == (0, "", "")

    def test_results_are_printed_as_texts_arrive(self) -> None:
        with spawn("predict", "-", "--format", "jsonl", "--model", tiny.trained()) as process:
            stdin, stdout, _ = streams(process)
            for text in (SENTENCE, "重庆", SENTENCE):
                stdin.write(text + "\n")
                stdin.flush()
                assert json.loads(stdout.readline())["text"] == text
            stdin.write("李明")  # a last line without an end
            stdin.close()
            assert json.loads(stdout.read())["text"] == "李明"
            assert process.wait() == 0

    def test_a_closed_output_pipe_is_not_an_error(self, tmp_path: Path) -> None:
        file = file_of(tmp_path / "many.txt", f"{SENTENCE}\n" * 5_000)
        with spawn("predict", file, "--model", tiny.trained()) as process:
            _, stdout, stderr = streams(process)
            assert stdout.readline() == f"# {SENTENCE}\n"
            stdout.close()
            assert stderr.read() == ""

    def test_ctrl_c(self) -> None:
        with spawn("predict", "-", "--format", "jsonl", "--model", tiny.trained()) as process:
            stdin, stdout, stderr = streams(process)
            stdin.write(f"{SENTENCE}\n")
            stdin.flush()
            stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
            assert stderr.read() == "error: interrupted\n"

    @pytest.mark.parametrize("whole", ["--whole", "--lines"])
    def test_input_that_is_not_utf8_is_an_error(self, predict: Run, tmp_path: Path, whole: str) -> None:
        path = tmp_path / "gbk.txt"
        path.write_bytes("good\n重庆\n".encode("gb18030"))
        result = predict(path, whole, "--format", "jsonl")
        assert result.code == 1
        assert result.err.startswith(f"error: {path}:2: byte 0xd6 at position 1 is not UTF-8; convert the file")
        assert len(result.err.splitlines()) == 1
        assert [json.loads(row)["text"] for row in result.out.splitlines()] == (
            [] if whole == "--whole" else ["good"]
        )

    def test_a_failed_output_leaves_no_file(self, predict: Run, tmp_path: Path) -> None:
        path = tmp_path / "gbk.txt"
        path.write_bytes(b"good\n\xff\n")
        one_error(predict(path, "--output", tmp_path / "out.txt"), r"gbk\.txt:2: byte 0xff")
        one_error(predict(path, "--format", "brat", "--output", tmp_path / "out"), r"gbk\.txt:2: byte 0xff")
        assert [file.name for file in tmp_path.iterdir()] == ["gbk.txt"]

    def test_bad_input(self, predict: Run, run: Run, tmp_path: Path) -> None:
        one_error(predict("nothing.txt"), r"nothing\.txt: no such file")
        one_error(predict(file_of(tmp_path / "a.txt", SENTENCE), "nothing.txt"), r"nothing\.txt: no such file")
        one_error(predict(tmp_path), "is a folder; name the files in it")
        one_error(predict(SENTENCE, "--output", tmp_path / "no" / "out"), "no/out: cannot be written: No such file")
        one_error(predict(SENTENCE, "--lexicon", tmp_path / "no.txt"), r"no\.txt: cannot be read: No such file")
        one_error(run("predict", SENTENCE, "--model", tmp_path), r"holds no config\.toml")
        one_error(run("predict", SENTENCE, "--model", tmp_path / "no"), "no: no such folder")
        one_error(predict("李\udcff明"), "not UTF-8")
        one_error(predict(SENTENCE, "--output", tmp_path), "is a folder; name a file in it")

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ("x" * 5_000 + "\n", r"words\.txt:1: the line has 5,000 characters, more than 1,000"),
            ("北京\n\tLOC\n", r"words\.txt:2: the word before the first tab is empty"),
            ("北京\nа\0б\n", r"words\.txt:2: a NUL character"),
        ],
    )
    def test_bad_lexicons(self, predict: Run, tmp_path: Path, lines: str, message: str) -> None:
        one_error(predict(SENTENCE, "--lexicon", file_of(tmp_path / "words.txt", lines)), message)


TRAIN = [
    "--encoder.d_model", "16", "--encoder.heads=2", "--encoder.d_feed_forward", "24", "--training.optimiser",
    "adamw", "--training.learning_rate", "0.02", "--training.device", "cpu", "--training.batch_size", "6",
]  # fmt: skip


def small_world() -> list[str]:
    place = tiny.folder()
    files = {"train": "corpus.bmes", "dev": "corpus.bmes", "lexicon": "words.txt", "vectors": "vectors.safetensors"}
    return [*(part for name, file in files.items() for part in (f"--{name}", str(place / file))), *TRAIN]


class TestTrain:
    @pytest.fixture
    def world(self) -> list[str]:
        return small_world()

    def test_train_predict_evaluate(self, run: Run, world: list[str], tmp_path: Path) -> None:
        out = tmp_path / "run"
        test = tiny.folder() / "corpus.bmes"
        done = run("train", *world, "--test", test, "--seed", 7, "--training.epochs", 12, "--output", out)
        assert done.code == 0
        assert [line.split("  ")[0] for line in done.err.splitlines() if line.startswith("epoch")] == [
            f"epoch {i}/12" for i in range(1, 13)
        ]
        assert f"to use the model: hanlattice predict --model {out} TEXT" in done.err
        assert re.findall(r"^(dev|test) \(best epoch \d+ by dev F1\)$", done.out, re.MULTILINE) == ["dev", "test"]
        micro = [line for line in done.out.splitlines() if line.startswith("micro")]
        assert len(micro) == 2
        scored = run("evaluate", out, test)
        assert [line for line in scored.out.splitlines() if line.startswith("micro")] == micro[:1]
        config = api.load(out).config
        assert (config.training.seed, config.training.epochs) == (7, 12)
        assert config.encoder.settings == {"d_model": 16, "heads": 2, "d_feed_forward": 24}
        one_error(run("train", *world, "--output", out), "already holds a run")
        one_error(run("train", "--output", out, "--resume"), "finished run")

    def test_punctuation_counts_for_the_best_epoch_if_some_sentences_have_none(
        self, run: Run, world: list[str], tmp_path: Path
    ) -> None:
        out = tmp_path / "run"
        done = run("train", *world, "--training.epochs", 6, "--data.unpunctuated", 0.5, "--output", out)
        rows = [json.loads(line) for line in (out / "log.jsonl").read_text("utf-8").splitlines()]
        means = [row["dev_f1"] + row["unpunctuated_f1"] for row in rows]
        best = max(range(6), key=lambda i: (round(means[i], 1), i)) + 1
        criterion = "mean dev F1 with and without punctuation"
        assert rows[-1]["best_epoch"] == best
        assert f"dev (best epoch {best} by {criterion})" in done.out
        assert f"Best epoch by {criterion}: {best} of 6" in (out / "README.md").read_text("utf-8")
        assert f"without punctuation {rows[-1]['unpunctuated_f1']:.2f}  best" in done.err

    def test_quiet_prints_scores_only(self, run: Run, world: list[str], tmp_path: Path) -> None:
        done = run("train", *world, "--training.epochs", 1, "--output", tmp_path / "run", "--quiet")
        assert done.code == 0
        assert done.err == ""
        assert done.out.startswith("dev (best epoch 1")

    def test_labels_can_be_renamed(self, run: Run, world: list[str], tmp_path: Path) -> None:
        out = tmp_path / "run"
        done = run("train", *world, "--map", "PER=人, LOC=地", "--training.epochs", 1, "--output", out)
        assert done.code == 0
        ner = api.load(out)
        assert set(ner.labels) == {"人", "地", "ORG"}
        assert ner.config.data.labels == {"PER": "人", "LOC": "地"}
        assert {line.partition(" ")[0] for line in done.out.splitlines()} >= {
            "人",
            "地",
            "ORG",
        }  # dev is renamed too
        assert "data.labels renames" not in done.err
        absent = run("train", *world, "--map", "PER=人,PERS=人", "--training.epochs", 1, "--output", tmp_path / "r")
        assert "data.labels renames PERS, which train, dev and test do not have" in absent.err
        assert run("train", *world, "--map", "PER=人,PER=名", "--output", tmp_path / "s").code == 2

    def test_a_preset_with_another_corpus_than_its_own(
        self, run: Run, world: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its dev, test and excluded corpora are not read, and the labels of that corpus are not renamed."""
        monkeypatch.delenv("HANLATTICE_DATA", raising=False)
        options = ("--paper", "linear/msra", "--training.epochs", 3, "--training.precision", "float32")
        corpora = world[:8]  # without the settings of FLAT
        done = run("train", *corpora, *options, "--output", tmp_path / "run")
        assert (done.code, "test (best" in done.out) == (0, False), done.err
        assert "data.labels renames" not in done.err
        assert load_config(tmp_path / "run" / "config.toml").data.labels == {}
        tested = run("train", *corpora, *options, "--data.test", world[1], "--output", tmp_path / "tested")
        assert "test (best" in tested.out, tested.err
        no_corpus = run("train", "--paper", "linear/msra", "--output", tmp_path / "r")
        one_error(no_corpus, "set the environment variable HANLATTICE_DATA")

    def test_settings_of_a_file_and_of_a_paper(self, run: Run, world: list[str], tmp_path: Path) -> None:
        settings = file_of(tmp_path / "mine.toml", "[training]\nepochs = 2\nseed = 4\n")
        assert run("train", settings, *world, "--seed", 5, "--output", tmp_path / "run", "--quiet").code == 0
        config = api.load(tmp_path / "run").config
        assert (config.training.epochs, config.training.seed) == (2, 5)
        one_error(run("train", tmp_path / "no.toml", "--output", tmp_path / "r"), r"no\.toml: cannot be read")
        wrong = run("train", "--paper", "flat/weibp", "--output", tmp_path / "r")
        one_error(wrong, r"the package has no settings 'flat/weibp'; it has flat/weibo, ")

    def test_ctrl_c_and_resume(self, run: Run, world: list[str], tmp_path: Path) -> None:
        out = tmp_path / "run"
        with spawn("train", *world, "--training.epochs", 8, "--output", out) as process:
            _, stdout, stderr = streams(process)
            for line in stderr:
                if line.startswith("epoch 2/"):
                    process.send_signal(signal.SIGINT)
                    break
            assert stderr.read().splitlines()[-1] == (
                f"error: stopped; to resume: hanlattice train --output {out} --resume"
            )
            assert process.wait(20) == 130
            assert stdout.read() == ""
        assert (out / CHECKPOINT).exists()
        resumed = run("train", "--output", out, "--resume")
        assert resumed.code == 0
        assert "resumes after epoch" in resumed.err
        assert re.findall(r"^epoch (\d+)", resumed.err, re.MULTILINE)[-1] == "8"
        whole = run("train", *world, "--training.epochs", 8, "--output", tmp_path / "whole", "--quiet")
        assert whole.out == resumed.out
        weights = [(folder / "model.safetensors").read_bytes() for folder in (out, tmp_path / "whole")]
        assert weights[0] == weights[1]

    def test_a_full_disk_in_training(self, world: list[str], tmp_path: Path) -> None:
        def small() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

        with spawn("train", *world, "--output", tmp_path / "run", preexec_fn=small) as process:
            _, errors = process.communicate()
        assert process.returncode == 1
        assert re.fullmatch(r"error: .*safetensors: cannot be written: File too large", errors.splitlines()[-1])
        assert not (tmp_path / "run").exists()

    def test_bad_input(self, run: Run, world: list[str], tmp_path: Path) -> None:
        def refuse(message: str, *arguments: object) -> None:
            one_error(run("train", *world, *arguments, "--output", tmp_path / "run"), message)
            assert not (tmp_path / "run").exists()

        refuse("no setting 'training.epoch'; did you mean 'epochs'", "--training.epoch", 3)
        refuse("no setting 'trainng'; did you mean 'training'", "--trainng.epochs", 3)
        refuse("has no setting 'layrs'; did you mean 'layers'", "--encoder.layrs=3")
        refuse("'training.epochs' must be of type int, not 'x'", "--training.epochs", "x")
        refuse(r"no\.bmes: cannot be read: No such file", "--train", tmp_path / "no.bmes")
        refuse("empty.bmes: the file is empty", "--train", file_of(tmp_path / "empty.bmes", ""))
        columns = "".join(f"{c}\tO\n" for c in SENTENCE)
        refuse(r"tags\.bmes:9: .*'Q-PER'", "--train", file_of(tmp_path / "tags.bmes", f"{columns}红\tQ-PER\n"))
        refuse(
            r"vectors\.safetensors: not a valid safetensors file",
            "--vectors",
            file_of(tmp_path / "vectors.safetensors", "x"),
        )
        one_error(run("train", "--output", tmp_path / "run"), "no training corpus: give --train FILE")
        one_error(run("train", *world, "--output", file_of(tmp_path / "file", "")), "file is a file; name a folder")


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--train", "no.bmes", "--output", "file/new"),
        ("train", "--paper", "linear/msra", "--train", "no.bmes", "--output", "file/new"),
        ("distill", "no.txt", "--teacher", "no", "--output", "file/new/run"),
        ("pretrain", "no.txt", "--output", "file/new"),
        ("calibrate", "no.bmes", "file/new"),
        ("combine", "ensemble", "gold.bmes", "file/new", "--second", "lite"),
        ("export", "default", "file/new"),
        ("tune", "--train", "no.bmes", "--search", "training.epochs=1..2", "--output", "file/new"),
    ],
    ids=" ".join,
)
def test_a_folder_in_a_file_is_refused_before_the_work(
    arguments: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path / "file", "")
    file_of(tmp_path / "gold.bmes", "李\tS-PER\n")
    one_error(run(*arguments), r"^error: file is a file; name a folder for the \w+")


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "no.bmes", "--errors", "no/page.html"),
        ("select", "file", "--model", "no", "--output", "no/page.jsonl"),
        ("vectors", "train", "no.txt", "--output", "no/page.html"),
    ],
    ids=" ".join,
)
def test_a_file_without_a_folder_is_refused_before_the_work(
    arguments: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path / "file", "")
    one_error(run(*arguments), r"^error: no/page\.(html|jsonl): cannot be written: its folder does not exist")


@pytest.mark.parametrize("name", ["chosen.jsonl.gz", "chosen.csv", "chosen"])
def test_chosen_texts_are_json_lines(name: str, run: Run, tmp_path: Path) -> None:
    result = run("select", file_of(tmp_path / "pool.txt", "李明\n"), "--output", tmp_path / name, "--model", "no")
    assert result.code == 2
    assert "name a file of JSON lines, such as chosen.jsonl" in result.err


def test_a_cascade_is_not_calibrated(run: Run, tmp_path: Path) -> None:
    dev = file_of(tmp_path / "dev.bmes", "李\tS-PER\n")
    one_error(run("calibrate", dev, tmp_path / "new", "--model", "cascade"), "calibrate its model: --model default")


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "李明", "words.txt", "--output", "words.txt", "--model", "no"),
        ("predict", "words.txt", "--output", "link.txt", "--model", "no"),
        ("predict", "北京", "--lexicon", "words.txt", "--output", "words.txt", "--model", "no"),
        ("predict", "北京", "--patterns", "own.toml", "--output", "own.toml", "--model", "no"),
        ("select", "words.jsonl", "--output", "./words.jsonl", "--model", "no"),
        ("convert", "words.txt", "link.txt", "--to", "bio"),
        ("lexicon", "build", "words.txt", "--output", "words.txt"),
        ("vectors", "train", "words.txt", "--output", "words.txt"),
        ("vectors", "convert", "--chars", "words.txt", "--output", "words.txt"),
    ],
    ids=" ".join,
)
def test_an_output_does_not_replace_an_input(
    arguments: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path / "words.txt", "北京\tLOC\n")
    file_of(tmp_path / "words.jsonl", '{"text": "北京"}\n')
    file_of(tmp_path / "own.toml", "")
    (tmp_path / "link.txt").symlink_to("words.txt")
    one_error(run(*arguments), "is also an input, which would be lost; name another output")
    assert (tmp_path / "words.txt").read_text("utf-8") == "北京\tLOC\n"


def test_an_output_does_not_replace_the_file_that_is_standard_input(tmp_path: Path) -> None:
    own = file_of(tmp_path / "own.txt", f"{SENTENCE}\n")
    command = [*COMMAND, "predict", "-", "--output", str(own), "--model", str(tiny.trained())]
    with own.open() as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stderr == f"error: {own}: is also an input, which would be lost; name another output\n"
    assert own.read_text("utf-8") == f"{SENTENCE}\n"


def test_words_are_added_to_a_compiled_lexicon_in_its_place(run: Run, tmp_path: Path) -> None:
    words, compiled = file_of(tmp_path / "words.txt", "北京\n"), tmp_path / "words.lexicon"
    assert run("lexicon", "build", words, "--output", compiled).code == 0
    more = file_of(tmp_path / "more.txt", "上海\n")
    assert run("lexicon", "build", compiled, more, "--output", compiled).code == 0
    assert len(Lexicon.open(compiled)) == 2


def test_a_device_needs_no_folder_that_can_be_written() -> None:
    check_writable(Path("/dev/null"))


class TestEvaluate:
    @pytest.fixture
    def gold(self) -> Path:
        return tiny.folder() / "corpus.bmes"

    def test_table(self, run: Run, gold: Path) -> None:
        result = run("evaluate", tiny.trained(), gold)
        report = evaluate_spans(
            [d.spans for d in tiny.documents()], [tiny.ner()(d.text).spans for d in tiny.documents()]
        )
        assert result.code == 0
        assert result.err == ""
        assert str(report) in result.out
        assert result.out.splitlines()[0] == (
            f"{tiny.trained()}: 30 documents, 55 gold entities read leniently, exact matches"
        )

    def test_words_added_to_the_lexicon(self, run: Run, tmp_path: Path) -> None:
        gold = file_of(tmp_path / "gold.jsonl", '{"text": "好时光发布了新车", "entities": [[0, 3, "ORG"]]}\n')
        words = file_of(tmp_path / "words.txt", "好时光\tORG\n")
        micro = [
            [line.split() for line in run("evaluate", "default", gold, *added).out.splitlines() if "micro" in line]
            for added in ([], ["--lexicon", words])
        ]
        assert [row[0][-1] for row in micro] == ["0", "1"]
        one_error(
            run("evaluate", "default", gold, "--lexicon", tmp_path / "none.txt"), r"none\.txt: cannot be read"
        )

    def test_both_models_get_the_words_of_a_pipe(self, run: Run, tmp_path: Path) -> None:
        """Such as of ``--lexicon <(...)``, which can be read only once."""
        gold = file_of(tmp_path / "gold.jsonl", '{"text": "好时光发布了新车", "entities": [[0, 3, "ORG"]]}\n')
        reading, writing = os.pipe()
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            stream.write("好时光\tORG\n")
        done = run("evaluate", gold, "--compare", "default", "--lexicon", f"/dev/fd/{reading}")
        os.close(reading)
        assert "F1 100.00 → 100.00" in done.out

    def test_thresholds_trade_recall_for_precision(self, run: Run, gold: Path) -> None:
        documents = [tiny.ner()(d.text) for d in tiny.documents()]
        scores = sorted(score for d in documents for score in tiny.scores(d))
        middle = round((scores[0] + scores[-1]) / 2, 6)  # batches differ from single texts in the last digits
        rows = json.loads(
            run("evaluate", tiny.trained(), gold, "--format", "json", "--thresholds", f"0,{middle},1").out
        )["models"][str(tiny.trained())]
        assert 0 <= rows["calibration_error"] <= 1
        assert [row["predicted"] for row in rows["thresholds"]] == [
            sum(score >= step for score in scores) for step in (0, middle, 1)
        ]
        cut = run("evaluate", tiny.trained(), gold, "--threshold", str(middle))
        assert f"entities of at least {middle:g}" in cut.out
        assert "expected calibration error of confidences: " in cut.out
        wrong = run("evaluate", tiny.trained(), gold, "--thresholds", "0,2")
        assert wrong.code == 2
        assert "numbers from 0 to 1" in wrong.err

    def test_json_and_markdown(self, run: Run, gold: Path) -> None:
        rows = json.loads(run("evaluate", tiny.trained(), gold, "--format", "json").out)
        assert rows["models"][str(tiny.trained())]["micro"]["gold"] == 55
        assert "| micro |" in run("evaluate", tiny.trained(), gold, "--format", "markdown").out

    def test_offsets_of_texts_that_normalisation_changes(self, run: Run, tmp_path: Path) -> None:
        """Gold and predictions both lie on the text as given, whatever the model reads."""
        rows = [
            json.dumps({"text": f"㎏{before}\u3000{d.text}", "entities": [
                {"start": e.start + 2 + len(before), "end": e.end + 2 + len(before), "label": e.label}
                for e in d.entities
            ]})
            for before, d in zip(("", "e\u0301", "ＡＢ") * 10, tiny.documents(), strict=True)
        ]  # fmt: skip
        result = run(
            "evaluate", tiny.trained(), file_of(tmp_path / "odd.jsonl", "\n".join(rows)), "--format", "json"
        )
        assert json.loads(result.out)["models"][str(tiny.trained())]["micro"]["recall"] > 0.7

    def test_labels_the_model_does_not_know_are_named_counted_and_can_be_renamed(
        self, run: Run, tmp_path: Path
    ) -> None:
        text = (
            (tiny.folder() / "corpus.bmes")
            .read_text(encoding="utf-8")
            .replace("-PER", "-NR")
            .replace("-LOC", "-NS")
        )
        gold = file_of(tmp_path / "ms.bmes", text)
        strange = run("evaluate", tiny.trained(), gold)
        assert "but the gold also has NR, NS, which count as missed" in strange.err
        assert len(strange.err.splitlines()) == 1
        (micro,) = [line.split() for line in strange.out.splitlines() if line.startswith("micro")]
        assert micro[4] == "55"
        renamed = run("evaluate", tiny.trained(), gold, "--map", "NR=PER, NS=LOC")
        assert renamed.err == ""
        assert renamed.out == run("evaluate", tiny.trained(), tiny.folder() / "corpus.bmes").out

    def test_labels_that_are_renamed_to_one_are_one_gold_entity(self, run: Run, tmp_path: Path) -> None:
        spans = [{"start": 3, "end": 5, "label": label} for label in ("GPE", "LOC")]
        gold = file_of(tmp_path / "twice.jsonl", json.dumps({"text": SENTENCE, "entities": spans}))
        done = run("evaluate", tiny.trained(), gold, "--map", "GPE=LOC")
        assert (done.err, "1 documents, 1 gold entities" in done.out) == ("", True)

    def test_strict_gold_leaves_out_malformed_entities(self, run: Run, tmp_path: Path) -> None:
        rows = zip(SENTENCE, ["M-PER", "E-PER", "O", "B-LOC", "E-LOC", "O", "O", "O"], strict=True)
        gold = file_of(tmp_path / "ill.bmes", "".join(f"{c}\t{t}\n" for c, t in rows))
        lenient, strict = (run("evaluate", tiny.trained(), gold, mode).out for mode in ("--lenient", "--strict"))
        assert "2 gold entities read leniently" in lenient
        assert "1 gold entities read strictly" in strict

    def test_partial(self, run: Run, tmp_path: Path) -> None:
        row = {"text": SENTENCE, "entities": [{"start": 0, "end": 3, "label": "PER"}]}
        gold = file_of(tmp_path / "wide.jsonl", json.dumps(row))
        exact, partial = (
            run("evaluate", tiny.trained(), gold, *o, "--format", "json").out for o in ([], ["--partial"])
        )
        counts = [json.loads(out)["models"][str(tiny.trained())]["micro"]["correct"] for out in (exact, partial)]
        assert counts == [0, 1]

    def test_entities_with_labels_that_the_model_lacks_are_named(self, run: Run, tmp_path: Path) -> None:
        entity = {"start": 0, "end": 2, "label": "NAME"}
        gold = file_of(tmp_path / "gold.jsonl", json.dumps({"text": "李明在重庆", "entities": [entity]}))
        result = run("evaluate", gold, "--model", tiny.trained())
        assert f"{gold}:1: NAME '李明' cannot be predicted: the model has no label NAME\n" in result.out
        rows = json.loads(run("evaluate", gold, "--model", tiny.trained(), "--format", "json").out)["models"]
        assert rows[str(tiny.trained())]["unreachable"] == [f"{gold}:1: NAME '李明'"]

    def test_unreachable_entities_are_counted_and_the_first_printed(self, run: Run, tmp_path: Path) -> None:
        ends = [{"start": 3, "end": end, "label": "LOC"} for end in (5, 6, 7, 8, 9)]
        gold = file_of(tmp_path / "nested.jsonl", json.dumps({"text": "李明在重庆大学工作", "entities": ends}))
        result = run("evaluate", gold, "--model", tiny.trained(), "--engine", "torch")
        (row,) = [line.split() for line in result.out.splitlines() if line.startswith("reachable")]
        assert row == ["reachable", "20.00", "5", "1"]
        said = [line for line in result.out.splitlines() if "cannot be predicted" in line]
        named = ("重庆大学工作", "重庆大学工", "重庆大学")
        assert said == [
            f"{gold}:1: LOC '{name}' cannot be predicted together with the other gold entities" for name in named
        ]
        result = run("evaluate", tiny.trained(), gold, "--engine", "torch", "--format", "json")
        rows = json.loads(result.out)["models"]
        assert rows[str(tiny.trained())]["reachable"] == {"recall": 0.2, "gold": 5, "correct": 1}
        assert len(rows[str(tiny.trained())]["unreachable"]) == 3

    def test_a_convention_to_compare_needs_a_model_to_compare(self, run: Run, gold: Path) -> None:
        result = run("evaluate", gold, "--model", tiny.trained(), "--compare-convention", "default")
        one_error(result, "--compare-convention needs --compare MODEL")

    def test_a_comparison_is_of_exact_matches(self, run: Run, gold: Path) -> None:
        result = run("evaluate", gold, "--compare", tiny.trained(), "--partial")
        one_error(result, "--compare tests exact matches; leave out --partial")

    def test_compare(self, run: Run, gold: Path) -> None:
        result = run("evaluate", tiny.trained(), gold, "--compare", tiny.trained())
        assert re.search(r"F1 (\S+) → \1: \+0\.00 \[\+0\.00, \+0\.00\], p = 1\.0000", result.out)

    def test_bad_input(self, run: Run, tmp_path: Path, gold: Path) -> None:
        one_error(run("evaluate", tmp_path, gold), r"holds no config\.toml")
        one_error(run("evaluate", tiny.trained(), tmp_path / "no"), "no: cannot be read: No such file")
        one_error(
            run("evaluate", tiny.trained(), file_of(tmp_path / "empty.bmes", "\n")), "empty.bmes: the file is empty"
        )


def _megabytes(printed: str) -> float:
    found = re.search(r"([\d.]+) MB", printed)
    assert found
    return float(found[1])


class TestInfoAndLexicon:
    def test_info_of_a_model(self, run: Run) -> None:
        result = run("info", tiny.trained())
        assert result.code == 0
        assert f"hanlattice  {__version__}" in result.out
        assert "labels      LOC, ORG, PER" in result.out
        assert f"lexicon     {len(tiny.WORDS)} words" in result.out
        assert "d_model = 20" in result.out
        assert "| micro |" in result.out

    def test_info_shows_the_model_as_it_is_opened(self, run: Run, tmp_path: Path) -> None:
        assert "engine      cascade" in run("info", "cascade").out
        folder = tmp_path / "model"
        shutil.copytree(tiny.trained(), folder)
        ner = hanlattice.load(folder)
        before, words = _megabytes(run("info", folder).out), len(ner.lexicon)
        ner.lexicon.update(["甲乙丙丁", "乙丙丁戊"])
        save_edits(ner.lexicon, ner.base, folder / EDITS)
        (folder / "second").mkdir()
        (folder / "second" / "file").write_bytes(b"x" * 3_000_000)
        result = run("info", folder).out
        assert f"lexicon     {words + 2} words" in result
        assert _megabytes(result) == pytest.approx(before + 3, abs=0.2)

    def test_info_of_this_installation(self, run: Run) -> None:
        result = run("info")
        assert result.code == 0
        assert "model       " in result.out

    def test_build_info_match(self, run: Run, tmp_path: Path) -> None:
        words = file_of(tmp_path / "words.txt", "北京\tLOC\t2\n北京大学\tORG\n大学\n")
        more = file_of(tmp_path / "more.txt", "大学生\n北京\tGPE\n")
        built = run("lexicon", "build", words, more, "--output", tmp_path / "words.bin")
        assert built.code == 0
        assert built.err.startswith(f"{tmp_path / 'words.bin'}: 4 words")
        facts = run("lexicon", "info", tmp_path / "words.bin").out
        assert "words     4" in facts
        assert "label GPE  1" in facts
        assert "label LOC" not in facts
        rows = run("lexicon", "match", tmp_path / "words.bin", "在北京大学生活").out.splitlines()[1:]
        assert [row.split() for row in rows] == [
            ["北京", "GPE", "1", "3"], ["北京大学", "ORG", "1", "5"], ["大学", "3", "5"], ["大学生", "3", "6"],
        ]  # fmt: skip
        assert run("lexicon", "match", tmp_path / "words.bin", "上海").out == "(no words)\n"

    def test_matches_in_lines_of_standard_input_have_titles(self, tmp_path: Path) -> None:
        words = file_of(tmp_path / "words.txt", "北京\n大学\n")
        command = [*COMMAND, "lexicon", "match", str(words), "-"]
        done = subprocess.run(command, input="大学\n上海\n", capture_output=True, text=True, env=ENVIRONMENT)
        table = [["word", "label", "start", "end"], ["大学", "0", "2"]]
        rows = [line.split() for line in done.stdout.splitlines()]
        assert rows == [["#", "大学"], *table, ["#", "上海"], ["(no", "words)"]]

    def test_lengths_of_words_are_apart_from_their_numbers(self, run: Run, tmp_path: Path) -> None:
        words = file_of(tmp_path / "words.txt", f"{'长' * 100}\n北京\n大学\n")
        rows = [line.split() for line in run("lexicon", "info", words).out.splitlines()]
        assert rows[2:] == [["length", "2", "2"], ["length", "100", "1"]]

    def test_bad_input(self, run: Run, tmp_path: Path) -> None:
        one_error(run("lexicon", "info", tmp_path / "no"), "no: cannot be read: No such file")
        words = file_of(tmp_path / "words.txt", "北京\n")
        one_error(run("lexicon", "build", words, "--output", tmp_path / "no" / "out"), "cannot be written")
        broken = tmp_path / "broken.bin"
        Lexicon(["北京"]).save(broken)
        broken.write_bytes(broken.read_bytes()[:-9])
        one_error(run("lexicon", "match", broken, "北京"), r"broken\.bin: .*build it again")
        one_error(run("info", tmp_path), r"holds no config\.toml")
        for options in ([], ["--verify"]):
            one_error(run("info", words, *options), r"words\.txt: is a file, not the folder of a model; name the")


def test_a_terminal_shows_progress_bars_and_colours(tmp_path: Path) -> None:
    """Through a pseudo-terminal: the table is drawn for one, and training shows a bar with the loss."""
    ours, theirs = pty.openpty()
    settings = ["--training.epochs", "2", "--output", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*COMMAND, "train", *small_world(), *settings], stdout=subprocess.PIPE, stderr=theirs, env=ENVIRONMENT
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 65_536)
        except OSError:  # the other end was closed
            break
    out = process.communicate()[0].decode()
    assert process.returncode == 0
    screen = seen.decode(errors="replace")
    assert "epoch 2/2" in screen
    assert "\x1b[" in screen
    assert "\x1b[" not in out

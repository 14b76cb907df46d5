"""Runs: bad inputs are errors, and a stopped run resumes to the same bytes."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

import tiny
from annotated import TEXTS, Engine, here, run, written
from hanlattice.annotation import Chunk, Job, Part, local
from hanlattice.annotation.local import _SharedChunks, _WorkerThread
from hanlattice.annotation.run_folder import RunFolder
from hanlattice.errors import ConfigError, DataError, HanlatticeError, ModelError


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


class TestErrors:
    """Each is a one-line error, before a model is loaded."""

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            (
                "a.csv",
                b"id,body\n",
                "has no column 'text', only id, body; name the column of the text with --column",
            ),
            ("a.csv", b"entities,text\n", "already has 'entities'"),
            ("a.csv", b"text,text\n", "two columns 'text'"),
            ("a.csv", b"", "the file is empty; the first row has to name the columns"),
            ("a.csv", b"\ntext\n", "the first line is empty; the first row has to name the columns"),
            ("a.csv", b"text,\xff\n", "the header is not UTF-8; the first row has to name the columns"),
            ("a.parquet", b"PAR1 but no more", "not a valid Parquet file"),
            ("a.xyz", b"", "--from"),
            ("a.txt.gz", b"no gzip", "cannot be decompressed"),
        ],
    )
    def test_inputs(self, name: str, content: bytes, message: str, tmp_path: Path) -> None:
        if "parquet" in name:
            pytest.importorskip("pyarrow")
        (tmp_path / name).write_bytes(content)
        with pytest.raises(HanlatticeError, match=message):
            run(tmp_path / name, tmp_path / "out.jsonl")

    def test_one_column_for_texts_and_entities(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(b"text\n")
        with pytest.raises(ConfigError, match="--column and --into are both 'text'; choose different names"):
            run(tmp_path / "a.csv", tmp_path / "out.jsonl", into="text")

    def test_a_damaged_parquet_file(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": TEXTS, "n": range(30)}), path, compression="gzip")
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + bytes(200) + whole[204:])
        with pytest.raises(DataError, match="not a valid Parquet file"):
            run(path, tmp_path / "out.jsonl")

    def test_columns_of_parquet(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"n": [1], "a": ["x"]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
        with pytest.raises(DataError, match="no column 'text', only n, a"):
            run(tmp_path / "a.parquet", tmp_path / "out.jsonl")
        with pytest.raises(DataError, match="'n' holds int64, not text"):
            run(tmp_path / "a.parquet", tmp_path / "out.jsonl", column="n")
        with pytest.raises(DataError, match=r"b\.parquet: has other columns than .*a\.parquet"):
            run(tmp_path / "*.parquet", tmp_path / "out.parquet", column="a")
        twice = pa.Table.from_arrays([pa.array(["x"])] * 3, names=["text", "a", "a"])
        pq.write_table(twice, tmp_path / "c.parquet")
        for output in ("out.jsonl", "out.parquet"):
            with pytest.raises(DataError, match=r"c\.parquet: has two columns 'a'; rename one of them"):
                run(tmp_path / "c.parquet", tmp_path / output)

    def test_missing_inputs_and_models(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="No such file"):
            run(tmp_path / "none.txt", tmp_path / "out.jsonl")
        with pytest.raises(DataError, match="no file to annotate"):
            run(tmp_path, tmp_path / "out.jsonl")
        with pytest.raises(ModelError, match="no such folder"):
            run(self._text(tmp_path), tmp_path / "out.jsonl", model=str(tmp_path / "nothing"))

    @pytest.mark.parametrize("name", ["out.jsonl", "folder"])
    def test_a_run_that_failed_at_once_can_be_corrected(self, name: str, tmp_path: Path) -> None:
        text = self._text(tmp_path)
        wrongs: tuple[Any, ...] = ({"force": (("李明", "CITY"),)}, {"block": (("李明", "CITY"),)})
        for wrong in wrongs:
            with pytest.raises(HanlatticeError, match="CITY"):
                run(text, tmp_path / name, **wrong)
        assert run(text, tmp_path / name, threshold=0.5).rows > 0

    def test_outputs(self, tmp_path: Path) -> None:
        text = self._text(tmp_path)
        run(text, tmp_path / "folder")
        assert run(text, tmp_path / "folder").resumed == 1
        with pytest.raises(ConfigError, match="another run, with other threshold; name another output"):
            run(text, tmp_path / "folder", threshold=0.5)
        os.utime(text, (0, 0))
        with pytest.raises(ConfigError, match="with other inputs"):
            run(text, tmp_path / "folder")
        run(text, tmp_path / "out.jsonl")
        with pytest.raises(DataError, match="already exists"):
            run(text, tmp_path / "out.jsonl")
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").touch()
        with pytest.raises(ConfigError, match="holds other files"):
            run(text, tmp_path / "mine")
        with pytest.raises(ConfigError, match="is a file"):
            run(text, text)

    def test_a_folder_of_a_run_killed_at_its_first_write_is_its_own(self, tmp_path: Path) -> None:
        (tmp_path / "out" / "_run").mkdir(parents=True)
        assert run(self._text(tmp_path), tmp_path / "out").rows == 1

    @pytest.mark.parametrize("left", [(), ("_run/lock",), ("_run/lock", "_run/000000.json")])
    def test_what_a_run_killed_while_cleaning_up_has_left_is_removed(
        self, left: tuple[str, ...], tmp_path: Path
    ) -> None:
        run(self._text(tmp_path), tmp_path / "out.jsonl")
        folder = tmp_path / "out.jsonl.parts"
        folder.mkdir()
        for name in left:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()
        with pytest.raises(DataError, match="already exists"):
            run(self._text(tmp_path), tmp_path / "out.jsonl")
        assert not folder.exists()

    def test_an_output_of_another_program_leaves_the_parts_of_a_stopped_run(
        self, lines: Path, tmp_path: Path
    ) -> None:
        output = tmp_path / "out.jsonl"
        with pytest.raises(KeyboardInterrupt):
            run(lines, output, stopping_after(3))
        output.write_bytes(
            b"".join(path.read_bytes() for path in sorted((tmp_path / "out.jsonl.parts").glob("p*")))
        )
        with pytest.raises(DataError, match="already exists; name another output, or remove it"):
            run(lines, output)
        assert parts_of(output) == 3
        output.unlink()
        assert run(lines, output).resumed > 0

    def test_a_folder_with_other_files_is_not_removed(self, tmp_path: Path) -> None:
        run(self._text(tmp_path), tmp_path / "out.jsonl")
        (tmp_path / "out.jsonl.parts").mkdir()
        (tmp_path / "out.jsonl.parts" / "thesis.txt").touch()
        with pytest.raises(DataError, match="already exists"):
            run(self._text(tmp_path), tmp_path / "out.jsonl")
        assert (tmp_path / "out.jsonl.parts" / "thesis.txt").exists()

    def test_two_processes_cannot_share_an_output(self, lines: Path, tmp_path: Path) -> None:
        def second(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
            with pytest.raises(ConfigError, match="in use by another process"):
                run(lines, tmp_path / "out")
            return here(chunks, job)

        assert run(lines, tmp_path / "out", second).rows == 30

    @staticmethod
    def _text(folder: Path) -> Path:
        (folder / "a.txt").write_text("北京\n", encoding="utf-8")
        return folder / "a.txt"


def stopping_after(n: int) -> Engine:
    """An engine that stops after ``n`` parts, which it finishes in another order than it read them."""

    def engine(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
        parts = list(here(chunks, job))
        random.Random(n).shuffle(parts)
        yield from parts[:n]
        raise KeyboardInterrupt

    return engine


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
def test_a_stopped_run_resumes_to_the_same_bytes(suffix: str, lines: Path, tmp_path: Path) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    with lines.open("ab") as stream:
        stream.write(b"\xff\n")
    run(lines, whole := tmp_path / f"whole.{suffix}")
    output = tmp_path / f"out.{suffix}"
    for n in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            run(lines, output, stopping_after(n))
        assert not output.exists()
    done = run(lines, output)
    assert (done.rows, done.bad) == (30, 1)
    assert 4 <= done.resumed <= 16
    assert output.read_bytes() == whole.read_bytes()
    assert written(tmp_path / f"out.{suffix}.bad.jsonl") == written(tmp_path / f"whole.{suffix}.bad.jsonl")


def command(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "hanlattice", "annotate", *map(str, arguments), "--model", str(tiny.trained())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def parts_of(output: Path) -> int:
    return len(list(output.with_name(f"{output.name}.parts").glob("part-*")))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, "the condition was not met within two minutes"
        time.sleep(0.01)


def test_a_run_killed_at_random_points_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    """Killed by signal 9 with two workers, then resumed with one: the same bytes as an undisturbed run."""
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(TEXTS * 40) + "\n", encoding="utf-8")
    run(lines, tmp_path / "whole.jsonl", chunk_rows=5)
    output, draw = tmp_path / "out.jsonl", random.Random(1)
    for at in sorted(draw.sample(range(10, 150), 2)):
        process = command(lines, output, "--chunk-rows", 5, "--workers", 2)
        with process:
            wait_for(lambda at=at, p=process: parts_of(output) >= at or p.poll() is not None)  # type: ignore[misc]
            time.sleep(draw.random() * 0.02)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert at <= parts_of(output) < 240
    with command(lines, output, "--chunk-rows", 5) as process:
        _, notes = process.communicate(timeout=120)
    assert process.returncode == 0, notes
    assert "1,200 rows" in notes
    assert "from an earlier run" in notes
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds its workers in /proc")
def test_two_workers_give_the_same_bytes_even_if_one_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(TEXTS * 20) + "\n", encoding="utf-8")
    run(lines, tmp_path / "whole.jsonl")
    killed: list[int] = []
    before = threading.active_count()

    def engine(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
        for part in local(chunks, job, workers=2):
            if not killed:
                tasks = Path("/proc/self/task").glob("*/children")
                killed.extend(int(pid) for file in tasks for pid in file.read_text().split())
                os.kill(killed[0], signal.SIGKILL)
            yield part

    run(lines, tmp_path / "out.jsonl", engine)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert len(killed) == 2
    assert "a worker was lost (signal 9)" in caplog.text
    assert threading.active_count() <= before


class Fatal:
    """Ends the worker that receives it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (3,)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
@pytest.mark.parametrize("removed", [0, 3, 1000])
def test_a_run_killed_while_cleaning_up_is_finished_by_the_same_command(
    suffix: str, removed: int, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after ``removed`` files of its folder are gone; the manifest is the last one that matters."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    with lines.open("ab") as stream:
        stream.write(b"\xff\n")
    output = tmp_path / f"out.{suffix}"

    def killed(folder: RunFolder) -> None:
        files = [*folder.folder.glob("part-*"), *folder._markers()]
        for path in files[:removed]:
            path.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            run(lines, output)
    before = output.read_bytes()
    with pytest.raises(ConfigError, match="another run, with other threshold"):
        run(lines, output, threshold=0.5)
    done = run(lines, output)
    assert (done.rows, done.bad, done.resumed) == (30, 1, 30)
    assert done.bad_rows == tmp_path / f"out.{suffix}.bad.jsonl"
    assert output.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, done.bad_rows.name, lines.name]
    with pytest.raises(DataError, match="already exists"):
        run(lines, output)


def test_the_number_of_lost_workers_is_reported() -> None:
    chunk = Chunk(0, "a.txt", "lines", 7, Fatal(), 1)
    with pytest.raises(HanlatticeError, match=r"^a\.txt:7: 3 workers were lost at the rows from this line"):
        list(local(iter([chunk]), Job()))
    source = _SharedChunks(iter(()))
    source.close()  # as when another worker has failed: there is no second try
    with pytest.raises(HanlatticeError, match=r"^a\.txt:7: 1 worker was lost at the rows from this line"):
        _WorkerThread(source, Job(), Queue())._part(chunk)


def test_errors_of_workers_are_reported(lines: Path, tmp_path: Path) -> None:
    broken = tmp_path / "words.txt"
    broken.write_bytes(b"\xff")
    with pytest.raises(HanlatticeError, match=r"words\.txt:1: .*not UTF-8"):
        run(lines, tmp_path / "out.jsonl", local, lexicons=(str(broken),))


def test_a_file_of_bad_rows_is_not_replaced(tmp_path: Path) -> None:
    """It may be the input: repaired rows of an earlier run."""
    bad = tmp_path / "out.jsonl.bad.jsonl"
    bad.write_text('{"row": "李明在北京"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"out\.jsonl\.bad\.jsonl: already exists, and the run would replace it"):
        run(bad, tmp_path / "out.jsonl", column="row")
    assert bad.exists()
    assert not (tmp_path / "out.jsonl.parts").exists()
    assert run(bad, tmp_path / "other.jsonl", column="row").rows == 1


def test_suffixes_in_capitals_are_known(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "B.TXT"):
        (tmp_path / "in" / name).write_text("李明在北京\n", encoding="utf-8")
    assert run(tmp_path / "in", tmp_path / "out.jsonl").rows == 2


def test_all_rows_bad_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    with command(tmp_path / "a.jsonl", tmp_path / "out.jsonl") as process:
        out, notes = process.communicate(timeout=120)
    assert process.returncode == 1
    assert out == ""
    assert "0 rows; 1 set aside in" in notes

"""Tests of the measurements of throughput, latency, start-up and memory, and of `hanlattice benchmark`."""

import io
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tiny
from hanlattice.benchmark import (
    COMMON_CHARACTERS,
    OTHER_TAGGERS,
    Latency,
    SpeedRatio,
    _peak_memory,
    _processor_time,
    measure_latency,
    measure_ratios,
    measure_start_ratio,
    measure_startup,
    measure_throughput,
    other_taggers,
    random_text,
    report_startup,
    split_text,
)
from hanlattice.cli import benchmark, main
from hanlattice.errors import HanlatticeError, ModelError
from hanlattice.kernels.library import kernels
from hanlattice.lexicon import Lexicon


def test_random_text_and_texts_of_a_given_length() -> None:
    text = random_text(Lexicon(tiny.WORDS), 1000)
    assert len(text) == 1000
    assert sum(word in text for word in tiny.WORDS) > 10
    assert text == random_text(Lexicon(tiny.WORDS), 1000)
    assert split_text(text, 300, 5) == [text[:300], text[300:600], text[600:900]]
    assert split_text(text, 300, 2) == [text[:300], text[300:600]]
    assert split_text("李明在", 8, 9) == ["李明在李明在李明"]


class SlowModel:
    """Takes 10 ms for each text."""

    def pipe(self, texts: list[str], batch_size: int) -> Any:
        for text in texts:
            yield self(text)

    def __call__(self, text: str) -> str:
        time.sleep(0.01)
        return text


def test_throughput_and_latency() -> None:
    ner: Any = SlowModel()
    measured = measure_throughput(ner, ["一二三四"] * 10, 2, seconds=0.2)
    assert 50 < measured.sentences_per_second <= 100
    assert measured.characters_per_second == pytest.approx(4 * measured.sentences_per_second)
    latency = measure_latency(ner, ["一二三四"] * 10, seconds=0.2)
    assert 10 <= latency.p50 <= latency.p95 <= latency.p99 < 100


class Clock:
    """A clock that only moves when a text is read: by 1 ms, but by 100 ms for three texts of a hundred."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, 0

    def perf_counter(self) -> float:
        return self.now

    def __call__(self, text: str) -> None:
        self.now += 0.1 if self.calls % 100 in (7, 42, 99) else 0.001
        self.calls += 1


def test_percentiles_of_the_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: Any = Clock()
    monkeypatch.setattr("hanlattice.benchmark.time", clock)
    latency = measure_latency(clock, ["一二三四"] * 200, seconds=0.0)
    assert clock.calls == 200
    assert (latency.p50, latency.p95, latency.p99) == pytest.approx((1, 1, 100))


def test_startup() -> None:
    startup = measure_startup({}, [d.text for d in tiny.documents()])
    assert 0.05 < startup.first_answer < 60
    assert 20 < startup.memory <= startup.memory_in_use < 4000
    with pytest.raises(ModelError, match="no such folder"):
        measure_startup({"model_folder": "nowhere"}, ["一"])


def test_start_ratio() -> None:
    start = measure_start_ratio({"model_folder": "lite"}, "李明在北京", rounds=1)
    assert 0.05 < start.seconds < 60
    assert 1 < start.min == start.median == start.max < 20
    with pytest.raises(ModelError, match="no such folder"):
        measure_start_ratio({"model_folder": "nowhere"}, "一", rounds=1)


def test_a_process_without_a_message_is_named_by_its_exit_status() -> None:
    with pytest.raises(ModelError, match="start-up failed: exit status -9"):
        _processor_time("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")


def busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class BusyModel:
    """Takes 4 ms of processor time for each text, and much longer on the clock."""

    def pipe(self, texts: list[str], batch_size: int) -> Any:
        for text in texts:
            busy(0.004)
            time.sleep(0.01)
            yield text


def test_ratios_are_those_of_processor_time() -> None:
    others = {"slow": lambda text: busy(0.012), "fast": lambda text: busy(0.001)}
    slow, fast = measure_ratios(BusyModel(), others, ["甲乙"] * 5, batch_size=4, rounds=3)  # type: ignore[arg-type]
    assert (slow.system, fast.system, slow.length) == ("slow", "fast", 2)
    assert slow.min <= slow.median <= slow.max
    assert slow.median == pytest.approx(3, rel=0.4)
    assert fast.median == pytest.approx(0.25, rel=0.4)
    assert slow.characters_per_second == pytest.approx(500, rel=0.4)
    assert slow.system_characters_per_second == pytest.approx(slow.characters_per_second / slow.median, rel=0.3)


def test_other_taggers() -> None:
    with pytest.raises(HanlatticeError, match="no comparison with 'thulac'; it is one of jieba, rjieba"):
        other_taggers(["thulac"])
    for name in OTHER_TAGGERS:
        pytest.importorskip(name)
        assert [next(iter(row)) for row in other_taggers([name])[name]("北京在中国")] == ["北京", "在", "中国"]


def test_taggers_by_the_functions_of_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[str] = []
    posseg, tag = SimpleNamespace(lcut=list), str.split
    jieba = SimpleNamespace(posseg=posseg, setLogLevel=levels.append)
    for name, module in (("jieba", jieba), ("jieba.posseg", posseg), ("rjieba", SimpleNamespace(tag=tag))):
        monkeypatch.setitem(sys.modules, name, module)
    assert other_taggers(["jieba", "rjieba"]) == {"jieba": list, "rjieba": tag}
    assert levels == ["ERROR"], "it says nothing while it loads"


def test_a_tagger_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(HanlatticeError, match="the comparison with rjieba needs: pip install rjieba"):
        other_taggers(["rjieba"])


def test_comparison_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OTHER_TAGGERS, "jieba", lambda: list)
    monkeypatch.setattr(benchmark, "CHARACTERS", 160)
    (tmp_path / "text.txt").write_text("李明在北京工作。" * 40, encoding="utf-8")
    options = [f"--text={tmp_path / 'text.txt'}", "--lengths=8,20", "--against", "jieba", "--rounds", "3"]
    assert status(*options) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:3] == ["text", "compared", "with"]
    assert lines[1].split()[:3] == ["text.txt", "jieba", "8"]
    assert status(*options, "--format", "jsonl") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["text"], row["system"], row["length"]) for row in rows] == [
        ("text.txt", "jieba", 8),
        ("text.txt", "jieba", 20),
    ]
    assert all(row["min"] <= row["median"] <= row["max"] for row in rows)


def status(*options: str) -> int:
    """The exit status of the command."""
    with pytest.raises(SystemExit) as exit_info:
        main(["benchmark", *options])
    return int(exit_info.value.code or 0)


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_text("李明在北京工作。" * 40, encoding="utf-8")
    monkeypatch.setattr(benchmark, "CHARACTERS", 320)
    options = [
        f"--text={tmp_path / 'text.txt'}",
        "--lengths=8,20",
        "--batch-sizes=1,4",
        "--seconds=0.01",
        "--rounds=1",
    ]
    assert status(*options) == 0
    shown = capsys.readouterr().out
    assert "characters/s" in shown
    assert "p99 ms" in shown
    assert "first answer" in shown
    assert "times as long as python -c 'import numpy'" in shown
    assert status(*options, "--format", "jsonl") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["length"], row["batch_size"]) for row in rows[:4]] == [(8, 1), (8, 4), (20, 1), (20, 4)]
    assert [row["length"] for row in rows[4:6]] == [8, 20]
    assert rows[6].keys() == {"first_answer", "memory", "memory_in_use"}
    assert rows[7].keys() == {"seconds", "min", "median", "max"}


def test_start_up_is_left_out_where_it_cannot_be_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "CHARACTERS", 320)
    monkeypatch.setattr("hanlattice.benchmark.measures_processes", lambda: False)
    assert status("--lengths=8", "--batch-sizes=1", "--seconds=0.01") == 0
    shown = capsys.readouterr()
    assert "p99 ms" in shown.out
    assert "first answer" not in shown.out
    assert "start-up time and memory cannot be measured on this system" in shown.err


@pytest.mark.parametrize(
    ("options", "expected", "message"),
    [
        (["--lengths", "0"], 1, "--lengths must be a list of whole numbers above 0"),
        (["--format", "xml"], 1, "--format must be table or jsonl, not 'xml'"),
        (["--engine", "abacus"], 2, "'abacus' is not one of 'auto', 'native'"),
        (["--text", "nowhere.txt"], 1, "nowhere.txt: cannot be read: No such file"),
    ],
)
def test_wrong_options(options: list[str], expected: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(*options) == expected
    assert message in capsys.readouterr().err


def test_time_of_each_stage() -> None:
    if kernels() is None:
        pytest.skip("the kernels are not compiled")
    script = Path(__file__).parents[1] / "benchmarks" / "stages.py"
    command = [sys.executable, str(script), "--sentences=3", "--rounds=1"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    stages = ("normalise", "cut into windows", "read", "encoder and tags", "documents", "all")
    assert [line[:18].strip() for line in shown.splitlines()[3:]] == list(stages)
    times = [float(line[18:].split()[0]) for line in shown.splitlines()[3:]]
    assert min(times[2:]) > 0
    assert times[3] > max(times[0], times[1]), "the encoder takes longer than what prepares its texts"


def test_the_rates_of_a_random_text() -> None:
    """About two of a hundred parts are full stops; of the others, 35 of a hundred are words of the lexicon."""
    text = random_text(Lexicon(["甲乙丙"]), 30_000, seed=4)
    stops, words = text.count("。"), text.count("甲乙丙")
    others = len(text) - stops - 3 * words
    parts = stops + words + others
    assert stops / parts == pytest.approx(0.02, rel=0.15)
    assert words / (parts - stops) == pytest.approx(0.35, rel=0.05)
    assert {*text} - {*"甲乙丙。"} <= {*COMMON_CHARACTERS}
    assert random_text(Lexicon(["甲乙丙"]), 50) == random_text(Lexicon(["甲乙丙"]), 50, seed=0) != text[:50]
    assert len(random_text(Lexicon([]), 9)) == 9
    assert random_text(Lexicon([]), 0) == ""


def test_a_random_text_has_the_first_200_000_words_of_a_lexicon() -> None:
    words: Any = (f"{i:06}" for i in itertools.count())
    random_text(words, 1)
    assert int(next(words)) == 200_001, "zip takes one more before it ends"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("李", ["李李李"]), ("", []), ("李明在", ["李明在"]), ("李明在北", ["李明在"]), ("李明在北京", ["李明在"])],
)
def test_texts_shorter_and_longer_than_the_length(text: str, expected: list[str]) -> None:
    assert split_text(text, 3, 9) == expected


class ScriptedModel:
    """Takes as many seconds for each pass as the script says, on a clock of its own."""

    def __init__(self, *passes: float):
        self.now, self.passes = 100.0, list(passes)
        self.read: list[tuple[int, int]] = []

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.now

    def pipe(self, texts: list[str], batch_size: int) -> Any:
        self.read.append((len(texts), batch_size))
        yield from texts
        self.now += self.passes.pop(0)

    def __call__(self, text: str) -> None:
        self.read.append((1, 1))
        self.now += self.passes.pop(0)


@pytest.mark.parametrize(
    ("passes", "seconds", "best", "n"),
    [
        ([1.0, 4.0, 2.0, 3.0], 10.0, 2.0, 3),  # the last pass starts after 7 seconds and ends at 10
        ([1.0, 4.0, 2.0, 3.0, 1.0], 10.1, 1.0, 4),
        ([1.0, 4.0], 0.0, 4.0, 1),
        ([1.0, 4.0], 5.0, 4.0, 1),
    ],
)
def test_the_best_pass_before_the_deadline(
    passes: list[float], seconds: float, best: float, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = ScriptedModel(*passes)
    monkeypatch.setattr("hanlattice.benchmark.time", model)
    found = measure_throughput(model, ["甲乙"] * 10, 3, seconds)
    assert (found.length, found.batch_size) == (2, 3)
    assert (found.characters_per_second, found.sentences_per_second) == (20 / best, 10 / best)
    assert model.read == [(6, 3)] + [(10, 3)] * n, "a shorter warm-up first"


def test_no_text_is_read_after_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, n in ((0.0, 2), (2.0, 3), (2.5, 3), (3.5, 4)):
        model: Any = ScriptedModel(*[1.0] * 9)
        monkeypatch.setattr("hanlattice.benchmark.time", model)
        assert measure_latency(model, ["甲乙"] * 2, seconds) == Latency(2, 1000, 1000, 1000)
        assert len(model.read) == n, "each text once, and then while there is time"


def test_ratios_of_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = ScriptedModel(50.0, 1.0, 2.0, 4.0, 0.0)
    monkeypatch.setattr("hanlattice.benchmark.time", model)
    seconds = iter([50.0, 0.0, 3.0, 0.0, 5.0, 0.0, 8.0, 0.0])  # of both texts, in a warm-up and in three rounds
    read: list[str] = []

    def other(text: str) -> None:
        read.append(text)
        model.now += next(seconds)

    (found,) = measure_ratios(model, {"other": other}, ["甲乙", "丙"], batch_size=7, rounds=3)
    assert found == SpeedRatio(2, "other", 3 / 2, 3 / 5, 2.0, 2.5, 3.0)
    assert model.read == [(2, 7)] * 4
    assert read == ["甲乙", "丙"] * 4
    model.passes = [1.0, 0.0]
    (instant,) = measure_ratios(model, {"other": lambda text: None}, ["甲"], batch_size=1, rounds=1)
    assert instant.median == 1.0, "times that are too short to measure"
    assert instant.characters_per_second == pytest.approx(1e9, rel=1e-6)


def test_the_time_of_a_process_is_its_own() -> None:
    busy_loop = "import time\nwhile time.process_time() < 0.3: pass"
    assert _processor_time(busy_loop) >= 0.3 > _processor_time("pass")


def test_the_report_of_a_new_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    read: list[Any] = []

    class Model:
        def __call__(self, text: Any) -> Any:
            if not isinstance(text, str):
                return map(read.append, text)
            read.append(text)
            return None

    def load(**settings: Any) -> Model:
        read.append(settings)
        return Model()

    monkeypatch.setattr("hanlattice.api.load", load)
    monkeypatch.setattr("hanlattice.benchmark._peak_memory", iter([3.0, 5.0]).__next__)
    monkeypatch.setattr(
        sys, "stdin", io.StringIO(json.dumps([time.time() - 5, {"model_folder": "m"}, ["甲", "乙"]]))
    )
    report_startup()
    assert read == [{"model_folder": "m"}, "甲", "甲", "乙"]
    found = json.loads(capsys.readouterr().out)
    assert 5 <= found["first_answer"] < 10
    assert (found["memory"], found["memory_in_use"]) == (3.0, 5.0)


@pytest.mark.parametrize(("system", "unit"), [("linux", 1024), ("darwin", 1024 * 1024)])
def test_the_peak_memory_is_in_mebibytes(system: str, unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux reports it in KiB, macOS in bytes."""
    import resource

    def used(who: int) -> Any:
        assert who == resource.RUSAGE_SELF
        return SimpleNamespace(ru_maxrss=37 * unit)

    monkeypatch.setattr(resource, "getrusage", used)
    monkeypatch.setattr(sys, "platform", system)
    assert _peak_memory() == 37

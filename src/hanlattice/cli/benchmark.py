"""``hanlattice benchmark``: throughput, latency and memory of a model on this machine."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hanlattice.cli.options import (
    BlockOption,
    ConventionOption,
    DeviceOption,
    Engine,
    EngineOption,
    ForceOption,
    Int8Option,
    LexiconOption,
    ModelArgument,
    ModelOption,
    PatternsOption,
    QuietOption,
    ThreadsOption,
    ThresholdOption,
    TrustOption,
    chosen_patterns,
    following,
    load_model,
    model_path,
    one_model,
)
from hanlattice.cli.tables import Column, print_table
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.files import read_lines

CHARACTERS = 20_000  # length of the text that is read repeatedly

if TYPE_CHECKING:
    from hanlattice.benchmark import Latency, SpeedRatio, StartRatio, Startup, Throughput


def benchmark(
    argument: ModelArgument = None,
    model: ModelOption = None,
    text: Annotated[Path | None, typer.Option(help="Text to read; by default a generated one.")] = None,
    lengths: Annotated[str, typer.Option(help="Characters per text, such as 20,50,200.")] = "20,50,200",
    batch_sizes: Annotated[str, typer.Option(help="Texts per batch, such as 1,16,64.")] = "1,16,64",
    engine: EngineOption = Engine.auto,
    int8: Int8Option = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 1,
    convention: ConventionOption = None,
    lexicon: LexiconOption = None,
    force: ForceOption = None,
    block: BlockOption = None,
    threshold: ThresholdOption = 0.0,
    patterns: PatternsOption = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Time for each measurement.")] = 1.0,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare with other taggers instead, such as jieba,rjieba: ratios of speeds in processor time."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of a comparison, and starts of the process.")] = 9,
    format: Annotated[str, typer.Option(help="table or jsonl.")] = "table",  # noqa: A002
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure throughput (characters and sentences per second), latency, start-up time and memory.

    With --against, compare the speed of the model with that of other taggers: texts of each length in --lengths,
    the model in batches of the last of --batch-sizes, the other taggers one text per call.

    Start-up is measured without --lexicon, --force, --block and --threshold, and not on Windows.

    Results depend on the machine and its load: compare only results measured at the same time.
    """
    from hanlattice.benchmark import (
        measure_latency,
        measure_ratios,
        measure_start_ratio,
        measure_startup,
        measure_throughput,
        measures_processes,
        other_taggers,
        random_text,
        split_text,
    )

    sizes, batches = _numbers(lengths, "--lengths"), _numbers(batch_sizes, "--batch-sizes")
    if format not in ("table", "jsonl"):
        raise HanlatticeError(f"--format must be table or jsonl, not {format!r}")
    regular = chosen_patterns(patterns, None)
    settings = {
        "model_folder": model_path(one_model(argument, model)),
        "device": device,
        "engine": engine.value,
        "threads": threads,
        "int8": int8 or None,
        "convention": convention or "",
        "patterns": patterns,
        "trust": trust,
    }
    ner = load_model(
        one_model(argument, model),
        lexicon or [],
        convention=convention,
        engine=engine,
        int8=int8,
        device=device,
        threads=threads,
        trust=trust,
    )
    source = _text(text) if text else random_text(ner.lexicon, CHARACTERS)
    texts = {length: split_text(source, length, -(-CHARACTERS // length)) for length in sizes}
    if not quiet:
        typer.echo(f"{type(ner.engine).__name__}, {threads or 'all'} threads", err=True)
    if against is not None:
        others = other_taggers([name.strip() for name in against.split(",")])
        with following(ner, force, block, threshold, regular):
            ratios = [
                ratio
                for n in sizes
                for ratio in measure_ratios(ner, others, texts[n], batch_size=batches[-1], rounds=rounds)
            ]
        _print_ratios(text.name if text else "generated text", ratios, format)
        return
    with following(ner, force, block, threshold, regular):
        speeds = [measure_throughput(ner, texts[n], size, seconds) for n in sizes for size in batches]
        latencies = [measure_latency(ner, texts[n][:200], seconds) for n in sizes]
    started: tuple[Startup, StartRatio] | tuple[()] = ()
    if measures_processes():
        startup = measure_startup(settings, texts[sizes[0]][:500])
        started = startup, measure_start_ratio(settings, texts[sizes[0]][0], rounds)
    elif not quiet:
        typer.echo("start-up time and memory cannot be measured on this system", err=True)
    if format == "jsonl":
        rows = [asdict(row) for row in (*speeds, *latencies, *started)]
        typer.echo("\n".join(map(json.dumps, rows)))
        return
    _print(speeds, latencies)
    if started:
        _print_start(*started)


def _numbers(given: str, option: str) -> list[int]:
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise HanlatticeError(f"{option} must be a list of whole numbers above 0 such as 20,50, not {given!r}")
    return [int(part) for part in parts]


def _text(path: Path) -> str:
    found = "".join(read_lines(path))
    if not found:
        raise DataError("holds no text", path)
    return found


def _print_ratios(name: str, ratios: "list[SpeedRatio]", format: str) -> None:  # noqa: A002
    """Print a comparison on the text with this name."""
    if format == "jsonl":
        typer.echo("\n".join(json.dumps({"text": name, **asdict(ratio)}) for ratio in ratios))
        return
    numbers = ("characters", "characters/s", "other's characters/s", "ratio: min", "median", "max")
    print_table(
        [Column("text", False), Column("compared with", False), *(Column(title, True) for title in numbers)],
        [
            (
                name,
                r.system,
                str(r.length),
                *(f"{speed:,.0f}" for speed in (r.characters_per_second, r.system_characters_per_second)),
                *(f"{ratio:.2f}" for ratio in (r.min, r.median, r.max)),
            )
            for r in ratios
        ],
        sys.stdout,
    )


def _print(speeds: "list[Throughput]", latencies: "list[Latency]") -> None:
    print_table(
        [Column(title, True) for title in ("characters", "batch", "characters/s", "sentences/s")],
        [
            (str(s.length), str(s.batch_size), f"{s.characters_per_second:,.0f}", f"{s.sentences_per_second:,.0f}")
            for s in speeds
        ],
        sys.stdout,
    )
    typer.echo()
    print_table(
        [Column(title, True) for title in ("characters", "p50 ms", "p95 ms", "p99 ms")],
        [(str(x.length), f"{x.p50:.2f}", f"{x.p95:.2f}", f"{x.p99:.2f}") for x in latencies],
        sys.stdout,
    )


def _print_start(startup: "Startup", start: "StartRatio") -> None:
    typer.echo(f"\nfirst answer {startup.first_answer:.2f} s after the start of the process")
    typer.echo(
        f"start        {start.seconds:.2f} s of processor time, {start.median:.2f} times as long as"
        f" python -c 'import numpy' ({start.min:.2f} to {start.max:.2f})"
    )
    typer.echo(f"memory       {startup.memory:.0f} MiB then, {startup.memory_in_use:.0f} MiB after all texts")

"""The command ``python -m experiments NAME``."""

import argparse
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from experiments.arms import Setup
from experiments.catalogue import EXPERIMENTS, OPTIONS, Measured, Trained
from experiments.running import estimated, folder_of_tables, run
from hanlattice.atomic import atomic_write
from hanlattice.cli.progress import ComparisonBars, ComparisonLines, watched
from hanlattice.comparison import Silent, Watcher
from hanlattice.errors import HanlatticeError

WORDS = "$HANLATTICE_DATA/lexicons/core_words.txt"


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    names = "".join(f"\n  {name:16}{experiment.question}" for name, experiment in EXPERIMENTS.items())
    made = argparse.ArgumentParser(
        "python -m experiments",
        description=f"Run an experiment, or resume it, and print its tables.\n\nexperiments:{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("name", choices=EXPERIMENTS, metavar="NAME")
    made.add_argument("--output", type=Path, required=True, help="folder of runs, corpora and tables")
    made.add_argument("--corpus", help="weibo, resume, msra, cluener, cmeee or people_daily")
    for part in ("train", "dev", "test"):
        made.add_argument(f"--{part}", default="", help="a file to read instead of the corpus")
    made.add_argument("--sentences", type=int, help="sentences of train; 0 for all")
    made.add_argument("--test-sentences", type=int, default=0, help="sentences of test; 0 for all")
    made.add_argument("--epochs", type=int, default=0, help="0 for those of the settings")
    made.add_argument("--seeds", default="1,2", help="each arm is trained once with each")
    made.add_argument(
        "--systems", default="", help="settings files of the package, for experiments that compare any"
    )
    made.add_argument("--words", default=WORDS, help="word list with further words, for lexicons")
    made.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="a setting of all arms")
    made.add_argument("--jobs", type=int, default=1, help="parallel runs")
    made.add_argument("--estimate", action="store_true", help="print the expected hours, and stop")
    made.add_argument("--quiet", action="store_true", help="no progress")
    return made


def setup_of(a: argparse.Namespace) -> Setup:
    """The setup that the options describe."""
    experiment = EXPERIMENTS[a.name]
    files = {part: getattr(a, part) for part in ("train", "dev", "test") if getattr(a, part)}
    if files and not {"train", "test"} <= files.keys():
        raise HanlatticeError("give both --train and --test, or neither")
    if bad := [text for text in a.set if "=" not in text]:
        raise HanlatticeError(f"--set {bad[0]}: write SETTING=VALUE, such as encoder.layers=2")
    if a.corpus and files:
        raise HanlatticeError("give either --corpus or files, not both")
    seeds = a.seeds.split(",")
    if not all(seed.isdecimal() for seed in seeds):
        raise HanlatticeError(f"--seeds {a.seeds}: write whole numbers, such as 1,2")
    if len({*map(int, seeds)}) < len(seeds):
        raise HanlatticeError(f"--seeds {a.seeds}: a number occurs twice; name each seed once")
    unused = [
        name for name in sorted(OPTIONS - experiment.options) if getattr(a, name) != parser().get_default(name)
    ]
    if unused:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
        raise HanlatticeError(f"the experiment {a.name} does not use {options}; leave it out")
    return Setup(
        output=a.output,
        corpus=a.corpus or experiment.corpus,
        files=files,
        sentences=experiment.sentences if a.sentences is None else a.sentences,
        test_sentences=a.test_sentences,
        epochs=a.epochs,
        seeds=tuple(map(int, seeds)),
        systems=tuple(filter(None, a.systems.split(","))),
        words=a.words,
        settings=dict(pair.split("=", 1) for pair in a.set),
    )


def tables(a: argparse.Namespace) -> str:
    """Run an experiment; returns its tables, or only the estimate.

    Raises:
        HanlatticeError: options, corpora or settings are wrong, or a run failed.
    """
    setup, experiment = setup_of(a), EXPERIMENTS[a.name]

    def say(message: str) -> None:
        if not a.quiet:
            print(message, file=sys.stderr, flush=True)

    if isinstance(experiment, Measured):
        return "nothing is trained\n" if a.estimate else experiment.report(setup, say)
    arms = experiment.arms(setup)
    estimate = estimated(arms, setup, say)
    if a.estimate:
        return f"{estimate}\n"
    say(str(estimate))
    with _progress(a.quiet) as watcher:
        results = run(arms, setup, jobs=a.jobs, watcher=watcher)
    return _described(setup, experiment) + experiment.report(setup, arms, results)


def _progress(quiet: bool) -> AbstractContextManager[Watcher]:
    return watched(quiet, Silent, ComparisonBars, ComparisonLines)


def _described(setup: Setup, experiment: Trained) -> str:
    """The size of an experiment, which stands above its tables."""
    size = f"{setup.sentences:,} sentences" if setup.sentences else "all sentences"
    epochs = f"{setup.epochs} epochs" if setup.epochs else "the epochs of the settings"
    corpus = "the given files" if setup.files else setup.corpus
    return f"Train: {size} of {corpus}; {epochs}; seeds {', '.join(map(str, setup.seeds))}.\n\n"


def main(arguments: list[str] | None = None) -> None:
    """Run an experiment, and print and save its tables."""
    a = parser().parse_args(arguments)
    try:
        text = tables(a)
        if not a.estimate:
            folder = folder_of_tables(setup_of(a))
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(folder / f"{a.name}.md") as stream:
                stream.write(text)
    except HanlatticeError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; the same command resumes the experiment")
    print(text, end="")


if __name__ == "__main__":
    main()

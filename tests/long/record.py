"""Write the results of the long tests into the documentation.

    python tests/long/record.py [--runs runs/long]

Each long test keeps its result in a file of this folder. Their rows replace those of docs/reliability.md; rows of
tests that have no file are kept.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from long.progress import Progress

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
HEADER = "| command | cases | outcomes | failed | CPU minutes | date |\n|---|---|---|---|---|---|\n"
COMMANDS = {  # by the name of the file of the result, in the order of the table
    "texts": "long/texts.py",
    "files": "long/files.py",
    "packaged": "long/files.py --packaged",
    "requests": "long/requests.py",
    "schema": "long/schema.py",
    "kills": "long/kills.py",
    "write_faults": "long/write_faults.py",
    "soak": "long/soak.py",
    "fuzz": "long/fuzz.py",
}


def row(command: str, result: Progress) -> str:
    """The row of a result."""
    outcomes = [f"{n:,} {name}" for name, n in sorted(result.outcomes.items())]
    shown = "; ".join(filter(None, [", ".join(outcomes), result.measured]))
    minutes = f"{result.cpu_seconds / 60:.0f}"
    return (
        f"| `tests/{command}` | {result.done:,} | {shown} | {len(result.failures)} | {minutes} | {result.last} |\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "long", help="folder of the results")
    folder: Path = parser.parse_args().runs
    before, header, after = PAGE.read_text(encoding="utf-8").partition(HEADER)
    assert header, f"{PAGE} has no table of results"
    old = re.match(r"(\|.*\n)*", after)
    assert old
    rows = {line.split("`")[1].removeprefix("tests/"): line for line in old[0].splitlines(keepends=True)}
    for name, command in COMMANDS.items():
        if (path := folder / f"{name}.json").is_file():
            rows[command] = row(command, Progress.open(path))
    table = "".join(rows[command] for command in COMMANDS.values() if command in rows)
    PAGE.write_text(before + header + table + after[old.end() :], encoding="utf-8")
    print(table, end="")


if __name__ == "__main__":
    main()

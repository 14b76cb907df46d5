"""Write tests/slow_tests.txt, the test files that ``pytest -m "not slow"`` leaves out, from measured durations.

    python -m pytest --durations=0 --durations-min=0 > durations.txt
    python scripts/slow_tests.py durations.txt [--limit 3]

A file is slow if its tests together take longer than the limit, in seconds. The time of a fixture is counted for
the file whose test sets it up. Each line of the list is a prefix of test ids. Lines of single tests (with ::) are
added by hand and kept: their time does not count for their file.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "slow_tests.txt"
LINE = re.compile(r"^([\d.]+)s (?:call|setup|teardown)\s+(\S+?\.py)(::\S+)", re.MULTILINE)


def seconds(report: str, left_out: Sequence[str]) -> dict[str, float]:
    """Seconds of each test file without the tests ``left_out``, from the output of pytest."""
    starts = tuple(f"{line}{end}" for line in left_out for end in ("[", "::"))
    found: defaultdict[str, float] = defaultdict(float)
    for duration, file, test in LINE.findall(report):
        found[file] += 0.0 if f"{file}{test}[".startswith(starts) else float(duration)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="output of pytest with --durations=0")
    parser.add_argument("--limit", type=float, default=3.0, help="seconds per file (default 3)")
    options = parser.parse_args()
    single = [line for line in TARGET.read_text("utf-8").split() if "::" in line]
    found = seconds(options.report.read_text("utf-8"), single)
    slow = {name for name, total in found.items() if total > options.limit}
    kept = {line for line in single if line.partition("::")[0] not in slow}
    TARGET.write_text("".join(f"{line}\n" for line in sorted(slow | kept)), "utf-8")
    quick = sum(total for name, total in found.items() if name not in slow)
    print(f"{len(slow)} slow files and {len(kept)} slow tests; the others take {quick:.0f} s")


if __name__ == "__main__":
    main()

"""Write tests/slow_tests.txt, the test files that ``pytest -m "not slow"`` leaves out, from measured durations.

    python -m pytest --durations=0 --durations-min=0 > durations.txt
    python scripts/slow_tests.py durations.txt [--limit 3]

A file is slow if its tests together take longer than the limit, in seconds. The time of a fixture is counted for
the file whose test sets it up. Each line of the list is a prefix of test ids, so a folder or a test can be added by
hand.
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "slow_tests.txt"
LINE = re.compile(r"^([\d.]+)s (?:call|setup|teardown)\s+(\S+?\.py)::", re.MULTILINE)


def seconds(report: str) -> dict[str, float]:
    """Seconds of each test file, from the output of pytest."""
    found: defaultdict[str, float] = defaultdict(float)
    for duration, name in LINE.findall(report):
        found[name] += float(duration)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="output of pytest with --durations=0")
    parser.add_argument("--limit", type=float, default=3.0, help="seconds per file (default 3)")
    options = parser.parse_args()
    found = seconds(options.report.read_text("utf-8"))
    slow = sorted(name for name, total in found.items() if total > options.limit)
    TARGET.write_text("".join(f"{name}\n" for name in slow), "utf-8")
    quick = sum(total for name, total in found.items() if name not in slow)
    print(f"{len(slow)} slow files with {sum(found.values()) - quick:.0f} s; the others take {quick:.0f} s")


if __name__ == "__main__":
    main()

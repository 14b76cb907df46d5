"""Write tests/slow_tests.txt, the tests that ``pytest -m "not slow"`` leaves out, from measured durations.

    python -m pytest --durations=0 --durations-min=0 > durations.txt
    python scripts/slow_tests.py durations.txt [--limit 0.5]

Each line of the file is a prefix of test ids: a folder, a file, or a test without its parameters, such as
tests/test_x.py::test_y. A test is slow if all its cases together take longer than the limit, in seconds. The time
of a fixture is counted for the test that sets it up.
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "slow_tests.txt"
LINE = re.compile(r"^([\d.]+)s (?:call|setup|teardown)\s+(\S+?\.py::[^\[\s]+)", re.MULTILINE)


def seconds(report: str) -> dict[str, float]:
    """Seconds of each test, without its parameters, from the output of pytest."""
    found: defaultdict[str, float] = defaultdict(float)
    for duration, name in LINE.findall(report):
        found[name] += float(duration)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="output of pytest with --durations=0")
    parser.add_argument("--limit", type=float, default=0.5, help="seconds (default 0.5)")
    options = parser.parse_args()
    found = seconds(options.report.read_text("utf-8"))
    slow = sorted(name for name, total in found.items() if total > options.limit)
    TARGET.write_text("".join(f"{name}\n" for name in slow), "utf-8")
    quick = sum(total for name, total in found.items() if name not in slow)
    print(f"{len(slow)} slow tests with {sum(found.values()) - quick:.0f} s; the others take {quick:.0f} s")


if __name__ == "__main__":
    main()

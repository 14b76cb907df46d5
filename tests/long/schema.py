"""Requests that schemathesis makes from the OpenAPI description of a running service.

    pip install schemathesis
    python tests/long/schema.py [--cases 10000]

A service of two workers with a tiny model runs on the loopback interface, on a port of its own. In every round
schemathesis, with a seed of its own, covers the description, varies values at random, and follows links between
operations. Any of its checks that fails is a failure: a status of 5xx, a status, header or body that the
description does not have, a damaged request that is accepted. One check is left out, that valid requests are
accepted: which labels, conventions and lexicons exist depends on the model, and a description cannot say it;
`requests.py` sends requests that must be accepted. No worker may die, and no traceback may be in the log. About 5
CPU minutes.
"""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny
from long.progress import Progress, arguments, cpu_seconds
from long.requests import faults, memory
from served import Served, serving

EXAMPLES = 300  # cases of an operation in a round
LEFT_OUT = "positive_data_acceptance"
GENERATED, FAILED = re.compile(r"([\d,]+) generated"), re.compile(r"❌ (.+: \d+)$", re.MULTILINE)


def one_round(program: str, served: Served, seed: int) -> tuple[int, list[str], str]:
    """The number of cases of a round, the checks that failed, and the whole report."""
    options = ["--max-examples", EXAMPLES, "--seed", seed, "--exclude-checks", LEFT_OUT, "--continue-on-failure"]
    options += ["--phases", "examples,coverage,fuzzing,stateful", "--suppress-health-check", "all", "--no-color"]
    command = [program, "run", f"{served.url}/openapi.json", *map(str, options)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=served.log.parent)
    report = ended.stdout + ended.stderr
    generated = GENERATED.search(report)
    assert generated, report[-3000:]
    failed = FAILED.findall(report)
    return int(generated[1].replace(",", "")), failed or ["see the report"] * (ended.returncode != 0), report


def main() -> int:
    options = arguments(__doc__, "schema", 10_000).parse_args()
    program = shutil.which("schemathesis")
    if program is None:
        sys.exit("error: schemathesis is not installed; pip install schemathesis")
    progress, start = Progress.open(options.record), time.monotonic()
    with serving("--workers", 2, model=tiny.two_conventions()) as served:
        workers, first = served.workers, memory(served)
        while progress.done < options.cases and time.monotonic() - start < 60 * options.minutes:
            used, number = cpu_seconds(), sum(progress.outcomes.values())
            n, failed, report = one_round(program, served, number + 1)
            progress.done += n
            progress.outcomes["rounds"] = number + 1
            progress.failures += [(number + 1, what) for what in failed]
            progress.cpu_seconds += cpu_seconds() - used
            if failed:
                options.record.parent.mkdir(parents=True, exist_ok=True)
                options.record.with_suffix(f".{number + 1}.txt").write_text(report, encoding="utf-8")
            progress.save()
            print(progress.report(), flush=True)
        progress.failures += [(progress.done, fault) for fault in faults(served, workers)]
        progress.measured = f"memory {first} MB at first, {memory(served)} MB at the end"
    progress.save()
    for seed, what in progress.failures:
        print(f"seed {seed}: {what}")
    return int(bool(progress.failures))


if __name__ == "__main__":
    sys.exit(main())

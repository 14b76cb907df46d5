"""Run a command, and print its peak memory. With --kill-at, kill it with signal 9 after so many written parts.

    python measure.py [--kill-at PARTS --output FILE] COMMAND…

The memory is that of the process and of its children, with shared memory counted once (PSS). It needs Linux.
"""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path


def memory(pid: int) -> float:
    """Megabytes of a process and of its children; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        children = " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")).split()
    except OSError:
        return 0.0
    own = next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("Pss:")), 0.0)
    return own + sum(memory(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kill-at", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path())
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    parts = options.output.parent / f"{options.output.name}.parts"
    process, peak, due = subprocess.Popen(options.command), 0.0, 0.0
    while process.poll() is None:
        time.sleep(0.02)
        if time.monotonic() >= due:
            peak, due = max(peak, memory(process.pid)), time.monotonic() + 0.5
        if options.kill_at and len(list(parts.glob("part-*"))) >= options.kill_at:
            process.send_signal(signal.SIGKILL)
            process.wait()
            print("killed with signal 9")
    print(f"peak memory of all processes: {peak:.0f} MB")
    sys.exit(process.returncode if process.returncode > 0 else 0)


if __name__ == "__main__":
    main()

"""What all tests share: shapes in annotations are checked, one thread, and the folder of real corpora."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

# OpenMP reads these when torch starts: waiting threads that spin would starve the other test processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A shell starts background jobs with Ctrl-C ignored, and processes that tests start would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import settings

import annotation_checks

# Files are kept in memory where the system has a folder for that, so that no test waits for a disk.
IN_MEMORY = Path("/dev/shm")
ENOUGH = 4 << 30  # bytes, much more than the tests need
if "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ENOUGH:
    os.environ["TMPDIR"] = str(IN_MEMORY)
    tempfile.tempdir = None  # it is read again

# The first process of a test run makes this folder and removes it; the other processes inherit the name.
RUN = "HANLATTICE_TEST_RUN"
if RUN not in os.environ:
    os.environ[RUN] = tempfile.mkdtemp(prefix="hanlattice-tests-")
    atexit.register(shutil.rmtree, os.environ[RUN], ignore_errors=True)

# On a loaded machine an example may take any time: a property fails by its result, never by the clock.
settings.register_profile("hanlattice", deadline=None)
settings.load_profile("hanlattice")

# Annotations in these modules are checked: types by beartype, and shapes, whose letters must agree in each call.
# Not inputs.vocabulary: it checks files itself, and tests see its own messages about wrong types.
INPUTS = ("inputs.batch", "inputs.encoded", "inputs.reader", "inputs.segmentation")
CHECKED = ("decoders", "embeddings", "encoders", *INPUTS, "layers", "tagger")
annotation_checks.install([f"hanlattice.{name}" for name in CHECKED])


def pytest_runtest_setup() -> None:
    annotation_checks.next_test()


ROOT = Path(__file__).parents[1]
# Slow tests, files and folders, which scripts/slow_tests.py writes from measured durations.
SLOW = (ROOT / "tests" / "slow_tests.txt").read_text("utf-8").split()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``-m "not slow"`` does not import slow files: importing them takes longer than many quick tests."""
    is_slow = collection_path.relative_to(ROOT).as_posix() in SLOW
    return True if is_slow and config.option.markexpr == "not slow" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests."""
    starts = tuple(f"{line}{end}" for line in SLOW for end in ("/", "::", "["))
    for item in items:
        if f"{item.nodeid}[".startswith(starts):
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """For modules that never ran torch this must not be what imports it."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora and word lists."""
    folder = os.environ.get("HANLATTICE_DATA")
    if not folder:
        pytest.skip("HANLATTICE_DATA does not name a folder of real corpora")
    return Path(folder)

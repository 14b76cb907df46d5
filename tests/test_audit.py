"""``scripts/audit``: what it gives to pip-audit, and how it ends; pip-audit itself is another project's program."""

import os
import subprocess
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[1] / "scripts" / "audit"


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ('cat "${@: -1}"', 0, "numpy==2.0.0\n"),
        ('echo "Found 1 known vulnerability in 1 package" >&2; exit 1', 1, "Found 1 known vulnerability"),
        ('echo "ConnectionError: Max retries exceeded" >&2; exit 1', 3, "so nothing was audited"),
    ],
    ids=["clean", "vulnerable", "offline"],
)
def test_how_it_ends(program: str, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy==2.0.0\n")
    command = tmp_path / "pip-audit"
    command.write_text(f"#!/usr/bin/env bash\n{program}\n")
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "AUDIT_REQUIREMENTS": str(tmp_path / "requirements.txt"),
    }
    done = subprocess.run([str(AUDIT)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout.startswith("1 packages\n")
    assert said in done.stdout + done.stderr


def test_without_an_index_one_line_says_so(tmp_path: Path) -> None:
    """An index that refuses connections, as without a network."""
    environment = {
        **os.environ,
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INPUT": "1",
        "PIP_RETRIES": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
    }
    done = subprocess.run([str(AUDIT), "cli"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        "error: the package index cannot be reached, so nothing was audited;"
        " run scripts/audit again with a connection"
    )

"""The Spark recipe of docs/annotate.md gives the same entities as the library."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import hanlattice
import tiny

PAGE = Path(__file__).parents[2] / "docs" / "annotate.md"


@pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None, reason="pyspark and Java are not installed"
)
def test_the_spark_recipe_of_the_page(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    texts = [document.text for document in tiny.documents()]
    lines = [json.dumps({"text": text, "id": i}) + "\n" for i, text in enumerate(texts)]
    (tmp_path / "texts.jsonl").write_text("".join(lines), encoding="utf-8")
    [recipe] = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", recipe],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell",
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = sorted(pq.read_table(tmp_path / "annotated").to_pylist(), key=lambda row: row["id"])
    assert [row["text"] for row in rows] == texts
    found = [[(e["start"], e["end"], e["label"]) for e in row["entities"]] for row in rows]
    assert found == [[(e.start, e.end, e.label) for e in d.entities] for d in hanlattice.load().pipe(texts)]
    assert any(found)

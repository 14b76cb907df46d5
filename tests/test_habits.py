"""The files around the package agree with it: CI workflow, hooks, Docker context, citation, project metadata."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def yaml(name: str) -> Any:
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        (".github/workflows/ci.yml", "github-workflows"),
        ("CITATION.cff", "citation-file-format"),
        ("deploy/compose.yaml", "compose-spec"),
    ],
)
def test_file_follows_its_schema(name: str, schema: str) -> None:
    """The schemas are part of check-jsonschema, so this needs no network."""
    pytest.importorskip("check_jsonschema", reason="needs the extra test")
    from jsonschema.validators import validator_for

    vendored = files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json"
    rules = json.loads(vendored.read_text("utf-8"))
    content = json.loads(json.dumps(yaml(name), default=str))
    if "true" in content:  # YAML 1.1 reads the key "on" as a truth value
        content["on"] = content.pop("true")
    errors = [f"{error.json_path}: {error.message}" for error in validator_for(rules)(rules).iter_errors(content)]
    assert errors == []


def test_workflow_runs_what_exists() -> None:
    jobs = yaml(".github/workflows/ci.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    ours = [command.split()[0] for command in commands if "/" in command.split()[0]]
    assert ours
    for name in ours:
        assert (ROOT / name).stat().st_mode & 0o100, f"{name} cannot be executed"


def test_ci_runs_the_checks() -> None:
    ci = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert [line for line in ci if line.startswith("scripts/smoke")]
    assert [line for line in ci if line.startswith("scripts/check")]
    (mutants,) = (line for line in ci if line.startswith("python tests/mutation/run.py"))
    assert '--draw "$(git rev-parse HEAD)"' in mutants, "each commit tries others"
    assert re.search(r"--budget \d+\b", mutants), "which takes a bounded time"
    check = (ROOT / "scripts" / "check").read_text("utf-8").splitlines()
    assert [line.split()[0] for line in check[-4:]] == ["ruff", "ruff", "mypy", "python"]


def test_workflow_covers_every_python_of_the_metadata() -> None:
    tested = yaml(".github/workflows/ci.yml")["jobs"]["python"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: 3."
    named = [c.rsplit(" ", 1)[1] for c in PROJECT["project"]["classifiers"] if c.startswith(prefix)]
    assert tested == named
    assert PROJECT["project"]["requires-python"] == f">={tested[0]}"


def test_hooks_are_the_first_steps_of_the_check() -> None:
    hooks = [hook for repo in yaml(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in yaml(".pre-commit-config.yaml")["repos"]} == {"local"}
    check = (ROOT / "scripts/check").read_text("utf-8")
    for hook in hooks:
        assert re.search(rf"^{hook['name']}\b", check, re.MULTILINE), hook["name"]


def test_docker_context_holds_what_the_build_reads() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").split("\n")
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert [name for name in kept if not (ROOT / name).exists()] == []
    project, build = PROJECT["project"], PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {project["readme"], *project["license-files"], build["hooks"]["custom"]["path"], "pyproject.toml"}
    assert {*needed, "constraints.txt", "src"} <= kept


def test_slow_tests_exist() -> None:
    lines = (ROOT / "tests" / "slow_tests.txt").read_text("utf-8").split()
    assert lines == sorted(set(lines))
    for line in lines:
        path, _, test = line.partition("::")
        source = ROOT / path
        assert source.exists(), line
        for name in test.split("::") if test else []:
            assert re.search(rf"(def|class) {name}\b", source.read_text("utf-8")), line


def test_versions_agree() -> None:
    version = PROJECT["project"]["version"]
    assert yaml("CITATION.cff")["version"] == version
    heading = "Unreleased" if ".dev" in version else version
    assert f"\n## {heading}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_addresses_of_the_project_are_those_of_the_citation() -> None:
    known = {reference.get("url") for reference in yaml("CITATION.cff")["references"]}
    assert set(PROJECT["project"]["urls"].values()) <= known


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "experiments", "scripts"])
def test_help_texts_can_be_formatted(folder: str) -> None:
    """argparse formats help with the % operator, so a percent sign is written twice."""
    for path in sorted((ROOT / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "help" and isinstance(node.value, ast.Constant):
                assert str(node.value.value) % {"default": 0}, path


@pytest.mark.parametrize("name", [".ci/run", "scripts/check", "scripts/release", "scripts/smoke"])
def test_shell_scripts_parse(name: str) -> None:
    path = ROOT / name
    assert path.stat().st_mode & 0o100
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True, check=False).returncode == 0


def test_properties_have_no_deadline() -> None:
    """On a loaded machine an example may take any time."""
    from hypothesis import settings

    assert settings().deadline is None


def test_the_build_of_torch_is_described_as_it_is() -> None:
    """A plain index has the build for CUDA under this version; neither file nor page may promise another."""
    constraints, page = ((ROOT / name).read_text("utf-8") for name in ("constraints.txt", "docs/installation.md"))
    (pinned,) = re.findall(r"^torch==(\S+)$", constraints, re.MULTILINE)
    assert "+" not in pinned  # a local version, such as +cpu, is not on a plain index
    for text in (constraints, page):
        assert "without CUDA" not in text
        assert re.search(r"plain (package )?index.*\bCUDA\b", " ".join(text.split()))
        assert "https://pytorch.org/get-started/locally/" in text


def test_packages_of_the_benchmarks_are_in_the_extra() -> None:
    """What a benchmark imports is in the standard library, in this project, or in the extra ``bench``."""
    sources = sorted((ROOT / "benchmarks").glob("*.py"))
    trees = [ast.walk(ast.parse(source.read_text("utf-8"))) for source in sources]
    imported = {
        name.partition(".")[0]
        for tree in trees
        for node in tree
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    ours = {"hanlattice"} | {
        path.stem for folder in ("benchmarks", "scripts", "tests") for path in (ROOT / folder).iterdir()
    }
    assert "jieba" in imported
    assert sorted(imported - sys.stdlib_module_names - ours - _distributions_of("bench")) == []


def _distributions_of(extra: str) -> set[str]:
    """The import names of the project's requirements and of an extra, including the extras that it names."""
    project = PROJECT["project"]
    waiting, found = [*project["dependencies"], *project["optional-dependencies"][extra]], set()
    while waiting:
        name, _, rest = re.split(r"[><=;\s]", waiting.pop(), maxsplit=1)[0].partition("[")
        if name == "hanlattice":
            for inner in rest.removesuffix("]").split(","):
                waiting += project["optional-dependencies"][inner]
        else:
            found.add({"pyahocorasick": "ahocorasick"}.get(name, name.lower().replace("-", "_")))
    return found

"""The structure of the package: order of imports, light modules, public names, sizes, checked shapes."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import hanlattice
from annotation_checks import EVERY, FIRST, next_test, switched_off
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.table import Table
from hanlattice.encoders.lgn import mean
from hanlattice.inputs.batch import Batch, Words

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "hanlattice"

# From the top down: a package or module imports from lower rows only. A module with a row of its own counts
# there, and not with its package.
ROWS = (
    ("__main__",),
    ("cli",),
    ("serving",),
    ("integrations",),
    ("annotation",),
    ("benchmark", "selection", "tuning", "combination"),
    ("api", "comparison"),
    ("training",),
    ("evaluation.temperature",),
    ("engines.export", "engines.cascade", "engines.ensemble"),
    ("engines.second_model",),
    (
        "model.weights",
        "engines.native",
        "engines.linear",
        "engines.onnx",
        "engines.numpy",
        "engines.graph",
        "explain",
        "evaluation.evaluate",
    ),
    ("engines.checking",),
    ("engines.shapes",),
    ("engines.folding", "engines.known_settings", "engines.found", "model.saving"),
    ("model.copies", "model.log"),
    ("model.folder", "evaluation.recall_bound"),
    ("pipeline",),
    ("postprocessing", "words"),
    ("build",),
    ("tagger", "inputs.reader"),
    ("encoders", "decoders"),
    ("embeddings",),
    ("decoders.structs",),
    ("inputs.batch", "inputs.segmentation", "layers", "embeddings.initial_weights"),
    ("inputs", "vectors", "rules"),
    ("config", "corpus", "lexicon", "evaluation", "patterns"),
    ("text", "document"),
    ("spans", "drawing", "model.digests"),
    ("compressed",),
    ("atomic", "files", "kernels", "config.ranges", "config.values"),
    ("errors",),
    ("__init__", "model", "engines"),
    ("moved",),
)
HEIGHT = {name: len(ROWS) - i for i, row in enumerate(ROWS) for name in row}

WITHOUT_TORCH = (
    "hanlattice",
    *(f"hanlattice.{name}" for row in ROWS[-9:-2] for name in row),
    "hanlattice.corpus.checking",
    "hanlattice.cli",
    "hanlattice.api",
    "hanlattice.explain",
    "hanlattice.explain.report",
    "hanlattice.evaluation.evaluate",
    "hanlattice.engines.onnx",
    "hanlattice.engines.numpy",
    "hanlattice.engines.native.tagger",
    "hanlattice.training.linear.run",
    "hanlattice.serving.worker",
    "hanlattice.annotation.__main__",
    "hanlattice.cli.annotate",
    "hanlattice.cli.pretrain",
    "hanlattice.annotation.ray",
)
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def row_of(module: str) -> str:
    """The longest name in ROWS that holds a module."""
    parts = module.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next(name for name in names if name in HEIGHT)


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a module imports, also inside functions, but not for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            if node.module == "hanlattice" or (node.module or "").startswith("hanlattice."):
                package = (node.module or "").removeprefix("hanlattice").lstrip(".")
                for alias in node.names:
                    name = f"{package}.{alias.name}".lstrip(".")
                    yield name if name in MODULES else package or "__init__"
        elif isinstance(node, ast.Import):
            yield from (a.name.removeprefix("hanlattice.") for a in node.names if a.name.startswith("hanlattice."))
        yield from imports(node)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def import_graph() -> dict[str, set[str]]:
    """For each module of the package, the modules that it imports."""
    return {name: set(imports(tree_of(path))) for name, path in MODULES.items()}


def test_imports_point_one_way() -> None:
    wrong = []
    for module, targets in import_graph().items():
        row = row_of(module)
        for target in sorted(targets):
            other = row_of(target)
            if HEIGHT[other] >= HEIGHT[row] and other != row:
                wrong.append(f"{module} imports {target}")
    assert not wrong


def test_no_import_cycles() -> None:
    """No module imports itself through others; imports inside functions count too."""
    try:
        TopologicalSorter(import_graph()).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle of imports: {' -> '.join(reversed(error.args[1]))}")


# Limits of the library outside ``cli``. A command has as many parameters, and so as many lines, as it has options.
# No function is longer, its docstring included.
LONGEST = 50
# No __init__ has more parameters, self included.
MOST_PARAMETERS = 10
FEWER_PARAMETERS = {"encoders.flat.Flat": 8, "encoders.transformer.Transformer": 8}


def functions(tree: ast.AST, name: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions and methods below ``tree``, with dotted names that begin with ``name``."""
    for node in ast.iter_child_nodes(tree):
        below = name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            below = f"{name}.{node.name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield below, node
        yield from functions(node, below)


@cache
def library_functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Those outside ``cli``."""
    outside = {name: path for name, path in MODULES.items() if row_of(name) != "cli"}
    return [found for name, path in outside.items() for found in functions(tree_of(path), name)]


def test_no_function_is_long() -> None:
    assert not [name for name, f in library_functions() if (f.end_lineno or 0) - f.lineno >= LONGEST]


def test_no_c_function_is_long() -> None:
    """A function begins in the first column, and ends with a brace there."""
    long = []
    for path in sorted((PACKAGE / "kernels").glob("*.c")):
        text = path.read_text("utf-8")
        for found in re.finditer(r"^(?!typedef)\w[^;{}]*\) \{\n.*?^\}$", text, re.MULTILINE | re.DOTALL):
            if found[0].count("\n") >= LONGEST:
                long.append((path.name, found[0].partition("(")[0]))
    assert not long


def test_no_class_takes_many_parameters() -> None:
    many = []
    for name, function in library_functions():
        owner = name.removesuffix(".__init__")
        if owner != name:
            arguments = function.args
            n = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
            if n > FEWER_PARAMETERS.get(owner, MOST_PARAMETERS):
                many.append(owner)
    assert not many
    assert FEWER_PARAMETERS.keys() <= {name.removesuffix(".__init__") for name, _ in library_functions()}


def test_light_modules_do_not_import_torch() -> None:
    code = (
        "import importlib, sys\n"
        f"for name in {WITHOUT_TORCH!r}:\n"
        "    importlib.import_module(name)\n"
        "    if 'torch' in sys.modules: sys.exit(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr.strip()} imports torch"


def test_public_names() -> None:
    for name in hanlattice.__all__:
        assert getattr(hanlattice, name) is not None
    assert dir(hanlattice) == sorted(hanlattice.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hanlattice.nothing


def test_files_know_nothing_of_where_they_were_made() -> None:
    """No absolute paths of some machine, and no package registry or mirror but the names of packages."""
    forbidden = re.compile(
        r"(?<![\w.:/>])/(?:work|root|home|Users)/|pypi[.]org|pythonhosted[.]org|download[.]pytorch[.]org|index-url"
    )
    found = []
    for folder in ("src", "tests", "docs", "benchmarks", "examples", "experiments"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".md", ".toml", ".txt", ".json"} and path.stat().st_size < 1_000_000:
                lines = path.read_text(encoding="utf-8").splitlines()
                where = path.relative_to(ROOT)
                found += [f"{where}:{i}: {line}" for i, line in enumerate(lines, 1) if forbidden.search(line)]
    assert not [line for line in found if "test_architecture.py" not in line]


class TestShapesAreChecked:
    """The annotations of modules run in tests: what they say of shapes holds wherever a test passes through."""

    def test_of_a_dataclass(self) -> None:
        ids, mask = torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool)
        Words(ids, ids, ids, ids, mask)
        with pytest.raises(TypeCheckError):
            Words(ids, ids, ids, ids, mask[:, :2])

    def test_of_a_call(self) -> None:
        ids, mask = torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.bool)
        characters = Characters(Table(torch.randn(4, 5)))
        assert characters(Batch(ids, ids, mask, Words(ids, ids, ids, ids, mask))).shape == (2, 3, 5)
        with pytest.raises(TypeCheckError):
            characters.chars(ids.float())

    def test_of_the_first_calls_and_then_of_some(self) -> None:
        x, mask = torch.ones(1, 2, 3), torch.ones(1, 2)  # a mask should be Boolean
        refused = []
        for number in range(1, FIRST + 2 * EVERY + 1):
            try:
                mean(x, mask)
            except TypeCheckError:
                refused.append(number)
        assert refused == [
            *range(1, FIRST + 1),
            *(n for n in range(FIRST + 1, FIRST + 2 * EVERY + 1) if n % EVERY == 0),
        ]
        next_test()
        with pytest.raises(TypeCheckError):
            mean(x, mask)

    def test_of_no_call_while_switched_off(self) -> None:
        x, mask = torch.ones(1, 2, 3), torch.ones(1, 2)
        with switched_off():
            mean(x, mask)
        with pytest.raises(TypeCheckError):
            mean(x, mask)

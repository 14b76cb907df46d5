"""Mutation operators: small changes of Python source, each of which some test should notice.

Every operator looks at one node of the syntax tree and proposes source text to put in its place. Annotations,
docstrings, error messages, assertions and code for type checkers are left alone: nothing there changes what a
program does. ``zip(..., strict=True)`` is an assertion too.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv}
IN_ANY_ORDER = {"max", "min", "maximum", "minimum", "array_equal", "logaddexp"}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A change of one file: ``before`` at these bytes becomes ``after``.

    Attributes:
        file: path inside the package, with slashes.
        function: qualified name of the function or class around it; empty at the top level.
        operator: name of the operator.
        start, end: bytes of the file, half-open.
        line: of the start, counted from 1.
        count: how many equal changes stand before it in the same function.
    """

    file: str
    function: str
    operator: str
    before: str
    after: str
    start: int
    end: int
    line: int
    count: int = 0

    @property
    def key(self) -> str:
        """Names the mutant as long as its function does not change; line numbers are not part of it."""
        return f"{self.file}:{self.function}: {self.before} -> {self.after} #{self.count}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def comparison(node: ast.AST) -> Iterator[str]:
    """The boundary of a comparison, or its negation."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        new = COMPARISONS[type(node.ops[0])]
        yield f"({ast.unparse(node.left)} {new} {ast.unparse(node.comparators[0])})"


def arithmetic(node: ast.AST) -> Iterator[str]:
    """Another operation on the same numbers; strings are left alone."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node):
        new = ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        yield f"({ast.unparse(new)})"


def connective(node: ast.AST) -> Iterator[str]:
    """``and`` for ``or``, and the reverse."""
    if isinstance(node, ast.BoolOp):
        other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"({ast.unparse(ast.BoolOp(other, node.values))})"


def condition(node: ast.AST) -> Iterator[str]:
    """A condition that never holds."""
    if isinstance(node, ast.If | ast.IfExp):
        yield "False"


def negation(node: ast.AST) -> Iterator[str]:
    """``not`` is dropped."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.unparse(node.operand)


def constant(node: ast.AST) -> Iterator[str]:
    """A number plus one; the other truth value."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield str(not node.value)
        elif isinstance(node.value, int):
            yield str(node.value + 1)
        elif isinstance(node.value, float):
            yield repr(node.value * 2 + 1)


def name(node: ast.AST) -> Iterator[str]:
    """The least for the greatest, some for all, and the reverse."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield ast.unparse(ast.Call(ast.Name(NAMES[node.func.id]), node.args, node.keywords))


def arguments(node: ast.AST) -> Iterator[str]:
    """The first two arguments change places."""
    if (
        isinstance(node, ast.Call)
        and len(node.args) == 2
        and not any(isinstance(a, ast.Starred) for a in node.args)
    ):
        if ast.unparse(node.func).rpartition(".")[2] in IN_ANY_ORDER | {"isinstance", "hasattr", "getattr"}:
            return
        yield ast.unparse(ast.Call(node.func, node.args[::-1], node.keywords))


def statement(node: ast.AST) -> Iterator[str]:
    """A call for its effect, or an assignment that changes something, is left out."""
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    if called or isinstance(node, ast.AugAssign):
        yield "pass"


def result(node: ast.AST) -> Iterator[str]:
    """Nothing is returned."""
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "return None"


OPERATORS: tuple[Callable[[ast.AST], Iterator[str]], ...] = (
    comparison,
    arithmetic,
    connective,
    condition,
    negation,
    constant,
    name,
    arguments,
    statement,
    result,
)


def mutants(file: str, source: str) -> list[Mutant]:
    """All mutants of a file, in the order of their places."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    for node, function in _changeable(ast.parse(source), ""):
        place = node.test if isinstance(node, ast.If | ast.IfExp) else node
        start = starts[place.lineno - 1] + place.col_offset  # type: ignore[attr-defined]
        end = starts[place.end_lineno - 1] + place.end_col_offset  # type: ignore[attr-defined]
        before = source.encode()[start:end].decode()
        for operator in OPERATORS:
            for after in operator(node):
                one = Mutant(file, function, operator.__name__, before, after, start, end, place.lineno)  # type: ignore[attr-defined]
                found.append(one)
    return _numbered(sorted(found, key=lambda m: (m.start, m.end, m.operator)))


def _numbered(found: list[Mutant]) -> list[Mutant]:
    counts: dict[tuple[str, str, str], int] = {}
    numbered = []
    for m in found:
        same = (m.function, m.before, m.after)
        numbered.append(Mutant(**{**vars(m), "count": counts.get(same, 0)}))
        counts[same] = counts.get(same, 0) + 1
    return numbered


def _changeable(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    """Nodes whose change may change what the program does, with the function around each."""
    if isinstance(node, ast.Assert | ast.Raise | ast.JoinedStr) or _is_for_types(node) or _is_message(node):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
        if node.name in {"__repr__", "__str__"}:
            return
    if hasattr(node, "lineno"):
        yield node, function
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list"} or (field == "slice" and _is_type(node)):
            continue
        if field == "keywords" and _is_strict_zip(node):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changeable(child, function)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _is_message(node: ast.AST) -> bool:
    """Progress that is printed, logged or warned of; numbers and texts of command line options."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called.startswith(("typer.", "logger.", "warnings.")):
        return True
    return called.rpartition(".")[2] in {"print", "say", "cast", "TypeVar", "Literal"}


def _is_strict_zip(node: ast.AST) -> bool:
    is_zip = isinstance(node, ast.Call) and ast.unparse(node.func) == "zip"
    return is_zip and ast.unparse(node).endswith("strict=True)")


def _is_type(node: ast.AST) -> bool:
    """A subscript such as ``Mapping[str, int]``."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id[:1].isupper()


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )

"""Checks types and shapes in annotations while tests run: some calls of each function in each test.

Checking a call takes longer than most of the functions do. Training repeats the same few calls hundreds of times,
so checking all of them would double the time of the tests and find nothing more.
"""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

import jaxtyping
from numpy.typing import NDArray

FIRST = 3  # calls of a function, in each test, that are all checked
SHAPED = ("Bool", "Float", "Int", "Shaped", "UInt")  # names of jaxtyping that modules use
EVERY = 30  # of the later ones, one in this many is checked


class _Calls:
    """The number of calls of a function in the test that is running, and the function with its checks.

    A nested function is made again in each call of the function around it, and making its checks takes longer than
    most calls. So all copies of it share one checked function, which runs the latest.
    """

    def __init__(self) -> None:
        self.test, self.number = -1, 0
        self.latest = threading.local()
        self.checked: Callable[..., Any] | None = None


_calls: dict[int, _Calls] = {}  # by the id of the function's code, which all copies of a nested function share
_checked_by_jaxtyping = jaxtyping.jaxtyped
_test = 0  # the number of the test that is running
_is_on = True


def install(modules: Sequence[str]) -> None:
    """Check the functions and dataclasses of these modules, if they are imported after this call."""
    setattr(jaxtyping, "jaxtyped", jaxtyped)  # noqa: B010  # the import hook decorates every function and class with this name
    jaxtyping.install_import_hook(modules, "beartype.beartype")


def next_test() -> None:
    """Count calls from zero again."""
    global _test
    _test += 1


@contextmanager
def switched_off() -> Iterator[None]:
    """No calls are checked: tracing would take the checks for conditions on the shapes of its inputs."""
    global _is_on
    _is_on = False
    try:
        yield
    finally:
        _is_on = True


def jaxtyped(target: Any = None, *, typechecker: Any) -> Any:
    """The decorator ``jaxtyping.jaxtyped``, but not all calls are checked."""
    if target is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if inspect.isfunction(target):
        return _sampled(target, typechecker)
    if is_dataclass(target) and "__init__" in vars(target):
        setattr(target, "__init__", _sampled(vars(target)["__init__"], typechecker))  # noqa: B010
    return target


def _add_names(function: Callable[..., Any]) -> None:
    """Give the module of a function the names of array types, which it may import for type checkers only."""
    for name in SHAPED:
        function.__globals__.setdefault(name, getattr(jaxtyping, name))
    function.__globals__.setdefault("NDArray", NDArray)


def _checked(function: Callable[..., Any], calls: _Calls, typechecker: Any) -> Callable[..., Any]:
    """The function with its checks, which runs the latest copy of the function."""

    @functools.wraps(function)
    def latest(*arguments: Any, **named: Any) -> Any:
        return calls.latest.function(*arguments, **named)

    _add_names(function)
    return _checked_by_jaxtyping(
        latest if "<locals>" in function.__qualname__ else function, typechecker=typechecker
    )


def _sampled(function: Callable[..., Any], typechecker: Any) -> Callable[..., Any]:
    calls = _calls.setdefault(id(function.__code__), _Calls())

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if calls.test != _test:
            calls.test, calls.number = _test, 0
        calls.number += 1
        if not _is_on or (calls.number > FIRST and calls.number % EVERY):
            return function(*arguments, **named)
        # Made at the first call: it takes milliseconds, and many functions are never called.
        if calls.checked is None:
            calls.checked = _checked(function, calls, typechecker)
        calls.latest.function = function
        return calls.checked(*arguments, **named)

    return call

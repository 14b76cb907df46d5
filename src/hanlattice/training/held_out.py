"""Texts that no training may use: a Python file of the user decides which, for instance by hashes."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from hanlattice.errors import ConfigError

IsHeldOut = Callable[[str], bool]
SHOWN = 20  # characters of a text in an error


def load_held_out(path: Path) -> IsHeldOut:
    """A function that reports whether a text is held out: an object of the class ``HeldOut`` in a Python file.

    It raises a ConfigError if the object raises anything.

    Raises:
        ConfigError: the file cannot be run, or has no such class.
    """
    try:
        spec = importlib.util.spec_from_file_location("hanlattice_held_out", path)
        if spec is None or spec.loader is None:
            raise ImportError("not a Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        is_held_out: IsHeldOut = module.HeldOut()
        is_held_out("中文")
    except Exception as error:  # the file may raise anything
        raise ConfigError(f"{path}: gives no object of a class HeldOut ({type(error).__name__}: {error})") from None

    def decide(text: str) -> bool:
        try:
            return is_held_out(text)
        except Exception as error:
            raise ConfigError(
                f"{path}: HeldOut fails for the text {text[:SHOWN]!r} ({type(error).__name__}: {error}); correct it"
            ) from error

    return decide

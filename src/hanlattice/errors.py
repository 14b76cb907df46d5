"""Errors that a user can fix. Each message is one line: what is wrong, where, and what to do."""

from pathlib import Path


class HanlatticeError(ValueError):
    """Base class of all errors whose message is meant for the user."""


class DataError(HanlatticeError):
    """A file cannot be read or written, or its contents are wrong.

    Args:
        message: what is wrong and how to fix it.
        file: the file; the message then starts with ``file:``.
        line: the line, from 1; the message then starts with ``file:line:``.
    """

    def __init__(self, message: str, file: str | Path | None = None, line: int | None = None):
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)
        self.file, self.line = file, line


class WriteError(DataError):
    """A file cannot be written, as on a full disk."""


class ConfigError(HanlatticeError):
    """A setting does not exist, has the wrong type, or contradicts another setting."""


class UnknownConvention(ConfigError):
    """The model was not trained on an annotation convention; the message lists the conventions that it knows."""


class ModelError(HanlatticeError):
    """A model folder is broken, is not a model of hanlattice, or has an unsupported version."""


class EngineError(ModelError):
    """This engine cannot run the model, at least not on this machine. The model is fine: try another engine."""

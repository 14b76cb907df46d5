"""The log of a run: one line of JSON per epoch, and TensorBoard if it is set."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hanlattice.errors import ConfigError
from hanlattice.files import atomic_write


class Log:
    """Writes the rows of a run to ``path`` and, if ``tensorboard`` names a folder, to TensorBoard.

    Raises:
        ConfigError: TensorBoard is not installed.
    """

    def __init__(self, path: Path, tensorboard: str = ""):
        self.path = path
        self.board = _board(tensorboard) if tensorboard else None

    def write(self, row: dict[str, Any], loss: float) -> None:
        """Add the row of an epoch; rows of epochs that a resumed run repeats are replaced."""
        earlier: Iterator[str] = iter(())
        if self.path.exists():
            kept = self.path.read_text(encoding="utf-8").splitlines()
            earlier = (line for line in kept if json.loads(line)["epoch"] < row["epoch"])
        with atomic_write(self.path) as stream:
            stream.writelines(f"{line}\n" for line in (*earlier, json.dumps(row)))
        if self.board is not None:
            self.board.add_scalar("loss", loss, row["epoch"])
            if "dev_f1" in row:
                self.board.add_scalar("dev F1", row["dev_f1"], row["epoch"])


def _board(folder: str) -> Any:
    """TensorBoard's writer."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError("training.tensorboard needs: pip install 'hanlattice[track]'") from None
    return SummaryWriter(folder)

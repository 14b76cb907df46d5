"""The log of a run: one line of JSON per epoch, and TensorBoard if it is set."""

import json
from pathlib import Path
from typing import Any

from hanlattice.atomic import atomic_write
from hanlattice.errors import ConfigError
from hanlattice.model.folder import LOG
from hanlattice.model.log import read_log


class Log:
    """Writes the rows of a run into its folder and, if ``tensorboard`` names another one, to TensorBoard.

    Close it at the end, so that TensorBoard has all rows.

    Raises:
        ConfigError: TensorBoard is not installed.
        DataError: the file exists and is not a log, so a resumed run cannot continue it.
    """

    def __init__(self, folder: Path, tensorboard: str = ""):
        self.path = folder / LOG
        # A damaged file is reported before an epoch is trained.
        self._epochs = {row["epoch"]: json.dumps(row) for row in read_log(folder)}
        self.board = _board(tensorboard) if tensorboard else None

    def write(self, row: dict[str, Any], loss: float) -> None:
        """Add the row of an epoch; rows of epochs that a resumed run repeats are replaced."""
        self._epochs = {epoch: line for epoch, line in self._epochs.items() if epoch < row["epoch"]}
        self._epochs[row["epoch"]] = json.dumps(row)
        with atomic_write(self.path) as stream:
            stream.writelines(f"{line}\n" for line in self._epochs.values())
        if self.board is not None:
            self.board.add_scalar("loss", loss, row["epoch"])
            if "dev_f1" in row:
                self.board.add_scalar("dev F1", row["dev_f1"], row["epoch"])

    def close(self) -> None:
        if self.board is not None:
            self.board.close()


def _board(folder: str) -> Any:
    """TensorBoard's writer."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError("training.tensorboard needs: pip install 'hanlattice[track]'") from None
    return SummaryWriter(folder)

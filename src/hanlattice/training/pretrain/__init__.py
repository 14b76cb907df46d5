"""Self-supervised training of a character Transformer on raw text, for the embedding ``own``."""

from hanlattice.training.pretrain.interrupt import Stopped
from hanlattice.training.pretrain.loop import RunOptions
from hanlattice.training.pretrain.run import export, finish, pretrain
from hanlattice.training.pretrain.settings import Settings
from hanlattice.training.pretrain.watcher import Silent, Watcher

__all__ = ["RunOptions", "Settings", "Silent", "Stopped", "Watcher", "export", "finish", "pretrain"]

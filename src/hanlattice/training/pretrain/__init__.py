"""Self-supervised training of a character Transformer on raw text, for the embedding ``own``."""

from hanlattice.training.pretrain.interrupt import Stopped
from hanlattice.training.pretrain.loop import finish, pretrain
from hanlattice.training.pretrain.settings import Settings
from hanlattice.training.pretrain.watcher import Silent, Watcher

__all__ = ["Settings", "Silent", "Stopped", "Watcher", "finish", "pretrain"]

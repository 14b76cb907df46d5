"""A model's folder read by the kernels."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise, repeat

import numpy as np

from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.checking import checked, settings_of
from hanlattice.engines.native.flat import FlatKernel, Settings
from hanlattice.errors import EngineError, HanlatticeError, ModelError
from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.model.folder import SCALE, ModelFolder
from hanlattice.spans import ScoredSpan

# Characters and words that are worth a thread, and those that are read at once at most.
NODES_OF_A_THREAD = 1000
NODES_AT_ONCE = 4000


class NativeTagger:
    """A FLAT of one layer with tags, run by the kernels in C; equal to the modules of torch but for rounding.

    ``threads``: of a single call, one for each core where 0. With ``int8`` products with weights are done in 8 bits
    and, where the processor has them, those of attention in 16.

    Raises:
        EngineError: the kernels are not compiled, not for this processor, or not for a model like this.
        ModelError: the settings or the weights are broken, or do not fit each other.
    """

    nested = False

    def __init__(self, folder: ModelFolder, *, threads: int = 0, int8: bool = False):
        conventions = folder.conventions
        try:
            settings = settings_of(folder)["encoder"]
            weights = folder.weights()
            tags = {convention: folder.tags(weights, convention) for convention in conventions}
            chosen = Settings(
                folder.config.text.window, settings["residual"], settings["scaled"], settings["origin"]
            )
            found = checked(weights, folder, {name: len(rules.names) for name, (rules, _) in tags.items()})
            self.flat = FlatKernel(found, chosen, scale_suffix=SCALE, int8=int8, conventions=conventions)
        except EngineError as error:
            raise EngineError(f"{folder.path}: {error}") from None
        except HanlatticeError as error:
            where = "" if str(error).startswith(str(folder.path)) else f"{folder.path}: "
            raise ModelError(f"{where}{error}") from None
        self.chains = {convention: ChainKernel(*its_tags) for convention, its_tags in tags.items()}
        self.threads = threads or _cores()
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """A pool with threads of this process."""
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def is_nested(self, convention: str = "") -> bool:
        """Tags cannot express spans inside spans."""
        return False

    def eval(self) -> None:
        """It only reads."""

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> list[list[ScoredSpan]]:
        """Spans of each sentence, by a convention; the default one where it is empty.

        Nothing is padded, so ``batch_size`` changes nothing here: neighbours are read together, as many as keep a
        thread busy and their activations near its core.
        """
        shares = list(self._shares(sentences))
        run = map if self._pool is None or len(shares) == 1 else self._pool.map
        return list(chain.from_iterable(run(self._found, shares, repeat(convention))))

    def _found(self, sentences: Sentences, convention: str) -> list[list[ScoredSpan]]:
        return self.chains[convention].read(self.flat.read(sentences, convention), sentences.first_char)

    def _shares(self, sentences: Sentences) -> Iterator[Sentences]:
        """Neighbours to read together, about as many nodes in each share."""
        ends = np.cumsum(sentences.n_nodes)
        nodes = int(ends[-1]) if len(ends) else 0
        n = max(min(self.threads, nodes // NODES_OF_A_THREAD), -(-nodes // NODES_AT_ONCE))
        cuts = [0, *np.searchsorted(ends, nodes * np.arange(1, n) / n).tolist(), len(sentences)]
        return (sentences[a:b] for a, b in pairwise(cuts) if a < b)


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

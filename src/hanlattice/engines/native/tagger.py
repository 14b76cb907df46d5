"""A model's folder read by the kernels."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise, repeat

import numpy as np

from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.checking import checked, settings_of
from hanlattice.engines.native.flat import FlatKernel, Settings
from hanlattice.errors import EngineError, HanlatticeError, ModelError
from hanlattice.inputs.encoded import Encoded
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.model.folder import SCALE, ModelFolder
from hanlattice.spans import ScoredSpan

# Characters and words that are worth a thread.
NODES_OF_A_THREAD = 1000


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

    def find(self, sentences: Sequence[Encoded], convention: str = "") -> list[list[ScoredSpan]]:
        """Spans of each sentence, by a convention; the default one where it is empty."""
        shares = list(self._shared(sentences))
        if self._pool is None or len(shares) == 1:
            return self._found(sentences, convention)
        return list(chain.from_iterable(self._pool.map(self._found, shares, repeat(convention))))

    def _found(self, sentences: Sequence[Encoded], convention: str) -> list[list[ScoredSpan]]:
        return self.chains[convention].read(*self.flat.read(sentences, convention))

    def _shared(self, sentences: Sequence[Encoded]) -> list[Sequence[Encoded]]:
        """Neighbours for each thread, about as much to read for all."""
        ends = np.cumsum([sentence.n_nodes for sentence in sentences])
        n = min(self.threads, int(ends[-1]) // NODES_OF_A_THREAD)
        if n < 2:
            return [sentences]
        cuts = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, n) / n).tolist(), len(sentences)]
        return [sentences[a:b] for a, b in pairwise(cuts) if a < b]


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

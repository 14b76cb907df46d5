"""The native engine: a model folder run by C kernels."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from hanlattice.engines.checking import CheckedModel, FlatModel
from hanlattice.engines.native.body import BodyKernel
from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.flat import FlatKernel
from hanlattice.engines.predicting import PredictingEngine
from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.kernels.cores import n_cores
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.kernels.library import require_kernels
from hanlattice.model.folder import ModelFolder, naming
from hanlattice.spans import FoundSpans

NODES_OF_A_THREAD = 1000  # characters and words; with fewer, starting a thread costs more than it gains
NODES_AT_ONCE = 4000  # characters and words that are read in one call: their emissions stay in the cache


class NativeTagger(PredictingEngine):
    """FLAT with one layer and a tag decoder, run by C kernels, over a pretrained body if it has one.

    It is equal to the PyTorch modules up to rounding.

    Args:
        folder: the model.
        threads: threads of one call, 0 for one per core.
        int8: whether matrix products with weights use int8, and attention uses 16 bits if the processor can; see
            :class:`FlatKernel`.

    Raises:
        EngineError: the kernels are not compiled, do not support this processor, or cannot run this kind of model.
        ModelError: the settings or the weights are broken, or do not fit each other.
    """

    def __init__(self, folder: ModelFolder, *, threads: int = 0, int8: bool = False):
        require_kernels()
        model = FlatModel.of(folder, CheckedModel.read(folder))
        with naming(folder):
            self.body = None if model.body is None else BodyKernel(model.weights, model.body, int8=int8)
            self.flat = FlatKernel(
                model.weights,
                model.settings,
                int8=int8,
                conventions=folder.conventions,
                tables=model.prefix,
                given=0 if self.body is None else self.body.width,
            )
        self.tags = model.tags
        self.chains = {convention: ChainKernel(*its_tags) for convention, its_tags in model.tags.items()}
        self.threads = threads or n_cores()
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Create the thread pool; called again in a forked process, which does not inherit threads."""
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def find(self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE) -> FoundSpans:
        """Spans of each sentence by an annotation convention; an empty name is the default one.

        Nothing is padded, so ``batch_size`` has no effect. Consecutive sentences with about `NODES_AT_ONCE`
        characters and words, or fewer, are read together.
        """
        return self.in_shares(sentences, lambda share: self._found(share, convention))

    def in_shares(self, sentences: Sentences, find: Callable[[Sentences], FoundSpans]) -> FoundSpans:
        """The results of a function for groups of consecutive sentences, by several threads if there are many."""
        if 0 < sentences.n_chars + sentences.n_words <= NODES_OF_A_THREAD:
            return find(sentences)  # such as one text per call
        shares = self._shares(sentences)
        run = map if self._pool is None else self._pool.map
        return FoundSpans.joined(list(run(find, shares)))

    def _found(self, sentences: Sentences, convention: str) -> FoundSpans:
        given = None if self.body is None else self.body.read(sentences.texts)
        return self.flat.find(sentences, convention, self.chains[convention], given)

    def emissions(self, sentences: Sentences, convention: str = "") -> Float[np.ndarray, "N W"]:
        """The emissions of consecutive sentences; see :meth:`FlatKernel.read`."""
        given = None if self.body is None else self.body.read(sentences.texts)
        return self.flat.read(sentences, convention, given)

    def _shares(self, sentences: Sentences) -> list[Sentences]:
        """Groups of consecutive sentences with about equal numbers of nodes; each group is read in one call."""
        nodes = sentences.n_chars + sentences.n_words
        n = max(min(self.threads, nodes // NODES_OF_A_THREAD), -(-nodes // NODES_AT_ONCE))
        if n <= 1 and len(sentences):
            return [sentences]
        ends = np.cumsum(sentences.n_nodes)
        cuts = [0, *np.searchsorted(ends, nodes * np.arange(1, n) / n).tolist(), len(sentences)]
        return [sentences[a:b] for a, b in pairwise(cuts) if a < b]

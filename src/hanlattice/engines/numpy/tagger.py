"""A model with a tag decoder, run by numpy."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from jaxtyping import Float

from hanlattice.decoders.structs.decoding import Potentials
from hanlattice.engines.checking import CheckedModel, FlatModel
from hanlattice.engines.folding import ConventionHead, Weights, head_of
from hanlattice.engines.numpy.bilstm import BiLSTM
from hanlattice.engines.numpy.embeddings import EMBEDDINGS
from hanlattice.engines.numpy.flat import FlatArrays
from hanlattice.engines.numpy.idcnn import IDCNN
from hanlattice.engines.numpy.lattice_lstm import LatticeLSTM
from hanlattice.engines.numpy.tables import apply
from hanlattice.engines.predicting import PredictingEngine
from hanlattice.errors import EngineError
from hanlattice.inputs.encoded import BATCH_SIZE, Encoded, Sentences
from hanlattice.model.folder import ModelFolder, naming
from hanlattice.spans import ScoredSpan

Encoder = Callable[[Float[np.ndarray, "N D_in"], Sentences], Float[np.ndarray, "N D"]]


class Scorer(Protocol):
    """Computes the scores of tags."""

    def read(self, sentences: Sentences, convention: str = "") -> Float[np.ndarray, "N Y"]:
        """Emissions ``[N Y]`` of the N characters of all sentences."""
        ...


class NumpyTagger(PredictingEngine):
    """A model with a tag decoder, run by numpy; equal to the PyTorch modules up to rounding.

    Args:
        folder: the model.

    Raises:
        EngineError: the model needs another engine.
        ModelError: the settings or the weights are broken, or do not fit each other.
    """

    def __init__(self, folder: ModelFolder):
        model = CheckedModel.read(folder)
        with naming(folder):
            if folder.config.embedding.name == "own":
                raise EngineError("numpy does not run a pretrained body; use another engine")
            self._scorer = _scorer(folder, model)
        self._tags = model.tags

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> list[list[ScoredSpan]]:
        """Spans of each sentence by an annotation convention; an empty name is the default one.

        ``batch_size`` sentences of similar size are read together.
        """
        return sentences.in_batches(batch_size, partial(self._found, convention=convention))

    def emissions(self, sentences: Sentences, convention: str = "") -> Float[np.ndarray, "N Y"]:
        """The emissions of the characters of all sentences."""
        return self._scorer.read(sentences, convention)

    def _found(self, sentences: Sequence[Encoded], convention: str) -> list[list[ScoredSpan]]:
        emissions = self.emissions(Sentences.of(sentences), convention)
        lengths = np.array([len(sentence) for sentence in sentences])
        padded = np.zeros((len(lengths), lengths.max(), emissions.shape[1]), np.float32)
        padded[np.arange(lengths.max()) < lengths[:, None]] = emissions
        rules, (start, pair, end) = self._tags[convention]
        return rules.best(Potentials(padded, pair, start, end, lengths))


class Stack:
    """An embedding, an encoder, and an emission layer for each convention, one after the other."""

    def __init__(self, weights: Weights, embedding: str, encoder: Encoder, conventions: Sequence[str]):
        self._embedding = EMBEDDINGS[embedding](weights, "embedding.")
        self._encoder = encoder
        self._heads: dict[str, ConventionHead] = {name: head_of(weights, name) for name in conventions}

    def read(self, sentences: Sentences, convention: str = "") -> Float[np.ndarray, "N Y"]:
        """Emissions ``[N Y]`` of the N characters of all sentences."""
        head, x = self._heads[convention], self._embedding(sentences)
        return apply(head.emission, self._encoder(x if head.shift is None else x + head.shift, sentences))


def _scorer(folder: ModelFolder, model: CheckedModel) -> Scorer:
    weights, settings = model.weights, model.settings["encoder"]
    encoder: Encoder
    match folder.config.encoder.name:
        case "flat":
            flat = FlatModel.of(folder, model)
            return FlatArrays(weights, flat.settings, conventions=folder.conventions)
        case "bilstm":
            encoder = BiLSTM(weights, "encoder.")
        case "lattice_lstm":
            encoder = LatticeLSTM(weights, "encoder.")
        case _:
            encoder = IDCNN(
                weights,
                "encoder.",
                dilations=settings["dilations"],
                repeats=settings["repeats"],
                concatenates=settings["output"] == "concat",
            )
    return Stack(weights, folder.config.embedding.name, encoder, folder.conventions)

"""The engine of linear taggers: a model folder run by ``kernels/linear.c``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hanlattice.config.linear import linear_settings
from hanlattice.engines.found import memory_for, spans_in
from hanlattice.engines.linear.tables import Native, Tables, prefix_of, restored, types_of
from hanlattice.engines.predicting import PredictingEngine
from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.library import pointer, require_kernels
from hanlattice.model.folder import WEIGHTS, ModelFolder, naming
from hanlattice.spans import FoundSpans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from jaxtyping import Float, Int

    from hanlattice.engines.linear.tables import Weights


class LinearTagger(PredictingEngine):
    """A linear tagger, which needs no torch. Each annotation convention has its own tables.

    Args:
        tables: of one convention.
        vocabulary: of the model.
        convention: the convention of the tables; empty for the default one.
        temperature: see :meth:`soften`.
        others: for each other convention, a function that opens its tagger, called at the first use.

    Raises:
        EngineError: the kernels are not compiled, or do not support this processor.
    """

    def __init__(
        self,
        tables: Tables,
        vocabulary: Vocabulary,
        convention: str = "",
        *,
        temperature: float = 1.0,
        others: Mapping[str, Callable[[], LinearTagger]] | None = None,
    ):
        self._library, self.tables, self._others = require_kernels(), tables, others or {}
        self._opened: dict[str, LinearTagger] = {}
        self.labels = vocabulary.conventions[convention] if convention else vocabulary.labels
        types = types_of(vocabulary.chars)
        self._native = Native(tables, types, vocabulary.n_word_kinds, len(self.labels), self._library)
        self.soften(temperature)

    @classmethod
    def open(cls, folder: ModelFolder) -> LinearTagger:
        """The tagger of a model folder.

        Raises:
            EngineError: the folder has a model of another kind, or the kernels are not compiled.
            ModelError: the settings or the weights are broken, or do not fit each other.
        """
        settings = linear_settings(folder.config)
        if settings is None:
            raise EngineError(f"{folder.path} is not a linear tagger; use another engine")
        require_kernels()  # before the files are read
        file = folder.path / WEIGHTS
        opened = _identity(file)

        def of(convention: str, others: Mapping[str, Callable[[], LinearTagger]] | None = None) -> LinearTagger:
            with naming(folder):
                weights = folder.weights(prefix_of(convention))
            if _identity(file) != opened:
                raise ModelError(f"{file}: was replaced since the model was opened; load the model again")
            return cls._of_weights(folder, weights, convention, others)

        return of("", {name: partial(of, name) for name in folder.vocabulary.conventions})

    @classmethod
    def _of_weights(
        cls,
        folder: ModelFolder,
        weights: Weights,
        convention: str,
        others: Mapping[str, Callable[[], LinearTagger]] | None,
    ) -> LinearTagger:
        """The tagger of a convention in a model folder, whose weights were read.

        Raises:
            ModelError: the weights are broken, or do not fit the vocabulary.
        """
        settings, vocabulary = linear_settings(folder.config), folder.vocabulary
        assert settings is not None
        labels = vocabulary.conventions[convention] if convention else vocabulary.labels
        with naming(folder):
            tables = restored(weights, len(labels), convention)
        temperature = (settings.conventions[convention] if convention else settings).temperature
        return cls(tables, vocabulary, convention, temperature=temperature, others=others)

    @property
    def conventions(self) -> tuple[str, ...]:
        """The names of its conventions for engines. The first is "", the default convention."""
        return ("", *self._others)

    def of(self, convention: str) -> LinearTagger:
        """The tagger of a convention; an empty one is the default.

        Raises:
            ModelError: its weights are broken.
        """
        if not convention:
            return self
        if convention not in self._opened:
            self._opened.setdefault(convention, self._others[convention]())  # another thread may have been faster
        return self._opened[convention]

    def soften(self, temperature: float) -> None:
        """Divide scores by a temperature before they become confidences. It has no effect on the entities."""
        self.temperature = temperature
        self._native.struct.scale = self.tables.scale / temperature

    def find(self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE) -> FoundSpans:
        """Spans of each sentence, with their probabilities as scores. ``batch_size`` has no effect."""
        return self.of(convention).read(sentences)[0]

    def add_to(
        self, emissions: Float[np.ndarray, "N W"], sentences: Sentences, columns: Int[np.ndarray, Y]
    ) -> None:
        """Add the scores of the tags to emissions, in place.

        Args:
            emissions: ``[N W]``, of the characters of all sentences; W is at least the number of tags.
            sentences: the sentences, as this tagger reads them.
            columns: the column of each tag, of :func:`hanlattice.engines.linear.tables.columns_of_tags`.

        Raises:
            MemoryError: there is too little memory.
        """
        lines, kept = sentences.for_kernels()
        columns = np.ascontiguousarray(columns, np.int64)
        given = lines, pointer(columns), len(columns), pointer(emissions), emissions.shape[1]
        status = self._library.linear_add(self._native.address, *given)
        del kept
        if status < 0:
            raise MemoryError("too little memory for a linear tagger")

    def read(self, sentences: Sentences, *, certainty: bool = False) -> tuple[FoundSpans, Float[np.ndarray, B]]:
        """Spans of each sentence and, if ``certainty`` is set, the probability of all tags of each sentence.

        Raises:
            MemoryError: there is too little memory.
        """
        n, memory = len(sentences), memory_for(sentences.n_chars)
        certain = np.empty(n if certainty else 0)
        lines, kept = sentences.for_kernels()
        found = pointer(memory), pointer(certain) if certainty else None
        count = self._library.linear_find(self._native.address, lines, *found)
        del kept
        if count < 0:
            raise MemoryError("too little memory for a linear tagger")
        return spans_in(memory, n, count, self.labels), certain


def _identity(path: Path) -> tuple[int, int] | None:
    """What changes if other contents are written to a file; None if there is no file.

    A copy that has the time of its original is equal: saving a spaCy pipeline replaces its folder by such a copy.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns

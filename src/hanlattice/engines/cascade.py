"""Two models in one: a fast one answers where it is certain, an accurate one reads the other windows.

The file ``cascade.toml`` in the folder of the accurate model names the fast model, a linear tagger, and the
certainty from which its answer is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.engines.second_model import SecondModel, read_settings
from hanlattice.errors import ModelError
from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import CASCADE, ModelFolder

if TYPE_CHECKING:
    from collections.abc import Collection

    from hanlattice.lexicon.layers import Snapshot
    from hanlattice.pipeline import NER, Engine, WindowReader
    from hanlattice.spans import FoundSpans, ScoredSpan


@dataclass(frozen=True)
class CascadeSettings:
    """The contents of a file ``cascade.toml``.

    Attributes:
        second: the fast model: the name of a packaged one, or a folder relative to that of the accurate model.
        threshold: smallest certainty of a window for which its answer is taken; see :func:`certainties`.
    """

    second: str
    threshold: float

    @classmethod
    def of(cls, folder: ModelFolder) -> CascadeSettings:
        """The settings in the folder of an accurate model.

        Raises:
            EngineError: the folder has no such file.
            ModelError: the file is broken.
        """
        found = read_settings(folder, CASCADE, [field.name for field in fields(cls)])
        second, threshold = found.get("second"), found.get("threshold")
        if not isinstance(second, str) or not isinstance(threshold, float) or not 0 <= threshold <= 1:
            raise ModelError(
                f"{folder.path / CASCADE}: needs second, the name of a model, and threshold, a number from 0.0 to 1"
            )
        return cls(second, threshold)


class CascadeSentences(Sentences):
    """Sentences as the fast model reads them. Indexing and slicing read them with the accurate model.

    So the accurate model reads only what is needed: the windows in which the fast model is not certain, and the
    texts whose lattice is shown, which is that of the accurate model.
    """

    __slots__ = ("reread",)

    def __init__(self, fast: Sentences, reread: Callable[[Sequence[str]], Sentences]):
        self._arrays, self._filled, self.texts = fast._arrays, fast._filled, fast.texts
        self.reread = reread

    def __reduce__(self) -> tuple[Any, ...]:
        return CascadeSentences, (Sentences(*self.arrays, self.texts), self.reread)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # as in the base class
        if isinstance(index, slice):
            return self.reread(self.texts[index])
        return self.reread([self.texts[index]])[0]


class CascadeReader:
    """Converts texts to the ids of both models; those of the accurate one when they are needed.

    Args:
        fast: the fast model.
        accurate: converts texts for the accurate model.
    """

    def __init__(self, fast: SecondModel, accurate: WindowReader):
        self._fast, self._accurate = fast, accurate
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Create the lock; called again in a forked process, where another thread may have held the old lock."""
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return CascadeReader, (self._fast, self._accurate)

    def read(
        self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None
    ) -> CascadeSentences:
        """Convert texts; the arguments are those of :meth:`hanlattice.inputs.reader.Reader.read`."""
        reread = partial(self._reread, lexicon=lexicon, state=lexicon.state, user_labels=user_labels)
        return CascadeSentences(self._fast.read(texts, lexicon, user_labels), reread)

    def _reread(
        self, texts: Sequence[str], *, lexicon: Lexicon, state: Snapshot, user_labels: Collection[str] | None
    ) -> Sentences:
        """Texts as the accurate model reads them, with the words that the lexicon had at first.

        A document calls this for its lattice, perhaps in another thread and after edits of the lexicon.
        """
        lexicon = lexicon if lexicon.state is state else lexicon.at(state)
        with self._lock:
            return self._accurate.read(texts, lexicon, user_labels)


def certainties(fast: LinearTagger, sentences: Sentences) -> tuple[FoundSpans, np.ndarray]:
    """Spans of each window, and the geometric mean over its characters of the probability of its tags.

    A mean does not depend on the length of a window, as the probability of all tags does.
    """
    found, probability = fast.read(sentences, certainty=True)
    return found, probability ** (1 / np.maximum(np.diff(sentences.first_char), 1))


class Cascade:
    """The engine of a cascade; it reads :class:`CascadeSentences`.

    Only the default convention has a fast model. For another one the accurate model reads all windows.

    Args:
        fast: finds spans, and the certainty of each window.
        accurate: reads the windows with a certainty below ``threshold``.
        threshold: see :class:`CascadeSettings`.
    """

    def __init__(self, fast: LinearTagger, accurate: Engine, threshold: float):
        self.fast, self.accurate, self.threshold = fast, accurate, threshold

    @classmethod
    def open(cls, folder: ModelFolder, accurate: NER) -> NER:
        """Make the pipeline of an accurate model, which was opened from ``folder``, that of a cascade.

        Raises:
            EngineError: the folder is not the accurate model of a cascade.
            ModelError: the fast model is missing or broken, or does not fit the accurate one.
        """
        settings = CascadeSettings.of(folder)
        fast = SecondModel(settings.second, folder, accurate.base)
        accurate.engine = cls(fast.tagger, accurate.engine, settings.threshold)
        accurate.reader = CascadeReader(fast, accurate.reader)
        return accurate

    def is_nested(self, convention: str = "") -> bool:
        """Whether a convention of the accurate model allows spans inside spans."""
        return self.accurate.is_nested(convention)

    def eval(self) -> None:
        """Switch the accurate model to inference mode."""
        self.accurate.eval()

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> Sequence[Sequence[ScoredSpan]]:
        """Spans of each window, with the confidences of the model that found them."""
        if convention:
            return self.accurate.find(sentences[:], convention, batch_size=batch_size)
        easy, certainty = certainties(self.fast, sentences)
        hard = np.flatnonzero(certainty < self.threshold).tolist()
        if not hard:
            return easy
        assert isinstance(sentences, CascadeSentences)
        read = sentences.reread([sentences.texts[i] for i in hard])
        found: list[Sequence[ScoredSpan]] = list(easy)
        for i, spans in zip(hard, self.accurate.find(read, batch_size=batch_size), strict=True):
            found[i] = spans
        return found

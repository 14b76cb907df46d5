"""What the pipeline needs of an engine and of its reader."""

from collections.abc import Collection, Sequence
from typing import Protocol

from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.lexicon import Lexicon
from hanlattice.spans import ScoredSpan


class Engine(Protocol):
    """Finds spans in sentences: a :class:`~hanlattice.tagger.Tagger`, or an engine that needs no torch.

    A ``convention`` is the name of one of the model's annotation conventions, or empty for its default.
    """

    def is_nested(self, convention: str = "") -> bool:
        """Whether a convention allows spans inside spans."""
        ...

    def eval(self) -> object:
        """Switch to inference mode, if the engine can also be trained."""

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> Sequence[Sequence[ScoredSpan]]:
        """Spans of each sentence, ordered by their start.

        The engine alone decides which sentences it reads together. Where it pads them to one length,
        ``batch_size`` is the largest number of them.
        """
        ...


class WindowReader(Protocol):
    """Converts windows of normalised texts to what an engine reads: usually a :class:`Reader`."""

    def read(
        self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None
    ) -> Sentences: ...

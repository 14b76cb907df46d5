"""The attention weights of a text: how much each of its characters attends to each character and each word."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from hanlattice.document import Lattice
from hanlattice.errors import EngineError, HanlatticeError
from hanlattice.lexicon import Lexicon, Word
from hanlattice.text.windows import windows

if TYPE_CHECKING:
    from hanlattice.pipeline import NER


@dataclass(frozen=True, slots=True)
class Attention:
    """The attention weights of the characters of a text, for each layer and each head.

    Attributes:
        chars: the text as the model reads it, after normalisation; N characters.
        lattice: the M words that the model read with it.
        weights: ``weights[layer, head, i]`` is a distribution over the L = N + M nodes of the lattice, characters
            first: the weights of the query of character ``i``. L is N if the encoder reads characters only.
        heads: the first character of each word, in ``chars``.
        tails: the last character of each word, inclusive.
    """

    chars: str
    lattice: Lattice
    weights: Float[np.ndarray, "layers A N L"]
    heads: tuple[int, ...]
    tails: tuple[int, ...]

    def of_words(self) -> list[float]:
        """One number in [0, 1] for each word: the mean weight that its own characters give it.

        The mean is over these characters, the attention heads and the layers. All numbers are 0 if the encoder
        reads no words. Characters outside the word are left out: a long text has many of them, each with a small
        weight for every word, and they would dominate the mean.
        """
        n, mean = len(self.chars), self.weights.mean((0, 1))
        if mean.shape[1] == n:
            return [0.0] * len(self.heads)
        rows = enumerate(zip(self.heads, self.tails, strict=True))
        return [float(mean[head : tail + 1, n + i].mean()) for i, (head, tail) in rows]


def attention(ner: "NER", text: str) -> Attention:
    """The attention weights of a model's encoder for a text that fits into one window.

    FLAT and the Transformers, TENER among them, have attention weights. The weights inside a pretrained language
    model are not included.

    Raises:
        EngineError: torch is not installed, the model was loaded with another engine, or its encoder has no
            attention.
        HanlatticeError: the text is empty, or does not fit into one window.
    """
    if find_spec("torch") is None:
        raise EngineError("attention needs torch: pip install 'hanlattice[train]'; influence works without it")
    tagger = ner.tagger
    chars = ner.normaliser(text).text
    _check_one_window(ner, chars, len(text))
    lattice = ner(text).lattice
    assert lattice is not None
    (encoded,) = ner.reader.read([chars], _lexicon_of(lattice), ner.labels)
    from hanlattice.explain.attention_weights import attention_weights
    from hanlattice.inputs.batch import collate

    weights = attention_weights(tagger, collate([encoded]).to(tagger.device), ner.head)
    if not weights:
        kind = ner.config.encoder.name
        raise EngineError(f"the encoder {kind} has no attention; influence works with every encoder")
    return Attention(chars, lattice, np.stack(weights), tuple(encoded.head.tolist()), tuple(encoded.tail.tolist()))


def _check_one_window(ner: "NER", chars: str, n: int) -> None:
    settings = ner.config.text
    n_windows = len(windows(chars, settings.window, settings.overlap))
    if n_windows == 0:
        raise HanlatticeError(f"a text of {n:,} characters has no attention")
    if n_windows > 1:
        raise HanlatticeError(
            f"a text of {n:,} characters is read in {n_windows} windows;"
            f" explain a part of at most {settings.window} characters"
        )


def _lexicon_of(lattice: Lattice) -> Lexicon:
    """The words of a lattice as a lexicon, whose matches are that lattice."""
    rows = zip(lattice.words, lattice.labels, strict=True)
    return Lexicon({word: Word(word, label) for word, label in rows}.values())

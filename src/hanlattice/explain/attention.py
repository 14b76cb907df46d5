"""The attention of a text's characters: which characters and words each of them reads, and how much."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from hanlattice.document import Lattice
from hanlattice.errors import HanlatticeError, ModelError
from hanlattice.explain.influence import words_of
from hanlattice.lexicon import Lexicon
from hanlattice.text.windows import windows

if TYPE_CHECKING:
    from hanlattice.pipeline import NER


@dataclass(frozen=True, slots=True)
class Attention:
    """What each character of a text reads, layer by layer and head by head.

    ``weights[l, a, i]`` are shares of 1: how much character ``i`` of ``chars`` reads each character, then each word
    of ``lattice``. ``chars`` is the text as the model reads it. Of an encoder that reads characters only there are
    no columns for words.
    """

    chars: str
    lattice: Lattice
    weights: Float[np.ndarray, "layers A N L"]
    heads: tuple[int, ...]
    tails: tuple[int, ...]

    def of_words(self) -> list[float]:
        """How strongly each word is read: its share in what its own characters read, in the mean over them, over
        heads and over layers. All zero where the encoder reads no words.

        Own characters, because they are what the word has to say something about: in a long text every other
        character reads every word a little, which would drown them.
        """
        n, mean = len(self.chars), self.weights.mean((0, 1))
        if mean.shape[1] == n:
            return [0.0] * len(self.heads)
        rows = enumerate(zip(self.heads, self.tails, strict=True))
        return [float(mean[head : tail + 1, n + i].mean()) for i, (head, tail) in rows]


def attention(ner: "NER", text: str) -> Attention:
    """The attention weights of a model's encoder on a text that it reads in one piece.

    Those of FLAT, of the Transformers and of TENER are told; a language model below them keeps its own.

    Raises:
        ModelError: torch is not installed, the model was loaded to run without it, or its encoder has no attention.
        HanlatticeError: the text is empty, or so long that it is read in several windows.
    """
    if find_spec("torch") is None:
        raise ModelError("attention needs torch: pip install 'hanlattice[train]'; influence does without")
    tagger = ner.tagger
    settings, chars = ner.config.text, ner.normaliser(text).text
    cut = windows(chars, settings.window, settings.overlap)
    if len(cut) != 1:
        what = f"is read in {len(cut)} windows; explain a part of at most {settings.window} characters"
        raise HanlatticeError(f"a text of {len(text):,} characters {what if cut else 'has no attention'}")
    lattice = ner(text).lattice
    assert lattice is not None
    (encoded,) = ner.reader.read([chars], Lexicon(words_of(lattice).values()), ner.labels)
    from hanlattice.explain.captured import attention_weights
    from hanlattice.inputs.batch import collate

    weights = attention_weights(tagger, collate([encoded]).to(tagger.device), ner.head)
    if not weights:
        kind = ner.config.encoder.name
        raise ModelError(f"the encoder {kind} has no attention; what its words do, influence tells of any encoder")
    return Attention(chars, lattice, np.stack(weights), tuple(encoded.head.tolist()), tuple(encoded.tail.tolist()))

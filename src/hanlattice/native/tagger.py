"""A model's folder read by the kernels."""

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise, repeat

import numpy as np

from hanlattice.encoded import Encoded
from hanlattice.errors import ModelError
from hanlattice.model_folder import SCALE, ModelFolder, decoder_prefix
from hanlattice.native.chain import ChainKernel
from hanlattice.native.flat import FlatKernel, Settings, Weights
from hanlattice.reader import FIRST_ROW
from hanlattice.spans import ScoredSpan

# Characters and words that are worth a thread.
NODES_OF_A_THREAD = 1000

# Weights that the kernels know of; of the decoder's, those of a chain of tags.
KNOWN = re.compile(
    r"embedding\.(chars|bigrams)\.weight|encoder\.(words\.table|words\.composition\.(length|label))\.weight"
    r"|encoder\.(char_projection|word_projection|words\.composition\.project|distances\.fuse)\.(weight|bias)"
    r"|encoder\.layers\.0\.(attention\.[uv]|attention\.(query|key|value|position|output)\.(weight|bias)"
    r"|feed_forward\.(inner|outer)\.(weight|bias)|(attention|feed_forward)_norm\.(weight|bias))"
    r"|(conventions\.[\w-]+\.)?decoder\.(emission\.(weight|bias)|start|end|transitions)"
    r"|conventions\.[\w-]+\.shift"
)
DECODERS = ("crf", "softmax")


class NativeTagger:
    """A FLAT of one layer with tags, run by the kernels in C; equal to the modules of torch but for rounding.

    ``threads``: of a single call, one for each core where 0. With ``int8`` products with weights are done in 8 bits
    and, where the processor has them, those of attention in 16.

    Raises:
        ModelError: the kernels are not compiled, not for this processor, or not for a model like this.
    """

    nested = False

    def __init__(self, folder: ModelFolder, *, threads: int = 0, int8: bool = False):
        config = folder.config
        conventions = ("", *folder.vocabulary.conventions)
        decoders = [("decoder", folder.decoder(convention), DECODERS) for convention in conventions]
        embedding, encoder = (
            ("embedding", config.embedding, ("characters",)),
            ("encoder", config.encoder, ("flat",)),
        )
        for kind, part, names in (embedding, encoder, *decoders):
            if part.name not in names:
                raise ModelError(
                    f"{folder.path}: no kernel in C reads the {kind} {part.name!r}; use another engine"
                )
        weights = folder.weights()
        if strange := [name for name in weights if not KNOWN.fullmatch(name.removesuffix(SCALE))]:
            raise ModelError(f"{folder.path}: the kernels in C know nothing of {strange[0]}; use another engine")
        chosen = {k: v for k, v in config.encoder.settings.items() if k in ("residual", "scaled", "origin")}
        tags = {convention: folder.tags(convention) for convention in conventions}
        try:
            refuse_misfits(
                weights, folder, {convention: len(rules.names) for convention, (rules, _) in tags.items()}
            )
            settings = Settings(config.text.window, **chosen)
            self.flat = FlatKernel(weights, settings, scale_suffix=SCALE, int8=int8, conventions=conventions)
        except ModelError as error:
            raise ModelError(f"{folder.path}: {error}") from None
        except (KeyError, ValueError) as error:
            raise ModelError(f"{folder.path}: weights do not fit the settings ({error})") from None
        self.chains = {convention: ChainKernel(*its_tags) for convention, its_tags in tags.items()}
        self.threads = threads or _cores()
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


def refuse_misfits(weights: Weights, folder: ModelFolder, n_tags: Mapping[str, int]) -> None:
    """Ids are looked up in C without asking whether they are there.

    Raises:
        ModelError: a table has other rows than the vocabulary or the tags would need.
    """
    vocabulary = folder.vocabulary
    needed = {
        "embedding.chars.weight": len(vocabulary.chars) + FIRST_ROW,
        "embedding.bigrams.weight": len(vocabulary.bigrams) + FIRST_ROW,
        "encoder.words.table.weight": len(vocabulary.words) + 1,
        "encoder.words.composition.label.weight": vocabulary.n_word_kinds,
        **{f"{decoder_prefix(convention)}emission.weight": n for convention, n in n_tags.items()},
    }
    for name, rows in needed.items():
        if name in weights and len(weights[name]) != rows:
            raise ModelError(
                f"weights do not fit the vocabulary ({name} has {len(weights[name])} rows, not {rows})"
            )


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

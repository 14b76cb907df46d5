"""Initial weights of the embedding tables, and the other values that the builders of parts need."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from hanlattice.inputs.vocabulary import END, Vocabulary
from hanlattice.vectors import Vectors, VectorSet


@dataclass(frozen=True)
class Rows:
    """The initial rows of a table, ``values [V …]``; training uses only the first ``n_trained``.

    The names of the other rows do not occur in the corpora, so training could not change them. A module keeps them
    in its dictionary ``further_rows``, by the name of the parameter or buffer that they continue. They are saved
    below the trained rows::

        values   | padding, unknown, names in the corpora | names that only the vectors have |
                 0                                 n_trained                                 V
        module   |        module.weight                   | module.further_rows["weight"]    |
    """

    values: Tensor
    n_trained: int

    @classmethod
    def of(cls, rows: "Rows | Tensor") -> "Rows":
        """Rows as they are; a tensor becomes rows that are all trained."""
        return rows if isinstance(rows, Rows) else cls(rows, len(rows))

    @property
    def trained(self) -> Tensor:
        """The trained rows; a copy if there are further rows, so that the whole tensor does not stay in memory."""
        return self.values if self.n_trained == len(self.values) else self.values[: self.n_trained].clone()

    @property
    def further(self) -> Tensor:
        """A copy of the rows below the trained ones."""
        return self.values[self.n_trained :].clone()

    def clone(self) -> "Rows":
        """A copy of the rows, for a second table."""
        return Rows(self.values.clone(), self.n_trained)


@dataclass(frozen=True)
class Tables:
    """Initial rows of the embedding tables, in the order of a vocabulary, and how often each word occurs.

    ``chars``, ``bigrams`` and ``words`` are ``[V D]``, each with its own V and D; ``word_counts [V]``.
    ``n_word_kinds`` is the number of rows of the table of word kinds. When a saved model is loaded, ``files``
    is the folder with the other files that a part saved. ``labels`` are the entity labels of the default
    convention, and ``char_names`` the names of the rows of ``chars`` after the first two.
    """

    chars: Rows
    bigrams: Rows
    words: Rows
    word_counts: Rows
    n_word_kinds: int
    files: Path | None = None
    labels: tuple[str, ...] = ()
    char_names: tuple[str, ...] = ()

    @classmethod
    def from_vectors(
        cls,
        vocabulary: Vocabulary,
        vectors: VectorSet,
        *,
        normalise: bool,
        seed: int,
        word_counts: Sequence[int] | np.ndarray = (),
    ) -> "Tables":
        """Pretrained rows, and uniform random ones in ±sqrt(3 / D) for names without a vector.

        ``word_counts`` are the counts of the first words of the vocabulary; all other words count 1.
        """
        draw = np.random.default_rng(seed)
        bigrams = [pair.replace(END, "<end>") for pair in vocabulary.bigrams]
        return cls(
            Rows.of(_rows(vectors.chars, vocabulary.chars, 2, normalise, draw)),
            Rows.of(_rows(vectors.bigrams, bigrams, 2, normalise, draw)),
            Rows.of(_rows(vectors.words, vocabulary.words, 1, normalise, draw)),
            Rows.of(torch.tensor([1, *word_counts, *[1] * (len(vocabulary.words) - len(word_counts))])),
            vocabulary.n_word_kinds,
            labels=vocabulary.labels,
            char_names=vocabulary.chars,
        )

    @classmethod
    def empty(cls, vocabulary: Vocabulary, dimensions: Mapping[str, int], files: Path | None = None) -> "Tables":
        """Zeros of the right shape, for weights that are about to be loaded."""
        return cls(
            Rows.of(torch.zeros(len(vocabulary.chars) + 2, dimensions["chars"])),
            Rows.of(torch.zeros(len(vocabulary.bigrams) + 2, dimensions["bigrams"])),
            Rows.of(torch.zeros(len(vocabulary.words) + 1, dimensions["words"])),
            Rows.of(torch.ones(len(vocabulary.words) + 1, dtype=torch.long)),
            vocabulary.n_word_kinds,
            files,
            vocabulary.labels,
            vocabulary.chars,
        )

    def within(self, *names: str) -> "Tables":
        """The tables for a part inside another part: ``files`` is the subfolder with the part's name."""
        return self if self.files is None else replace(self, files=self.files.joinpath(*names))

    def trained_on(self, seen: Vocabulary) -> "Tables":
        """The same tables, of which training uses only the first rows: those of the vocabulary ``seen``."""
        n_words = len(seen.words) + 1
        return replace(
            self,
            chars=replace(self.chars, n_trained=len(seen.chars) + 2),
            bigrams=replace(self.bigrams, n_trained=len(seen.bigrams) + 2),
            words=replace(self.words, n_trained=n_words),
            word_counts=replace(self.word_counts, n_trained=n_words),
        )


def rows_to_keep(**parameters: Rows) -> dict[str, Tensor]:
    """The ``further_rows`` of a module, from the rows of its parameters and buffers."""
    return {name: rows.further for name, rows in parameters.items() if rows.n_trained < len(rows.values)}


def further_rows(part: nn.Module) -> dict[str, Tensor]:
    """The rows that are saved below those of parameters and buffers, by the names that ``state_dict`` has."""
    return {
        f"{path}.{name}" if path else name: rows
        for path, module in part.named_modules()
        for name, rows in getattr(module, "further_rows", {}).items()
    }


def state_with_all_rows(part: nn.Module) -> dict[str, Tensor]:
    """The ``state_dict`` to save, copied to the CPU: the rows of every table, trained or not."""
    further = further_rows(part)
    state = part.state_dict()
    return {
        name: torch.cat([w.cpu(), further[name]]) if name in further else w.to("cpu", copy=True)
        for name, w in state.items()
    }


@contextmanager
def with_all_rows(part: nn.Module) -> Iterator[None]:
    """Within the ``with`` block, the parameters and buffers of ``part`` have all rows of every table.

    Afterwards they have only the trained rows again.
    """
    extended: list[tuple[dict[str, Tensor], str, Tensor, int]] = []
    for module in part.modules():
        rows: dict[str, Tensor] = getattr(module, "further_rows", {})
        for name, further in rows.items():
            tensor: Tensor = getattr(module, name)
            extended.append((rows, name, tensor, len(tensor)))
            tensor.data = torch.cat([tensor.data, further.to(tensor.device)])
    try:
        yield
    finally:
        for rows, name, tensor, n_trained in extended:
            rows[name] = tensor.data[n_trained:].cpu().clone()
            tensor.data = tensor.data[:n_trained].clone()


def _rows(
    vectors: Vectors,
    names: tuple[str, ...] | list[str],
    reserved: int,
    normalise: bool,
    draw: np.random.Generator,
) -> Tensor:
    bound = (3.0 / vectors.dimension) ** 0.5
    weight = draw.uniform(-bound, bound, (len(names) + reserved, vectors.dimension)).astype(np.float32)
    ids = vectors.ids(names)
    known = np.flatnonzero(ids >= 0)
    weight[known + reserved] = vectors.at(ids[known])
    if normalise:
        norms = np.linalg.norm(weight, axis=1, keepdims=True)
        weight /= np.where(norms > 0, norms, 1.0)
    return torch.from_numpy(weight)

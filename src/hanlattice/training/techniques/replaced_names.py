"""Entity replacement: gold names are replaced by other names with the same label."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np

from hanlattice.lexicon import Lexicon
from hanlattice.spans import Span
from hanlattice.training.noise import renamed
from hanlattice.training.window import AnnotatedWindow

Source = Literal["corpus", "lexicon", "both"]


class ReplacedNames:
    """Replaces the names of a window; every occurrence of a name in the window gets the same new name.

    Dai and Adel 2020, https://aclanthology.org/2020.coling-main.343 (mention replacement). New names are drawn
    with equal probability from the distinct names of their label. Names that overlap others and discontinuous names
    stay as they are.

    Args:
        windows: the training corpus, whose names are used.
        gazetteer: further names for each label.
        source: use the names of the corpus, those of the gazetteer, or both.
    """

    def __init__(
        self,
        windows: Iterable[AnnotatedWindow],
        gazetteer: Mapping[str, Sequence[str]] = MappingProxyType({}),
        source: Source = "corpus",
    ) -> None:
        names: dict[str, dict[str, None]] = {}
        if source != "lexicon":
            for window in windows:
                for span in window.spans:
                    if not span.gaps:
                        names.setdefault(span.label, {})[window.text[span.start : span.end]] = None
        if source != "corpus":
            for label, further in gazetteer.items():
                names.setdefault(label, {}).update(dict.fromkeys(further))
        self.names = {label: tuple(known) for label, known in names.items()}

    def __call__(self, window: AnnotatedWindow, draw: np.random.Generator) -> AnnotatedWindow:
        """The window with other names."""
        chosen: dict[tuple[str, str], str] = {}

        def other(span: Span) -> str | None:
            known = self.names.get(span.label)
            if not known:
                return None
            key = span.label, window.text[span.start : span.end]
            if key not in chosen:
                chosen[key] = known[int(draw.integers(len(known)))]
            return chosen[key]

        return renamed(window, other)


def gazetteer_of(lexicon: Lexicon, held_out: Iterable[AnnotatedWindow]) -> dict[str, tuple[str, ...]]:
    """The words of the lexicon by their gazetteer labels, without the names of dev and test.

    Args:
        lexicon: the lexicon.
        held_out: the windows of dev and test.
    """
    banned = {w.text[span.start : span.end] for w in held_out for span in w.spans}
    found: dict[str, list[str]] = {label: [] for label in lexicon.labels}
    for word in lexicon.entries():
        if word.label is not None and word.text not in banned:
            found[word.label].append(word.text)
    return {label: tuple(words) for label, words in found.items()}

"""The normal form of a text that the grammars read, with a map back to the text."""

from hanlattice.text.normalise import Normalised, Normaliser

_NORMALISER = Normaliser(nfkc=True, simplify=True)
_LIST_COMMA = str.maketrans("，", "、")  # NFKC would make it the comma that groups digits


def normalised(text: str) -> Normalised:
    """The text in half-width, simplified characters."""
    return _NORMALISER(text.translate(_LIST_COMMA))

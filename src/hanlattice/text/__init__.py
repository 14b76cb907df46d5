"""Text before it is read: normalisation with a map back, tidying, sentences and windows."""

from hanlattice.text.normalise import Normalised, Normaliser
from hanlattice.text.windows import sentences, windows

__all__ = ["Normalised", "Normaliser", "sentences", "windows"]

"""Preparing text: normalisation with a map back to the original, tidying, sentences, windows and edges."""

from hanlattice.text.normalise import Normalised, Normaliser
from hanlattice.text.windows import Window, sentences, windows

__all__ = ["Normalised", "Normaliser", "Window", "sentences", "windows"]

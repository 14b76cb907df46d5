"""Explanations of a model: the words it read, the words its answer depends on, and the errors it makes."""

from hanlattice.explain.attention import Attention, attention
from hanlattice.explain.influence import Influence, influence
from hanlattice.explain.reading import Reading, reading

__all__ = ["Attention", "Influence", "Reading", "attention", "influence", "reading"]

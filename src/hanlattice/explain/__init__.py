"""What a model read, what its answer rests on, and where it goes wrong: as numbers and as pictures."""

from hanlattice.explain.attention import Attention, attention
from hanlattice.explain.influence import Influence, influence
from hanlattice.explain.reading import Reading, reading

__all__ = ["Attention", "Influence", "Reading", "attention", "influence", "reading"]

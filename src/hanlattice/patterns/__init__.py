"""Regular entities with values, found by a grammar without a model: dates, times, amounts, numbers, addresses."""

from hanlattice.patterns.grammar import KINDS
from hanlattice.patterns.search import Pattern, Patterns, Priority, day_of, find, patterns_of

__all__ = ["KINDS", "Pattern", "Patterns", "Priority", "day_of", "find", "patterns_of"]

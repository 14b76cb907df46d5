"""The lexicon: words with labels, their matches in texts, and segmentation into words."""

from hanlattice.lexicon.lexicon import Lexicon
from hanlattice.lexicon.matches import BatchMatches, Matches
from hanlattice.lexicon.segmentation import count_matches, segment
from hanlattice.lexicon.words import Word

__all__ = ["BatchMatches", "Lexicon", "Matches", "Word", "count_matches", "segment"]

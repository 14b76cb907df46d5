"""A cache of lexicons that were built for requests."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from hanlattice.lexicon import Lexicon

KEPT, KEPT_WORDS = 16, 1_000_000


class LexiconCache:
    """Up to `KEPT` lexicons with up to `KEPT_WORDS` edits together; the least recently used one is dropped first.

    The last one stays, however many edits it has.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Lexicon, int]] = OrderedDict()

    def get(self, key: Hashable, build: Callable[[], tuple[Lexicon, int]]) -> Lexicon:
        """The lexicon with this key. If it is not there, ``build`` returns it and the number of its edits."""
        if key not in self._kept:
            self._kept[key] = build()
            while len(self._kept) > 1 and (len(self._kept) > KEPT or self._n_edits() > KEPT_WORDS):
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def _n_edits(self) -> int:
        return sum(n for _, n in self._kept.values())

"""The edits of a lexicon in a file of their own: words that were added, got another label, or were removed.

A model reads words that a user added differently from its own, so a saved copy keeps them apart.
"""

import json
from pathlib import Path
from typing import Any

from hanlattice.errors import DataError
from hanlattice.files import atomic_write, read_text
from hanlattice.lexicon.lexicon import Lexicon
from hanlattice.lexicon.words import Word


def save_edits(lexicon: Lexicon, base: Lexicon, path: Path) -> bool:
    """Write the difference between a lexicon and the one that it is an edited copy of.

    If there are no edits, there will be no file.

    Returns:
        whether ``lexicon`` is an edited copy of ``base``.
    """
    edits = lexicon.edits_since(base)
    added, removed = edits or ([], [])
    if not (added or removed):
        path.unlink(missing_ok=True)
        return edits is not None
    with atomic_write(path) as stream:
        json.dump({"added": added, "removed": removed}, stream, ensure_ascii=False, indent=1)
        stream.write("\n")
    return True


def apply_edits(lexicon: Lexicon, path: Path) -> None:
    """Make the edits that :func:`save_edits` wrote.

    Raises:
        DataError: the file cannot be read, was not written by that function, or has words that the lexicon refuses.
    """
    try:
        edits: Any = json.loads(read_text(path))
        added = [Word(*entry) for entry in edits["added"]]
        removed = [str(word) for word in edits["removed"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DataError("does not have the edits of a lexicon; save the model again", path) from None
    lexicon.update(added, source=path)
    for word in removed:
        lexicon.remove(word)

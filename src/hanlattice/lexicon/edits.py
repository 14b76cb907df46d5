"""The edits of a lexicon in a file of their own: words that were added, got another label, or were removed.

A model reads words that a user added differently from its own, so a saved copy keeps them apart. The file can also
hold the words of another lexicon that takes the place of the model's own.
"""

import json
from pathlib import Path
from typing import Any

from hanlattice.atomic import atomic_write
from hanlattice.errors import DataError
from hanlattice.files import read_text
from hanlattice.lexicon.lexicon import Lexicon
from hanlattice.lexicon.words import Word


def save_edits(lexicon: Lexicon, base: Lexicon, path: Path) -> None:
    """Write the difference between a lexicon and its base, or all words if it is not an edited copy of the base.

    If there is no difference, there will be no file.
    """
    edits = lexicon.edits_since(base)
    if edits == ([], []):
        path.unlink(missing_ok=True)
        return
    rows: dict[str, Any] = {"words": [*lexicon.entries()]}
    if edits is not None:
        rows = dict(zip(("added", "removed"), edits, strict=True))
    with atomic_write(path) as stream:
        # In ASCII, because words may have unpaired surrogates, which UTF-8 cannot express.
        json.dump(rows, stream, indent=1)
        stream.write("\n")


def edited(lexicon: Lexicon, path: Path) -> Lexicon:
    """The lexicon that :func:`save_edits` wrote, for a model with this lexicon.

    Edits are made in ``lexicon``, which is returned. Another lexicon gets its normalisation and limits.

    Raises:
        DataError: the file cannot be read, was not written by that function, or has words that the lexicon refuses.
    """
    try:
        rows: Any = json.loads(read_text(path))
        words = [Word(*entry) for entry in rows["words" if "words" in rows else "added"]]
        removed = [str(word) for word in rows.get("removed", ())]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DataError("does not have the edits of a lexicon; save the model again", path) from None
    if "words" in rows:
        lexicon = lexicon.emptied()
    lexicon.update(words, source=path)
    lexicon.remove(*removed)
    return lexicon

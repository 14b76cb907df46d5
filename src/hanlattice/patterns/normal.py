"""The normal form of a text that the grammars read, with a map back to the text."""

import re
import unicodedata
from dataclasses import replace
from functools import cache

from hanlattice.text.normalise import Normalised, Normaliser, placed
from hanlattice.text.tidy import visible

_NORMALISER = Normaliser(nfkc=True, simplify=True)
# Where Unicode has enumerators, superscripts, fractions and squared units, such as ① ⒈ ² ½ ㎡. NFKC would make them
# digits that join the digits beside them.
_BLOCKS = (
    *(range(0xB2, 0xBF), range(0x2070, 0x20A0), range(0x2150, 0x2190), range(0x2460, 0x2500)),
    *(range(0x3251, 0x3260), range(0x32B1, 0x32C0), range(0x3371, 0x33E0), range(0x1F100, 0x1F10B)),
)
_PRIVATE = 0xF0000  # plus a code point: a character for private use, which normalisation does not change
# NFKC would make it the comma that groups digits. Between numbers it mostly separates them: 100，200，300元. Only
# where a group of three begins with 0 it groups: 12，000元.
_COMMA = chr(_PRIVATE + ord("，"))
_GROUPED = re.compile(
    f"(?<![0-9.,{_COMMA}])[1-9][0-9]{{0,2}}(?:{_COMMA}[0-9]{{3}}){{0,6}}?{_COMMA}0[0-9]{{2}}"
    f"(?:{_COMMA}[0-9]{{3}}){{0,6}}(?![0-9{_COMMA}])"
)


def normalised(text: str) -> Normalised:
    """The text in half-width, simplified characters, without invisible ones.

    Enumerators, superscripts and fractions stay as they are.
    """
    hidden, shown = _tables()
    seen = visible(text)
    found = _NORMALISER(seen.text.translate(hidden))
    if len(seen.text) < len(text):
        found = placed(found.text, found, seen)
    grouped = _GROUPED.sub(lambda number: number[0].replace(_COMMA, ","), found.text)
    return replace(found, text=grouped.translate(shown))


@cache
def _tables() -> tuple[dict[int, str], dict[int, str]]:
    """What is replaced before normalisation, and after it."""
    codes = [code for block in _BLOCKS for code in block if _becomes_digits(chr(code))]
    hidden = {code: chr(_PRIVATE + code) for code in (ord("，"), *codes)}
    return hidden, {ord(_COMMA): "、"} | {_PRIVATE + code: chr(code) for code in codes}


def _becomes_digits(character: str) -> bool:
    return any(c.isdecimal() for c in unicodedata.normalize("NFKC", character))

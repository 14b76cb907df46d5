"""Recognise tags, and normalise their variants.

The schemes are the four of `hanlattice.spans`. Two variants are read too: BMEWO, whose ``W`` is the ``S`` of BMES,
and tags with the letter after the label (``PER-B``).
"""

import re
from collections.abc import Iterable
from typing import Any

from hanlattice.errors import HanlatticeError
from hanlattice.spans import SCHEMES

OTHER_NAMES = {
    "IOB2": "BIO", "IOBES": "BIOES", "BIEOS": "BIOES", "BIESO": "BIOES", "BMESO": "BMES", "BMEWO": "BMES",
}  # fmt: skip
"""Other names of the schemes."""

_TAG = re.compile(r"O|[BIMESULW][-_]\S+|\S+[-_][BIMESULW]")
_LETTER_FIRST = re.compile(r"[A-Za-z]([-_].+)?")
_LETTER_LAST = re.compile(r"(.+)[-_]([BIMESULW])")
_SINGLE = re.compile(r"W([-_].+)?")


def is_tag(value: Any) -> bool:
    """Whether the value is a tag of some scheme, with the letter before or after the label."""
    return isinstance(value, str) and _TAG.fullmatch(value) is not None


def is_tags(values: Any) -> bool:
    """Whether the value is a list of tags with at least one label."""
    return isinstance(values, list) and all(map(is_tag, values)) and any(value != "O" for value in values)


def scheme_named(name: str) -> str:
    """The scheme of this name, in any case.

    Raises:
        HanlatticeError: there is no such scheme.
    """
    scheme = OTHER_NAMES.get(name.upper(), name.upper())
    if scheme not in SCHEMES:
        known = ", ".join([*SCHEMES, *OTHER_NAMES])
        raise HanlatticeError(f"unknown tag scheme {name!r}; allowed are {known}")
    return scheme


def have_letter_last(tags: Iterable[str]) -> bool:
    """Whether all tags can be read with the letter after the label, and not all with the letter before it."""
    labelled = set(tags) - {"O"}
    return any(not _LETTER_FIRST.fullmatch(tag) for tag in labelled) and all(map(_LETTER_LAST.fullmatch, labelled))


def canonical(tag: str, *, letter_last: bool, scheme: str | None) -> str:
    """Normalise a tag: the letter comes first, and an entity of one token has ``S`` instead of ``W``.

    ``scheme`` is the scheme that the user names; ``W`` stays if that scheme has no ``S``.
    """
    if letter_last and (match := _LETTER_LAST.fullmatch(tag)):
        tag = f"{match[2]}-{match[1]}"
    is_single = _SINGLE.fullmatch(tag) and (scheme is None or "S" in SCHEMES[scheme])
    return f"S{tag[1:]}" if is_single else tag

"""The settings of one part of a tagger: its name, and the settings of that part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hanlattice.config.ranges import OF_PARTS, refuse_outside
from hanlattice.config.values import coerced, suggestion
from hanlattice.errors import ConfigError

# The settings of a part by name: their types and defaults.
Kinds = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Part:
    """A part of the tagger: its name in :mod:`hanlattice.build`, or ``package.module:Class``; its settings.

    A setting may be a part itself, such as the encoder that another encoder wraps. Then it is a table with a
    ``name``, called ``inner``; several such tables are in a table called ``parts``.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def with_settings(self, settings: Mapping[str, Any]) -> Part:
        """This part with ``settings`` on top, which may name another part.

        Settings of another part do not carry over; whether they exist is checked when the part is built.
        """
        laid = _laid_over({"name": self.name, **self.settings}, settings)
        return Part(str(laid.pop("name")), laid)


def _laid_over(
    old: Mapping[str, Any], new: Mapping[str, Any], key: str = "", *, part: bool = True
) -> dict[str, Any]:
    """``new`` over ``old``, the settings of a part or a table among them, such as the queries of labels.

    Parts within parts are called ``inner``, or stand in a table called ``parts``; other tables may well have a
    key ``name`` that names nothing.
    """
    name = old.get("name")
    if part and new.get("name", name) != name:
        return dict(new)
    tables = {k for k, v in new.items() if isinstance(v, Mapping) and isinstance(old.get(k), Mapping)}
    inner = {k: _laid_over(old[k], new[k], k, part=k == "inner" or key == "parts") for k in tables}
    return {**old, **new, **inner}


def part_setting(part: Part, key: str, value: Any, hint: Any, where: str) -> Any:
    """A setting of an embedding, an encoder or a decoder in its type and, if the part is one of ours, its range.

    Raises:
        ConfigError: it is of another type, or outside the range.
    """
    found = coerced(value, hint, where)
    if ":" not in part.name:
        refuse_outside(found, OF_PARTS.get(key), where)
    return found


def settings_of(where: str, part: Part, kinds: Mapping[str, Kinds]) -> dict[str, Any]:
    """All settings of a part that is among ``kinds``, for readers of models that do without its module.

    Raises:
        ConfigError: a setting does not exist, is of another type, or outside its range.
    """
    known = kinds[part.name]
    found = {key: value for key, (_, value) in known.items()}
    for key, value in part.settings.items():
        if key not in known:
            raise ConfigError(f"{where} {part.name!r} has no setting {key!r}{suggestion(key, known)}")
        found[key] = part_setting(part, key, value, known[key][0], f"{where}.{key}")
    return found

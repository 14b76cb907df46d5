"""The settings of one part of a tagger: its name, and the settings of that part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hanlattice.config.ranges import PART_RANGES, refuse_outside
from hanlattice.config.values import coerced, suggestion
from hanlattice.errors import ConfigError

# The settings of a part: for each name its type and its default.
Kinds = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Part:
    """A part of the tagger: an embedding, an encoder or a decoder.

    A setting may be a part itself, such as the encoder that another encoder wraps. Then it is a table with a
    ``name``, called ``inner``; several such tables are in a table called ``parts``.

    Attributes:
        name: its name in :mod:`hanlattice.build`, or ``package.module:Class``.
        settings: its settings, without defaults.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def with_settings(self, settings: Mapping[str, Any]) -> Part:
        """This part with ``settings`` on top. If these name another part, the old settings are dropped.

        Whether the settings exist is checked when the part is built.
        """
        laid = _laid_over({"name": self.name, **self.settings}, settings)
        return Part(str(laid.pop("name")), laid)


def _laid_over(
    old: Mapping[str, Any], new: Mapping[str, Any], key: str = "", *, part: bool = True
) -> dict[str, Any]:
    """``old`` updated with ``new``, table by table; a part with another name replaces the old part as a whole.

    Args:
        key: name of this table.
        part: whether this table is a part, with its name under ``name``. A table inside a part is a part if it is
            called ``inner`` or is in a table called ``parts``. In any other table, such as the queries of labels,
            ``name`` is an ordinary key.
    """
    name = old.get("name")
    if part and new.get("name", name) != name:
        return dict(new)
    tables = {k for k, v in new.items() if isinstance(v, Mapping) and isinstance(old.get(k), Mapping)}
    inner = {k: _laid_over(old[k], new[k], k, part=k == "inner" or key == "parts") for k in tables}
    return {**old, **new, **inner}


def part_setting(part: Part, key: str, value: Any, hint: Any, where: str) -> Any:
    """A setting of a part, converted to its type; for the parts of this package, its range is checked too.

    Args:
        hint: the type.
        where: the name of the setting in an error.

    Raises:
        ConfigError: it is of another type, or outside the range.
    """
    found = coerced(value, hint, where)
    if ":" not in part.name:
        refuse_outside(found, PART_RANGES.get(key), where)
    return found


def settings_of(where: str, part: Part, kinds: Mapping[str, Kinds]) -> dict[str, Any]:
    """All settings of a part, with defaults, for engines that do not import its module.

    ``kinds`` has the settings of each part that is possible here, by name.

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

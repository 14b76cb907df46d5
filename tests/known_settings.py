"""Every setting there is, with its default, which tests of the settings and of the documentation compare with."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from hanlattice import build
from hanlattice.config.settings import AuxiliaryConfig, Config, ConventionConfig

FURTHER = {"auxiliary": AuxiliaryConfig(), "conventions": ConventionConfig()}
PARTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "embedding": build.EMBEDDINGS,
    "encoder": build.ENCODERS,
    "decoder": build.DECODERS,
}


def known_settings() -> dict[tuple[str, str], Any]:
    """Every setting there is with its default, by the part it belongs to, if any, and its dotted name."""
    found: dict[tuple[str, str], Any] = {}
    for section in fields(Config):
        if section.name in PARTS:
            for name, builder in PARTS[section.name].items():
                parameters = inspect.signature(builder).parameters.values()
                known = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
                found |= {
                    (f"{section.name} {name}", f"{section.name}.{key}"): value for key, value in known.items()
                }
        else:
            part = FURTHER[section.name] if section.name in FURTHER else getattr(Config(), section.name)
            found |= {("", f"{section.name}.{s.name}"): getattr(part, s.name) for s in fields(part)}
    found.pop(("", "conventions.same_convention"))  # which is refused
    return found

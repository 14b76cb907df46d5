"""Finds an installed font that has the characters of a text."""

from collections.abc import Collection

from hanlattice.errors import ConfigError

# Fonts with Chinese characters, in the order of preference.
FAMILIES = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "Heiti SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "SimHei",
)


def font_with(characters: Collection[str]) -> str:
    """The family of an installed font that has all of the characters. It is registered with matplotlib.

    Raises:
        ConfigError: no installed font has all of them.
    """
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    codes = {ord(c) for c in characters}
    found: dict[str, str] = {}
    for path in sorted(font_manager.findSystemFonts()):
        try:
            font = FT2Font(path)
        except (OSError, RuntimeError):  # not a font, or of a kind that matplotlib cannot read
            continue
        if codes <= font.get_charmap().keys():
            found.setdefault(font.family_name, path)
    if not found:
        some = "".join(sorted(characters)[:10])
        raise ConfigError(
            f"no installed font has all of {some!r}: install one (Debian: apt install fonts-noto-cjk), or write an"
            " .svg, which uses the fonts of the machine that shows it"
        )
    family = next((name for name in FAMILIES if name in found), min(found))
    font_manager.fontManager.addfont(found[family])
    return family

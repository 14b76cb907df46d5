"""Escaping of text for XML and HTML."""

from html import escape


def escaped(text: str) -> str:
    """The text, safe as content and in quoted attributes; characters that XML or UTF-8 forbids become U+FFFD."""
    return escape("".join("\ufffd" if _forbidden(ord(c)) else c for c in text))


def _forbidden(code: int) -> bool:
    return (code < 0x20 and code not in (9, 10, 13)) or 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE

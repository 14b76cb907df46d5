"""Bridges to other systems, each an optional extra; nothing of the library needs them."""

"""One file for each kind of regular entity: ``FIRST``, the characters it may start with, and ``parse``."""

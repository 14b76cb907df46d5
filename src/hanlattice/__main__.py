"""``python -m hanlattice`` is ``hanlattice``."""

from hanlattice.cli import main

main()

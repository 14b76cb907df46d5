"""``python -m hanlattice`` runs the command line."""

from hanlattice.cli import main

main()

"""The command ``hanlattice``, also ``python -m hanlattice``: runs the command line if its extra is installed."""

import sys
from importlib.util import find_spec

NEEDED = ("typer", "rich")  # of the extra cli


def main() -> None:
    """Run the command line, or print in one line how to install it."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f"error: the command line needs {' and '.join(missing)}: pip install 'hanlattice[cli]'")
    from hanlattice.cli import main as run

    run()


if __name__ == "__main__":
    main()

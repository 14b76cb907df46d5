"""Where the tensors of the authors' implementations are.

``DATA`` is part of the repository: small, and enough for every test of test_flat.py, test_tener.py and
test_lattice_lstm.py (scripts/cut_parity_fixtures.py). ``FULL`` is the folder with all tensors, ``fixtures`` beside
the folder that HANLATTICE_DATA names. Where it exists, test_tener.py checks one more model, and test_flat_full.py
runs too.
"""

import os
from pathlib import Path

DATA = Path(__file__).with_name("data")
_folder = Path(os.environ.get("HANLATTICE_DATA", DATA)).parent / "fixtures"
FULL = _folder if (_folder / "flat_meta.json").exists() else None

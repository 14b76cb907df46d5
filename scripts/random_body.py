"""Make a body with random weights, to measure what pretraining is worth.

    python scripts/random_body.py LIKE OUTPUT [--seed 1]

The new body has the shape and the vocabulary of the body in the folder ``LIKE``.
"""

import argparse
from pathlib import Path

from hanlattice.embeddings.body_folder import random_body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("like", type=Path, metavar="LIKE")
    parser.add_argument("output", type=Path, metavar="OUTPUT")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers")
    a = parser.parse_args()
    random_body(a.like, a.output, a.seed)


if __name__ == "__main__":
    main()

"""Pretrained vectors against random ones of the same names, width and length."""

import numpy as np

from experiments.arms import Arm, Setup, against
from experiments.corpora import SEED, kept
from experiments.running import Results
from experiments.tables import differences, grid
from hanlattice.training.vocabularies import load_vectors
from hanlattice.vectors import Vectors, VectorSet

SYSTEMS = ("equal/bilstm", "equal/flat")


def random_like(vectors: VectorSet) -> VectorSet:
    """The same names with normally distributed numbers; settings scale every vector to length 1."""
    draw = np.random.default_rng((SEED, 1))

    def drawn(old: Vectors) -> Vectors:
        return Vectors(old.names, draw.standard_normal((len(old), old.dimension)).astype(np.float32))

    return VectorSet(drawn(vectors.chars), drawn(vectors.bigrams), drawn(vectors.words), {"random": "true"})


def arms(setup: Setup) -> list[Arm]:
    """Rows are systems, columns vectors; the lexicon, which is made of the names, is the same."""
    made = []
    for system in setup.systems or SYSTEMS:
        config = setup.config(system)
        path = kept(setup.output / "vectors" / "random.safetensors", random_like(load_vectors(config)).save)
        made += [
            Arm(system, "pretrained", config),
            Arm(system, "random", config.with_settings({"vectors": {"path": path}})),
        ]
    return against(made, lambda arm: (arm.row, "random"))


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    return grid(results, "vectors") + "\n" + differences(made, results)

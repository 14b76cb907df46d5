"""Position encodings as small objects, one file for each family.

Encodings for a Transformer over characters follow the contract of :class:`Position`; ``POSITIONS`` gives them by
name. Encodings for lattices, whose nodes include words, are in :mod:`.lattice`.
"""

from typing import Literal

from hanlattice.encoders.positions.absolute import Learned, Sinusoidal, sinusoid
from hanlattice.encoders.positions.base import Position
from hanlattice.encoders.positions.lattice import (
    Distances,
    Distant,
    FourDistances,
    Nodes,
    SelfMatched,
    Sines,
    TrainedDistances,
    WeightedDistances,
)
from hanlattice.encoders.positions.recursive import Flow, Recurrence, RecurrentFront
from hanlattice.encoders.positions.relative import (
    Buckets,
    Directed,
    Disentangled,
    Rotary,
    Shaw,
    TransformerXL,
    XLNet,
)

PositionName = Literal[
    "none", "learned", "sinusoidal", "recurrence", "flow", "recurrent_front",
    "shaw", "transformer_xl", "xlnet", "tener", "t5", "deberta", "rotary",
]  # fmt: skip
POSITIONS: dict[PositionName, type[Position]] = {
    "none": Position,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "recurrence": Recurrence,
    "flow": Flow,
    "recurrent_front": RecurrentFront,
    "shaw": Shaw,
    "transformer_xl": TransformerXL,
    "xlnet": XLNet,
    "tener": Directed,
    "t5": Buckets,
    "deberta": Disentangled,
    "rotary": Rotary,
}

__all__ = [
    "POSITIONS",
    "Buckets",
    "Directed",
    "Disentangled",
    "Distances",
    "Distant",
    "Flow",
    "FourDistances",
    "Learned",
    "Nodes",
    "Position",
    "PositionName",
    "Recurrence",
    "RecurrentFront",
    "Rotary",
    "SelfMatched",
    "Shaw",
    "Sines",
    "Sinusoidal",
    "TrainedDistances",
    "TransformerXL",
    "WeightedDistances",
    "XLNet",
    "sinusoid",
]

"""Decoders by their names in the settings; each is called with the width of the encoder and the entity labels."""

from collections.abc import Callable

from hanlattice.decoders.base import Decoder
from hanlattice.decoders.enumeration import Enumeration
from hanlattice.decoders.mrc import build_joint_mrc, build_mrc
from hanlattice.decoders.multilabel import MultiLabel
from hanlattice.decoders.pointer import CascadePointer, SoftmaxPointer
from hanlattice.decoders.table.biaffine import Biaffine
from hanlattice.decoders.table.global_pointer import EfficientGlobalPointer, GlobalPointer
from hanlattice.decoders.table.token_pairs import TokenPairs
from hanlattice.decoders.tagging import CRF, Softmax
from hanlattice.decoders.word_pairs import build_word_pairs

DECODERS: dict[str, Callable[..., Decoder]] = {
    "crf": CRF,
    "softmax": Softmax,
    "multilabel": MultiLabel,
    "cascade_pointer": CascadePointer,
    "softmax_pointer": SoftmaxPointer,
    "mrc": build_mrc,
    "joint_mrc": build_joint_mrc,
    "enumeration": Enumeration,
    "token_pairs": TokenPairs,
    "biaffine": Biaffine,
    "global_pointer": GlobalPointer,
    "efficient_global_pointer": EfficientGlobalPointer,
    "word_pairs": build_word_pairs,
}

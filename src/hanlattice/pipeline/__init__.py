"""The pipeline from text to entities, whose offsets count characters of the text as given.

It normalises texts, splits them into windows, calls an engine to find spans, and turns these into entities. Windows
become ids in :mod:`hanlattice.inputs.reader`; spans become entities in :mod:`hanlattice.postprocessing`.
"""

from hanlattice.inputs.encoded import BATCH_SIZE
from hanlattice.pipeline.engine import Engine, WindowReader
from hanlattice.pipeline.ner import LOOK_AHEAD, NER
from hanlattice.pipeline.overrides import Overrides, patterns_or_none

__all__ = ["BATCH_SIZE", "LOOK_AHEAD", "NER", "Engine", "Overrides", "WindowReader", "patterns_or_none"]

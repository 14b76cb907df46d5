"""From a trained model to one that runs without torch."""

from hanlattice.export.onnx import Exported, export

__all__ = ["Exported", "export"]

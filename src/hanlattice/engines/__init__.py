"""Running a model without torch: kernels in C, ONNX Runtime and the export to it, and numpy."""

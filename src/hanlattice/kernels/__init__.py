"""Kernels in C: compiled when the package is built, opened for the processor at hand."""

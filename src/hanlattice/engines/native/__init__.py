"""FLAT with one layer and a tag decoder, run by C kernels without torch."""

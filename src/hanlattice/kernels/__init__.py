"""C kernels: compiled when the package is built, in one library for each instruction set."""

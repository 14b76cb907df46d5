"""The packaged FLAT in C kernels: a layer over the lattice and the decoding of its tags."""

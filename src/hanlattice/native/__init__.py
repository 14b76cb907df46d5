"""The cheapest way to read a lattice on a CPU: a FLAT of one layer and its tags as two small kernels in C."""

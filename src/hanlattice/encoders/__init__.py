"""Encoders, which turn character vectors into contextual vectors: see :class:`hanlattice.encoders.base.Encoder`."""

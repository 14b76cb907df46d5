"""Decoders, which turn the vectors of characters into entities: see :class:`hanlattice.decoders.base.Decoder`."""

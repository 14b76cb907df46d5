"""Embeddings, which turn characters into vectors: see :class:`hanlattice.embeddings.base.Embedding`."""

"""Modules that several encoders and embeddings share."""

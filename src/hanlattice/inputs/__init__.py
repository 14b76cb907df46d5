"""Text to ids to tensors: vocabularies, the reader, flat arrays and padded batches."""

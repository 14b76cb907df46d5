"""A model on disk: the files of its folder, their digests, and its weights."""

"""Annotation of texts of any size: rows in chunks, chunks to workers, each written whole, a stopped run resumed."""

from hanlattice.annotation.chunk import Bad, Chunk, Part
from hanlattice.annotation.job import Job
from hanlattice.annotation.local import local
from hanlattice.annotation.run import Run, Watcher, annotate

__all__ = ["Bad", "Chunk", "Job", "Part", "Run", "Watcher", "annotate", "local"]

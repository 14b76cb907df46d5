"""Annotation of large collections of text: files are cut into chunks, workers annotate the chunks.

How a file becomes annotated rows, in reading order:

1. `inputs` finds the files and opens them, also compressed ones.
2. `input_formats` cuts each file into chunks of rows (`chunk`), and later parses the rows of a chunk.
3. `run` gives the chunks to an engine, either `local` (processes of this machine) or `ray` (a Ray cluster). In each
   worker of an engine, an `annotator` turns a chunk into a part: the bytes of annotated rows.
4. `run_folder` writes every part to the disk as soon as it is done, so that a stopped run can be resumed. At the
   end the parts become the output, in a format of `output_formats`.

A `job` holds the settings that decide the result: the model, the threshold, the columns.
"""

from hanlattice.annotation.chunk import BadRow, Chunk, Part
from hanlattice.annotation.job import Job
from hanlattice.annotation.local import local
from hanlattice.annotation.run import Watcher, annotate
from hanlattice.annotation.run_folder import Run

__all__ = ["BadRow", "Chunk", "Job", "Part", "Run", "Watcher", "annotate", "local"]

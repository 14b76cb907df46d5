"""The work of one worker: load the model once, then annotate chunks."""

from pathlib import Path

from hanlattice.annotation.chunk import Chunk, Part
from hanlattice.annotation.input_formats import INPUT_FORMATS
from hanlattice.annotation.job import Job
from hanlattice.annotation.output_formats import OUTPUT_FORMATS
from hanlattice.api import load, set_up
from hanlattice.kernels.allocator import return_freed_memory
from hanlattice.lexicon import Lexicon


class Annotator:
    """Turns chunks into parts: ``annotator(chunk)``.

    Batches never mix texts of different chunks, so the result does not depend on which worker gets a chunk.

    Raises:
        HanlatticeError: the model or a lexicon cannot be loaded.
    """

    def __init__(self, job: Job):
        self.job = job
        return_freed_memory()
        ner = load(
            job.model,
            device=job.device,
            engine=job.engine,
            threads=job.threads,
            int8=job.int8,
            convention=job.convention,
            trust=job.trust,
        )
        self.ner = set_up(ner, {Path(path): Lexicon.open(path) for path in job.lexicons}, job.threads)

    def __call__(self, chunk: Chunk) -> Part:
        job = self.job
        rows = INPUT_FORMATS[chunk.format].rows(chunk, job.column, job.into)
        with self.ner.using(
            threshold=job.threshold,
            force=dict(job.force) or None,
            block=dict(job.block) or None,
            patterns=job.patterns,
        ):
            found = self.ner.pipe(rows.texts, batch_size=job.batch_size)
            entities = [[entity.to_dict() for entity in document.entities] for document in found]
        data = OUTPUT_FORMATS[job.output].write(rows, entities, job.into)
        return Part(chunk.number, chunk.file, chunk.size, data, len(entities), tuple(rows.bad))

"""Redirect the module paths of version 0.1, which users' own parts may import, to the new paths.

An import of ``hanlattice.batch`` returns ``hanlattice.inputs.batch`` and emits a :class:`DeprecationWarning`.
Version 1.0 will remove the old paths.
"""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "allocator": "kernels.allocator",
    "annotation.forms": "annotation.input_formats",
    "annotation.forms.base": "annotation.input_formats.base",
    "annotation.forms.delimited": "annotation.input_formats.delimited",
    "annotation.forms.jsonl": "annotation.input_formats.jsonl",
    "annotation.forms.parquet": "annotation.input_formats.parquet",
    "annotation.forms.text": "annotation.input_formats.text",
    "annotation.output": "annotation.output_formats",
    "batch": "inputs.batch",
    "calibration": "evaluation.temperature",
    "comparison.study": "comparison.run",
    "corpus.angled": "corpus.inline.angled",
    "corpus.boson": "corpus.inline.boson",
    "corpus.bracketed": "corpus.inline.bracketed",
    "corpus.brat": "corpus.standoff.brat",
    "corpus.cluener": "corpus.json_rows.cluener",
    "corpus.cmeee": "corpus.standoff.cmeee",
    "corpus.cmeee_json": "corpus.json_rows.cmeee_json",
    "corpus.conll": "corpus.tagged.conll",
    "corpus.conllu": "corpus.tagged.conllu",
    "corpus.csv_table": "corpus.tables.csv_table",
    "corpus.docbin": "corpus.standoff.docbin",
    "corpus.doccano": "corpus.json_rows.doccano",
    "corpus.fields": "corpus.json_rows.fields",
    "corpus.gliner": "corpus.json_rows.gliner",
    "corpus.huggingface": "corpus.json_rows.huggingface",
    "corpus.json_array": "corpus.json_rows.json_array",
    "corpus.jsonl": "corpus.json_rows.jsonl",
    "corpus.label_studio": "corpus.json_rows.label_studio",
    "corpus.ontonotes": "corpus.inline.ontonotes",
    "corpus.people_daily": "corpus.inline.people_daily",
    "corpus.prodigy": "corpus.json_rows.prodigy",
    "corpus.rows": "corpus.json_rows.rows",
    "corpus.sentences": "corpus.tagged.sentences",
    "corpus.shapes": "corpus.json_rows.row_formats",
    "corpus.spacy": "corpus.json_rows.spacy",
    "corpus.tagging": "corpus.tagged.decoding",
    "corpus.w2ner": "corpus.json_rows.w2ner",
    "decoders.structs.selection": "decoders.structs.cell_losses",
    "decoders.table.cells": "decoders.table.rules",
    "digests": "model.digests",
    "dropout": "layers.dropout",
    "edges": "text.edges",
    "encoded": "inputs.encoded",
    "embeddings.pieces": "embeddings.subwords",
    "encoders.feed_forward": "layers.feed_forward",
    "encoders.lattice_recurrence": "layers.lattice_recurrence",
    "encoders.recurrent": "layers.recurrent",
    "explain.attending": "explain.attention",
    "explain.caught": "explain.attention_weights",
    "explain.colours": "drawing.colours",
    "explain.glyphs": "drawing.glyphs",
    "explain.html": "drawing.html",
    "explain.markup": "drawing.markup",
    "explain.positions": "explain.position_figure",
    "explain.svg": "drawing.svg",
    "export": "engines.export",
    "export.graph": "engines.graph",
    "export.onnx": "engines.export",
    "forking": "kernels.forking",
    "integrations.ray": "annotation.ray",
    "lexicon.lattice": "document",
    "measuring": "benchmark",
    "model_folder": "model.folder",
    "native": "engines.native",
    "native.chain": "engines.native.chain",
    "native.checking": "engines.native.checking",
    "native.flat": "engines.native.flat",
    "native.tagger": "engines.native.tagger",
    "ranges": "config.ranges",
    "reach": "evaluation.recall_bound",
    "reader": "inputs.reader",
    "runtime": "engines.onnx",
    "structs": "decoders.structs",
    "structs.decoding": "decoders.structs.decoding",
    "structs.linear_chain": "decoders.structs.linear_chain",
    "structs.pairing": "decoders.structs.pairing",
    "structs.paths": "decoders.structs.paths",
    "structs.rotary": "layers.rotary",
    "structs.segmentation": "inputs.segmentation",
    "structs.selection": "decoders.structs.cell_losses",
    "structs.spans": "decoders.structs.spans",
    "tables": "embeddings.initial_weights",
    "tidy": "text.tidy",
    "vocab": "inputs.vocabulary",
}


class MovedModules(MetaPathFinder, Loader):
    """Finds modules by their old paths. Python calls it only if no other finder knows a path."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == "hanlattice" and name in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = f"hanlattice.{MOVED[spec.name.removeprefix('hanlattice.')]}"
        warnings.warn(f"{spec.name} is {new} now", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system replaced. The module's code is not run again."""
        module.__spec__ = self._spec


def install() -> None:
    """Make old paths importable. Further calls change nothing."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())

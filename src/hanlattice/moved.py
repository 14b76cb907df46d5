"""Redirect the module paths of version 0.1, which users' own parts may import, to the new paths.

An import of ``hanlattice.batch`` returns ``hanlattice.inputs.batch`` and emits a :class:`DeprecationWarning`.
Version 1.0 will remove the old paths.
"""

import importlib
import sys
import warnings
from collections.abc import Sequence
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
    "cli.settings": "cli.config_options",
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
    "embeddings.pieces": "embeddings.subwords",
    "encoded": "inputs.encoded",
    "encoders.feed_forward": "layers.feed_forward",
    "encoders.lattice_recurrence": "layers.lattice_recurrence",
    "encoders.recurrent": "layers.recurrent",
    "engines.native.checking": "engines.checking",
    "explain.attending": "explain.attention",
    "explain.caught": "explain.attention_weights",
    "explain.colours": "drawing.colours",
    "explain.glyphs": "drawing.glyphs",
    "explain.html": "drawing.html",
    "explain.markup": "drawing.markup",
    "explain.positions": "explain.position_figure",
    "explain.svg": "drawing.svg",
    "export.graph": "engines.graph",
    "export.onnx": "engines.export",
    "forking": "kernels.forking",
    "integrations.ray": "annotation.ray",
    "lexicon.lattice": "document",
    "measuring": "benchmark",
    "model_folder": "model.folder",
    "native": "engines.native",
    "native.chain": "engines.native.chain",
    "native.checking": "engines.checking",
    "native.flat": "engines.native.flat",
    "native.tagger": "engines.native.tagger",
    "ranges": "config.ranges",
    "reach": "evaluation.recall_bound",
    "reader": "inputs.reader",
    "runtime": "engines.onnx",
    "serving.answering": "serving.handlers",
    "serving.description": "serving.openapi",
    "serving.guarding": "serving.limits",
    "serving.naming": "serving.validation",
    "serving.questions": "serving.fast_routes",
    "serving.recording": "serving.access_log",
    "serving.refusals": "serving.errors",
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
    "training.pretrain.stopping": "training.pretrain.interrupt",
    "training.pretrain.watching": "training.pretrain.watcher",
    "training.resuming": "training.resume",
    "training.spelling": "training.word_composition",
    "training.start": "training.fine_tuning",
    "training.variation": "training.augmentation",
    "vocab": "inputs.vocabulary",
}
# Old modules whose contents are now in several modules, and old packages that are now one module.
SPLIT = {
    "export": ("engines.export",),
    "training.data": ("training.corpora", "training.examples", "training.vocabularies"),
}


class MovedModules:
    """Finds modules by their old paths.

    It precedes the other finders: an old package leads to a new one, in whose folder they would find its modules
    a second time, by their old paths.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "hanlattice" or (name not in MOVED and name not in SPLIT):
            return None
        return ModuleSpec(fullname, self, is_package=name in SPLIT)  # type: ignore[arg-type]  # the base class takes 5 ms to import

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        old = spec.name.removeprefix("hanlattice.")
        names = [f"hanlattice.{name}" for name in SPLIT.get(old) or (MOVED[old],)]
        warnings.warn(f"{spec.name} is {' and '.join(names)} now", DeprecationWarning, stacklevel=2)
        modules = [importlib.import_module(name) for name in names]
        if old in SPLIT:
            return _SplitModule(spec.name, modules)
        spec.loader_state = modules[0].__spec__
        return modules[0]

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system replaced. The module's code is not run again."""
        if module.__spec__ is not None and module.__spec__.loader_state is not None:
            module.__spec__ = module.__spec__.loader_state


class _SplitModule(ModuleType):
    """Has the attributes of several modules."""

    def __init__(self, name: str, modules: Sequence[ModuleType]):
        super().__init__(name, modules[0].__doc__)
        self._modules = modules

    def __getattr__(self, name: str) -> object:
        for module in self._modules:
            if not name.startswith("__") and hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def install() -> None:
    """Make old paths importable. Further calls change nothing."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())

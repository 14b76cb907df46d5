"""Generated mutants that change nothing a caller could notice, with the reason.

A key is :attr:`mutation.operators.Mutant.key`. Only these are excused; a mutant that no test notices otherwise is a
test that is missing.
"""

_NEVER = "no random number is exactly that"
_ORDER = "the order of the ranges does not matter, as breaks are counted over all of them"
_SPARED = "spares marks that are not over the piece; looking at them gives the same"
_BLOCK = "how much is computed at once, which changes memory and speed only"
_BUFFER = "the size of a buffer, which changes no result"

EQUIVALENT: dict[str, str] = {
    (
        "serving/supervisor.py:_Worker.listen: contextlib.suppress(EOFError, OSError)"
        " -> contextlib.suppress(OSError, EOFError) #0"
    ): "both are suppressed, whichever is named first",
    "patterns/single_date.py:_week: 0 -> 1 #1": "where a word was found it ends at 1 or later",
    "lexicon/trie.py:Trie._of: 2 -> 3 #1": "a full table grows to three times its size, more than it needs",
    "lexicon/wordlist.py:_read_by_kernel: 1 -> 2 #0": _BUFFER,
    "postprocessing.py:merge_windows: len(windows) == 1 -> False #0": (
        "a shortcut: the spans of a single window are in order, inside its core, and overlap only if they may"
    ),
    "serving/handlers.py:_explained: 0 -> 1 #0": (
        "the number of words is compared with a limit of 240 only for texts whose words were counted"
    ),
    "compressed.py:: 1 -> 2 #0": _BUFFER,
    "compressed.py:: 20 -> 21 #0": _BUFFER,
    "corpus/tagged/conllu.py:_tag: len(row) <= _MISC -> (len(row) < _MISC) #0": (
        "a row has at most six columns or ten, and the tenth has the index 9"
    ),
    "corpus/tagged/conllu.py:_sentence: 2 -> 3 #0": (
        "the pattern of an id has its second and its third group together or neither"
    ),
    "patterns/kinds/money.py:parse: 0 -> 1 #1": "a joint ends at 2 or later, since a number stands before it",
    "patterns/year.py:from_year: 0 -> 1 #0": "公元前 ends at 3 or later",
    "patterns/language.py:Row.first: not element.optional -> False #0": (
        "the first characters are then not known, which makes a search slower and nothing else"
    ),
    "patterns/language.py:Characters.end: 1 -> 2 #1": "any number below 0 says that there is no match",
    "patterns/kinds/quantity.py:_is_unit: text not in (\"十\", \"百\") -> (text in ('十', '百')) #0": (
        "a single character was decided before"
    ),
    "benchmark.py:random_text: draw.random() < WORD_RATE -> (draw.random() <= WORD_RATE) #0": _NEVER,
    "benchmark.py:random_text: draw.random() < 0.02 -> (draw.random() <= 0.02) #0": _NEVER,
    "document.py:Entity.__init__: len(fragments) > 1 -> (len(fragments) >= 1) #0": "it passes the check",
    "document.py:Entity.span: not self.discontinuous -> False #0": "one fragment is the same span",
    "drawing/glyphs.py:_regional_indicators_before: i - first -> (i + first) #0": "only its parity matters",
    "drawing/html.py:_marked: ordered[first].end <= start -> (ordered[first].end < start) #0": _SPARED,
    "drawing/html.py:_marked: mark.start > start -> False #0": _SPARED,
    "drawing/svg.py:_rows: chain(((arc.start, arc.end) for arc in arcs),"
    " ((mark.start, mark.end) for mark in marks)) -> chain(((mark.start, mark.end) for mark in marks),"
    " ((arc.start, arc.end) for arc in arcs)) #0": _ORDER,
    "drawing/svg.py:_breaks: 0 -> 1 #0": "counts are compared with one another only",
    "drawing/svg.py:_breaks: 0.0 -> 1.0 #0": "only differences of edges are used",
    "drawing/svg.py:_breaks: 1 -> 2 #0": "the further count is not read",
    "drawing/svg.py:_placed: 0.0 -> 1.0 #0": "the margin is wider",
    "annotation/local.py:local: 0.05 -> 1.1 #0": "how long a thread waits before it looks again",
    "annotation/output_formats.py:JsonLinesOutput.join: 1 -> 2 #0": _BUFFER,
    "annotation/output_formats.py:JsonLinesOutput.join: 20 -> 21 #0": _BUFFER,
    "annotation/__main__.py:: 1 -> 2 #0": "nobody reads the status: the parent process has ended",
    "corpus/__init__.py:write: 1 -> 2 #0": "a larger output waits in memory before it waits on the disk",
    "corpus/__init__.py:write: 24 -> 25 #0": "a larger output waits in memory before it waits on the disk",
    "corpus/__init__.py:write: 1 -> 2 #1": "two documents are taken and put back instead of one",
    "corpus/checking.py:_Texts.add: 16 -> 17 #0": "a longer digest tells the same texts apart",
    "corpus/inline/ontonotes.py:read: 0 -> 1 #0": "the number is used after the first DOC line only, which sets it",
    "corpus/inline/people_daily.py:is_gb18030: 1 -> 2 #0": _BUFFER,
    "corpus/offsets.py:_fault: end < 0 -> (end <= 0) #0": "an end of 0 is refused before: it lies at its start",
    "corpus/standoff/docbin.py:sniff: 1 -> 2 #0": _BUFFER,
    "corpus/standoff/docbin.py:sniff: 1 -> 2 #1": _BUFFER,
    "corpus/standoff/docbin.py:sniff: 12 -> 13 #0": _BUFFER,
    "corpus/standoff/docbin.py:sniff: 16 -> 17 #0": _BUFFER,
    "corpus/tables/arrow.py:: 1000 -> 1001 #0": _BUFFER,
    "corpus/tables/arrow.py:_begins: 8 -> 9 #0": "only the first bytes are compared",
    "corpus/tagged/conll.py:_columns: separator not in rest -> False #0": "a shortcut: splitting gives the tag too",
    "corpus/tagged/decoding.py:_TagReader._without_unknown: tag not in new or tag in kept"
    " -> (tag not in new and tag in kept) #0": "known tags are tried again, and are still known",
    "evaluation/significance.py:: 2 -> 3 #0": "the samples that are drawn at once, which changes memory only",
    "evaluation/significance.py:: 22 -> 23 #0": "the samples that are drawn at once, which changes memory only",
    "evaluation/significance.py:micro_f1: 1 -> 2 #1": "a single span, gold or predicted, is not correct: F1 is 0",
    "tuning/space.py:_checked: (domain.low + domain.high) / 2 + 0.25"
    " -> ((domain.low + domain.high) / 2 - 0.25) #0": "another number between the two that is not whole",
    "decoders/enumeration.py:: 1 -> 2 #0": _BLOCK,
    "decoders/enumeration.py:: 1 -> 2 #1": _BLOCK,
    "decoders/enumeration.py:: 24 -> 25 #0": _BLOCK,
    "decoders/enumeration.py:: 21 -> 22 #0": _BLOCK,
    "decoders/mrc.py:: 1 -> 2 #0": _BLOCK,
    "decoders/mrc.py:: 1 -> 2 #1": _BLOCK,
    "decoders/mrc.py:: 16 -> 17 #0": _BLOCK,
    "decoders/mrc.py:: 19 -> 20 #0": _BLOCK,
    "decoders/structs/decoding.py:: 1e30 -> 2e+30 #0": "messages of tags that cannot be reached",
    "decoders/table/base.py:: 1 -> 2 #0": _BLOCK,
    "decoders/table/base.py:: 1 -> 2 #1": _BLOCK,
    "decoders/table/base.py:: 24 -> 25 #0": _BLOCK,
    "decoders/table/base.py:: 21 -> 22 #0": _BLOCK,
    "decoders/word_pairs.py:: 1 -> 2 #1": _BLOCK,
    "decoders/word_pairs.py:: 1 -> 2 #2": _BLOCK,
    "decoders/word_pairs.py:: 27 -> 28 #0": _BLOCK,
    "decoders/word_pairs.py:: 25 -> 26 #0": _BLOCK,
    "engines/native/tagger.py:: 1000 -> 1001 #0": _BLOCK,
    "engines/native/tagger.py:: 4000 -> 4001 #0": _BLOCK,
    "engines/numpy/flat.py:: 1 -> 2 #0": _BLOCK,
    "engines/numpy/flat.py:: 20 -> 21 #0": _BLOCK,
    "engines/onnx.py:: 40 -> 41 #0": "when the graph scores words one by one, which changes speed only",
    "engines/onnx.py:: 1024 -> 1025 #0": _BLOCK,
    "engines/onnx.py:: 1e9 -> 2000000001.0 #0": "the exponential of both is 0",
    "lexicon/layers.py:: 200 -> 201 #0": "which of two searches with the same result is used",
    "lexicon/layers.py:: 1 -> 2 #0": _BLOCK,
    "lexicon/layers.py:: 20 -> 21 #0": _BLOCK,
    "lexicon/layers.py:: 1024 -> 1025 #0": "when layers are merged, which changes speed only",
    "lexicon/layers.py:: 4 -> 5 #0": "when layers are merged, which changes speed only",
    "lexicon/segmentation.py:: 1 -> 2 #0": _BLOCK,
    "lexicon/segmentation.py:: 20 -> 21 #0": _BLOCK,
    "lexicon/trie.py:: 2.5 -> 6.0 #0": "a larger table finds the same words",
    "lexicon/wordlist.py:: 256 -> 257 #0": "room for one label that the kernel never writes",
    "lexicon/words.py:: 0x10FFFF -> 1114112 #0": "the conversion to text refuses this number with the same message",
    "vectors/storage.py:: 1 -> 2 #1": _BUFFER,
    "vectors/storage.py:: 20 -> 21 #0": _BUFFER,
    "vectors/storage.py:Vectors.matrix: False -> True #0": "a copy of the array, which nobody changes",
    "vectors/storage.py:_to_int8: scale > 0 -> (scale >= 0) #0": "0 / 0 becomes 0 as an integer, as 0 / 1 does",
    "vectors/texts.py:training_lines: 1 -> 2 #1": "a piece beyond the end is too short to be excluded",
    "vectors/texts.py:training_lines: len(text) - OVERLAP"
    " -> (len(text) + OVERLAP) #0": "pieces beyond the end are too short to be excluded",
}

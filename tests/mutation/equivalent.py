"""Generated mutants that change nothing a caller could notice, with the reason.

A key is :attr:`mutation.operators.Mutant.key`. Only these are excused; a mutant that no test notices otherwise is a
test that is missing.
"""

_BUFFER = "the size of a buffer, which changes no result"

EQUIVALENT: dict[str, str] = {
    "annotation/inputs.py:_unpacked: 1 -> 2 #0": _BUFFER,
    "annotation/inputs.py:_unpacked: 1 -> 2 #1": _BUFFER,
    "annotation/inputs.py:_unpacked: 20 -> 21 #0": _BUFFER,
    "annotation/inputs.py:_unpacked: 20 -> 21 #1": _BUFFER,
    "annotation/local.py:local: 0.05 -> 1.1 #0": "how long a thread waits before it looks again",
    "annotation/output_formats.py:JsonLinesOutput.join: 1 -> 2 #0": _BUFFER,
    "annotation/output_formats.py:JsonLinesOutput.join: 20 -> 21 #0": _BUFFER,
    "corpus/__init__.py:write: 1 -> 2 #0": "a larger output waits in memory before it waits on the disk",
    "corpus/__init__.py:write: 24 -> 25 #0": "a larger output waits in memory before it waits on the disk",
    "corpus/__init__.py:write: 1 -> 2 #1": "two documents are taken and put back instead of one",
    "corpus/checking.py:_Texts.add: 16 -> 17 #0": "a longer digest tells the same texts apart",
    "corpus/inline/ontonotes.py:read: 0 -> 1 #0": "the number is used after the first DOC line only, which sets it",
    "corpus/inline/people_daily.py:is_gb18030: 1 -> 2 #0": _BUFFER,
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
    "evaluation/significance.py:_f1: 1 -> 2 #1": "of a single span, gold or predicted, none is correct: F1 is 0",
}

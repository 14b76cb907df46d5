"""The structures that the C kernels take, field by field as in the C sources.

The sizes are compared with those of the compiled code when a library is opened: see
:mod:`hanlattice.kernels.library`.
"""

import ctypes
from ctypes import c_double, c_int64, c_uint64, c_void_p
from typing import Any


def _struct(name: str, **fields: Any) -> type[ctypes.Structure]:
    """A C structure with its fields in order."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


def _all(kind: Any, *names: str) -> dict[str, Any]:
    """Fields of one type."""
    return dict.fromkeys(names, kind)


# layers.h
TABLE = _struct("Table", rows=c_void_p, scale=c_void_p, width=c_int64)
LINEAR = _struct(
    "Linear", panels=c_void_p, bias=c_void_p, scale=c_void_p, zero=c_void_p, n_in=c_int64, n_out=c_int64
)

# body.c
BODY_LAYER = _struct(
    "BodyLayer",
    **_all(c_void_p, "attention_norm", "feed_forward_norm"),
    **_all(LINEAR, "query_key_value", "output", "inner", "outer"),
)
BODY = _struct(
    "Body",
    embedding=TABLE,
    **_all(c_void_p, "layers", "norm", "cosine", "sine"),
    **_all(c_int64, "n_layers", "d_model", "heads"),
)
TEXTS = _struct("Texts", n=c_int64, **_all(c_void_p, "ids", "first"))

# flat.c
FLAT = _struct(
    "Flat",
    **_all(TABLE, "chars", "bigrams", "words"),
    **_all(LINEAR, "of_chars", "of_words", "output", "inner", "outer", "emission"),
    **_all(c_void_p, "u", "v", "attention_norm", "feed_forward_norm", "word_length", "word_label"),
    **_all(c_void_p, "encodings", "encoding_scale"),
    **_all(c_int64, "d_model", "heads", "window", "longest", "given"),
    **_all(c_int64, "has_bigrams", "has_output", "carries_input", "narrow"),
)

# chain.c
CHAIN = _struct(
    "Chain",
    **_all(c_int64, "n_tags", "stride"),
    **_all(c_void_p, "start", "end", "transitions", "transitions_back", "opening", "closing"),
    **_all(c_void_p, "moves", "moves_back", "joined", "between", "between_back", "label"),
)

# linear.c
LINEAR_MODEL = _struct(
    "LinearModel",
    **_all(c_int64, "lanes", "labels", "n_chars", "n_kinds", "window", "longest"),
    **_all(c_void_p, "types", "entries"),
    **_all(c_int64, "slots", "n_rows"),
    **_all(c_void_p, "rows", "fresh", "inner", "first", "last"),
    scale=c_double,
    of_types=c_void_p,
    has_following=c_int64,
)
LEARNER = _struct(
    "Learner",
    **_all(c_void_p, "rows", "row_squares", "small", "small_squares", "tags"),
    **_all(c_double, "rate", "dropout"),
    seed=c_uint64,
)

# texts.h
SENTENCES = _struct(
    "Sentences",
    n=c_int64,
    **_all(c_void_p, "chars", "bigrams", "first_char", "words", "start", "end", "label", "first_word"),
)
CHARACTERS = _struct("Characters", **_all(c_void_p, "chars", "shifts", "bigrams"), bits=c_int64)
TRIE = _struct(
    "Trie", cells=c_void_p, slots=c_int64, first=c_void_p, n_first=c_int64, n_words=c_int64, longest=c_int64
)
MATCHES = _struct("Matches", **_all(c_void_p, "start", "end", "word"))
FOUND = _struct("Found", **_all(c_int64, "sentence", "start", "end", "label"), probability=c_double)

# reader.c
READER = _struct(
    "Reader",
    **_all(c_void_p, "characters", "tries", "first_ids"),
    n_tries=c_int64,
    **_all(c_void_p, "present", "rows", "kinds"),
    **_all(c_int64, "shortest", "user_kind"),
)
HEADER = _struct("Header", sentences=SENTENCES, n_unknown=c_int64)

STRUCTS = (
    TABLE,
    LINEAR,
    BODY_LAYER,
    BODY,
    TEXTS,
    FLAT,
    SENTENCES,
    CHAIN,
    TRIE,
    MATCHES,
    FOUND,
    LINEAR_MODEL,
    LEARNER,
    CHARACTERS,
    READER,
    HEADER,
)

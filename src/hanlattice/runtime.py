"""Exported models on ONNX Runtime: sentences in, spans out, without torch."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from hanlattice.encoded import Encoded
from hanlattice.errors import ModelError
from hanlattice.model_folder import GRAPH, WEIGHTS, ModelFolder
from hanlattice.spans import ScoredSpan
from hanlattice.structs.decoding import Potentials

# Decoders that are read here.
DECODERS = ("crf", "softmax")
DIGEST = "weights"  # in the graph's metadata: what the weights were when it was exported

# What scoring one word by itself costs, in rows of a table of all distances for one query.
COST_OF_A_WORD = 40
# Characters and words that the graph reads at once: more of them leave the caches of a core.
NODES_AT_ONCE = 1024
# What is added to the scores of padding.
NOT_THERE = -1e9

Feeds = dict[str, np.ndarray]


class ExportedTagger:
    """The encoder and the emissions of a model as a graph, and its tags decoded here.

    ``threads``: of a single call; the runtime's own choice where it is 0.
    """

    nested = False

    def __init__(self, folder: ModelFolder, *, threads: int = 0):
        runtime = _onnxruntime(folder.path)
        if not (folder.path / GRAPH).is_file():
            raise ModelError(f"{folder.path} is not exported: hanlattice export {folder.path} FOLDER")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.enable_mem_pattern = False  # which would keep a plan of memory for every size of a batch
        try:
            self._session = runtime.InferenceSession(
                str(folder.path / GRAPH), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the runtime's own kinds of errors have no common name
            reason = str(error).splitlines()[0]
            raise ModelError(f"{folder.path / GRAPH} cannot be run ({reason}); export the model again") from None
        made_for = self._session.get_modelmeta().custom_metadata_map.get(DIGEST)
        if made_for != digest(folder.path / WEIGHTS):
            raise ModelError(f"{folder.path}: {GRAPH} and {WEIGHTS} are not of one model; export it again")
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._conventions = ("", *folder.vocabulary.conventions)
        self._tags = {convention: folder.tags(convention) for convention in self._conventions}

    def is_nested(self, convention: str = "") -> bool:
        """Tags cannot express spans inside spans."""
        return False

    def eval(self) -> None:
        """It only reads."""

    def find(self, sentences: Sequence[Encoded], convention: str = "") -> list[list[ScoredSpan]]:
        """Spans of each sentence, by a convention; the default one where it is empty."""
        emissions, n_chars = zip(*(self.emissions(some, convention) for some in _cut(sentences)), strict=True)
        width = max(scores.shape[1] for scores in emissions)
        padded = [np.pad(scores, ((0, 0), (0, width - scores.shape[1]), (0, 0))) for scores in emissions]
        rules, (start, pair, end) = self._tags[convention]
        return rules.best(Potentials(np.concatenate(padded), pair, start, end, np.concatenate(n_chars)))

    def emissions(
        self, sentences: Sequence[Encoded], convention: str = ""
    ) -> tuple[Float[np.ndarray, "B N Y"], Int[np.ndarray, "B"]]:
        """Scores of tags, padded, and how many characters each sentence has."""
        given = feeds(sentences) | {"convention": np.array([self._conventions.index(convention)])}
        found = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        return found[..., : len(self._tags[convention][0].names)], given["n_chars"]


def _cut(sentences: Sequence[Encoded]) -> Iterator[Sequence[Encoded]]:
    """Neighbours that together have as many characters and words, padded, as the graph reads fastest."""
    first, widest = 0, 0
    for i, sentence in enumerate(sentences):
        widest = max(widest, sentence.n_nodes)
        if i > first and (i + 1 - first) * widest > NODES_AT_ONCE:
            yield sentences[first:i]
            first, widest = i, sentence.n_nodes
    yield sentences[first:]


def digest(path: Path) -> str:
    """Of a file's bytes.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None


def _onnxruntime(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise ModelError(
            f"{path} is an exported model, which needs: pip install onnxruntime"
            " (with hanlattice[train], load it by torch: engine='torch')"
        ) from None
    return onnxruntime


def feeds(sentences: Sequence[Encoded]) -> Feeds:
    """Sentences padded to the longest, as the graphs of :mod:`hanlattice.export.graph` take them.

    ``n_chars`` is the length of each. In a sentence words of common lengths come first. A graph has no empty axes:
    there is at least one place for a word of either kind, a common length besides 1, and the list of rare words
    ends with one that is none.
    """
    chars, n_chars = padded([s.chars for s in sentences])
    bigrams = _filled([s.bigrams for s in sentences], n_chars, chars.shape[1])
    words, head, tail, labels = (
        np.concatenate(rows)
        for rows in zip(*((s.words, s.head, s.tail, s.word_labels) for s in sentences), strict=True)
    )
    sentence = np.repeat(np.arange(len(sentences)), [len(s.words) for s in sentences])
    length = tail - head + 1
    counts = np.bincount(length, minlength=3)
    is_common = counts * COST_OF_A_WORD >= chars.size
    is_common[1:3] = True
    common, alone = np.flatnonzero(is_common), ~is_common[length]
    rare = np.union1d(length[alone], [1])
    into, n_common = _slots(sentence, ~alone, len(sentences), 0)
    others, n_rare = _slots(sentence, alone, len(sentences), n_common)
    into[alone] = others[alone]

    def placed(values: np.ndarray, empty: float = 0) -> np.ndarray:
        out = np.full((len(sentences), n_common + n_rare), empty, values.dtype)
        out[sentence, into] = values
        return out

    return {
        "chars": chars,
        "bigrams": bigrams,
        "n_chars": n_chars,
        "char_bias": np.where(np.arange(chars.shape[1]) < n_chars[:, None], 0, NOT_THERE).astype(np.float32),
        "words": placed(words),
        "head": placed(head),
        "tail": placed(tail),
        "labels": placed(labels),
        "word_bias": placed(np.zeros(len(words), np.float32), NOT_THERE),
        "common": common,
        "column": placed(np.searchsorted(common, length), 1)[:, :n_common],
        "rare": rare,
        "rare_column": np.append(np.searchsorted(rare, length[alone]), 0),
        "rare_sentence": np.append(sentence[alone], 0),
        "rare_head": np.append(head[alone], 0),
        "rare_place": placed(np.cumsum(alone) - 1, alone.sum())[:, n_common:],
    }


def padded(rows: Sequence[np.ndarray]) -> tuple[Int[np.ndarray, "B S"], Int[np.ndarray, "B"]]:
    """Rows of different length as one array, filled with 0 on the right, and their lengths."""
    lengths = np.array([len(row) for row in rows], np.int64)
    return _filled(rows, lengths, int(lengths.max(initial=0))), lengths


def _filled(rows: Sequence[np.ndarray], lengths: np.ndarray, width: int) -> Int[np.ndarray, "B S"]:
    out = np.zeros((len(rows), width), np.int64)
    out[np.arange(width) < lengths[:, None]] = np.concatenate(rows)
    return out


def _slots(sentence: np.ndarray, chosen: np.ndarray, n: int, first: int) -> tuple[np.ndarray, int]:
    """The place of each chosen word among those of its sentence, counted from ``first``; the most, at least 1."""
    counts = np.bincount(sentence[chosen], minlength=n)
    place = np.cumsum(chosen) - 1 - (np.cumsum(counts) - counts)[sentence] + first
    return place, max(int(counts.max(initial=0)), 1)

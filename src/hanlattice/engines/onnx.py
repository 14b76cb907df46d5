"""Exported models on ONNX Runtime: sentences in, spans out, without torch."""

import ctypes
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from hanlattice.decoders.structs.decoding import Potentials
from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import BATCH_SIZE, Encoded, Sentences
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.model.digests import digest
from hanlattice.model.folder import GRAPH, TAGS, WEIGHTS, ModelFolder
from hanlattice.spans import ScoredSpan

DECODERS = tuple(TAGS)  # that are read here
DIGEST = "weights"  # in the graph's metadata: what the weights were when it was exported

# What scoring one word by itself costs, in rows of a table of all distances for one query.
COST_OF_A_WORD = 40
# Characters and words that the graph reads at once: more of them leave the caches of a core.
NODES_AT_ONCE = 1024
# What is added to the scores of padding.
NOT_THERE = -1e9

Feeds = dict[str, np.ndarray]

_NONE_OF_THEM = np.zeros(0, np.int64)
_NOTHING = Encoded(*(np.zeros(1, np.int64),) * 2, *(_NONE_OF_THEM,) * 4, "一")


class ExportedTagger:
    """The encoder and the emissions of a model as a graph, and its tags decoded here.

    ``threads``: of a single call; the runtime's own choice where it is 0.

    Raises:
        EngineError: the model is not exported, or ONNX Runtime is not installed.
        ModelError: the graph or the weights are broken, or not of one model.
    """

    nested = False

    def __init__(self, folder: ModelFolder, *, threads: int = 0):
        for convention in folder.conventions:
            if (name := folder.decoder(convention).name) not in DECODERS:
                raise EngineError(f"{folder.path}: decoder {name!r} cannot be read from a graph")
        if not (folder.path / GRAPH).is_file():
            raise EngineError(f"{folder.path} is not exported: hanlattice export {folder.path} FOLDER")
        self._path, self._threads = folder.path, threads
        self._session = _session(folder.path, threads)
        made_for = self._session.get_modelmeta().custom_metadata_map.get(DIGEST)
        if made_for != digest(folder.path / WEIGHTS):
            raise ModelError(f"{folder.path}: {GRAPH} and {WEIGHTS} are not of one model; export it again")
        self._inputs = [given.name for given in self._session.get_inputs()]
        if unknown := set(self._inputs) - set(feeds([_NOTHING])):
            raise ModelError(
                f"{folder.path / GRAPH} asks for {min(unknown)!r}, unknown here; export the model again"
            )
        weights = folder.weights()
        self._conventions = folder.conventions
        self._tags = {convention: folder.tags(weights, convention) for convention in self._conventions}
        if len(self._conventions) > 1 and "convention" not in self._inputs:
            raise ModelError(f"{folder.path / GRAPH} knows of one convention only; export the model again")

        if threads != 1:  # a session of one thread has none of its own
            renew_after_fork(self)

    def is_nested(self, convention: str = "") -> bool:
        """Tags cannot express spans inside spans."""
        return False

    def eval(self) -> None:
        """It only reads."""

    def renew(self) -> None:
        """Forget the session, whose threads are of another process; the next call opens one.

        It is never freed here: it would wait for them. So does ONNX Runtime itself where a forked process ends
        other than by ``os._exit``, as those of ``multiprocessing`` do.
        """
        _abandon(self._session)
        self._session = None

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> list[list[ScoredSpan]]:
        """Spans of each sentence, by a convention; the default one where it is empty.

        At most ``batch_size`` sentences of like size, and `NODES_AT_ONCE` nodes, are read together.
        """
        found: list[list[ScoredSpan]] = [[] for _ in sentences]
        for rows in sentences.by_size(batch_size):
            spans_of_rows = self._found([sentences[i] for i in rows], convention)
            for i, spans in zip(rows, spans_of_rows, strict=True):
                found[i] = spans
        return found

    def _found(self, sentences: Sequence[Encoded], convention: str) -> list[list[ScoredSpan]]:
        emissions, n_chars = zip(*(self.emissions(some, convention) for some in _cut(sentences)), strict=True)
        width = max(scores.shape[1] for scores in emissions)
        padded = [np.pad(scores, ((0, 0), (0, width - scores.shape[1]), (0, 0))) for scores in emissions]
        rules, (start, pair, end) = self._tags[convention]
        return rules.best(Potentials(np.concatenate(padded), pair, start, end, np.concatenate(n_chars)))

    def emissions(
        self, sentences: Sequence[Encoded], convention: str = ""
    ) -> tuple[Float[np.ndarray, "B N Y"], Int[np.ndarray, "B"]]:
        """Scores of tags, padded, and how many characters each sentence has."""
        given = feeds(sentences, self._conventions.index(convention))
        if self._session is None:
            self._session = _session(self._path, self._threads)
        found = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        most = max(len(rules.names) for rules, _ in self._tags.values())
        if found.shape[-1] != most:
            raise ModelError(f"{self._path / GRAPH} has {found.shape[-1]} tags, not {most}; export the model again")
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


def _session(folder: Path, threads: int) -> Any:
    """
    Raises:
        EngineError: ONNX Runtime is not installed.
        ModelError: the graph is broken.
    """
    runtime = _onnxruntime(folder)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = False  # which would keep a plan of memory for every size of a batch
    try:
        return runtime.InferenceSession(str(folder / GRAPH), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's own kinds of errors have no common name
        reason = str(error).splitlines()[0]
        raise ModelError(f"{folder / GRAPH} cannot be run ({reason}); export the model again") from None


def _abandon(thing: object) -> None:
    """Count one more user, who never lets go."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _onnxruntime(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise EngineError(
            f"{path} is an exported model, which needs: pip install onnxruntime"
            " (with hanlattice[train], load it by torch: engine='torch')"
        ) from None
    return onnxruntime


def feeds(sentences: Sequence[Encoded], convention: int = 0) -> Feeds:
    """Sentences padded to the longest, as the graphs of :mod:`hanlattice.engines.graph` take them, to be read by a
    convention; the default one is 0.

    ``n_chars`` is the length of each. In a sentence words of common lengths come first. A graph has no empty axes:
    there is at least one place for a word of either kind, a common length besides 1, and the list of rare words
    ends with one that is none.
    """
    chars, n_chars = padded([s.chars for s in sentences])
    bigrams = _filled([s.bigrams for s in sentences], n_chars, chars.shape[1])
    words, head, end, labels = (
        np.concatenate(rows)
        for rows in zip(*((s.words, s.start, s.end, s.word_labels) for s in sentences), strict=True)
    )
    sentence = np.repeat(np.arange(len(sentences)), [len(s.words) for s in sentences])
    length = end - head
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
        "tail": placed(end - 1),
        "labels": placed(labels),
        "word_bias": placed(np.zeros(len(words), np.float32), NOT_THERE),
        "common": common,
        "column": placed(np.searchsorted(common, length), 1)[:, :n_common],
        "rare": rare,
        "rare_column": np.append(np.searchsorted(rare, length[alone]), 0),
        "rare_sentence": np.append(sentence[alone], 0),
        "rare_head": np.append(head[alone], 0),
        "rare_place": placed(np.cumsum(alone) - 1, alone.sum())[:, n_common:],
        "convention": np.array([convention]),
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

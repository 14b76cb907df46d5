"""The ONNX engine: an exported model run by ONNX Runtime, without torch.

The graph computes emissions from padded ids (see :mod:`hanlattice.engines.graph`); tags are decoded here.
"""

import ctypes
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from hanlattice.decoders.structs.decoding import Potentials
from hanlattice.engines.predicting import PredictingEngine
from hanlattice.engines.shapes import check_rows
from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import BATCH_SIZE, Encoded, Sentences
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.model.digests import digest
from hanlattice.model.folder import DEFAULT, GRAPH, TAGS, WEIGHTS, ModelFolder, naming
from hanlattice.spans import ScoredSpan

DECODERS = tuple(TAGS)  # decoders that this engine can run
DIGEST = "weights"  # key in the graph's metadata: the digest of the weights that it was exported from

# A word length is common if its words, times this number, are at least as many as the characters with padding.
# Scoring one word with its own encodings costs about as much as this many rows of the table of all distances.
COST_OF_A_WORD = 40
# Largest number of characters and words, with padding, in one run of the graph. With more of them, the activations
# do not fit into the cache of a core.
NODES_AT_ONCE = 1024
# Added to the attention scores of padding.
MASKED = -1e9

Feeds = dict[str, np.ndarray]

_NO_WORDS = np.zeros(0, np.int64)
# A sentence of one unknown character without words: it shows the names of the inputs that `feeds` makes.
_ONE_CHARACTER = Encoded(*(np.zeros(1, np.int64),) * 2, *(_NO_WORDS,) * 4, "一")


class ExportedTagger(PredictingEngine):
    """A model whose encoder and emissions are an ONNX graph, and whose tags are decoded here.

    Args:
        folder: the model.
        threads: threads of one call; 0 leaves the number to ONNX Runtime.

    Raises:
        EngineError: the model is not exported, or was exported by another version, or ONNX Runtime is missing.
        ModelError: the graph or the weights are broken, or the graph belongs to other weights.
    """

    def __init__(self, folder: ModelFolder, *, threads: int = 0):
        for convention in folder.conventions:
            if (name := folder.decoder(convention).name) not in DECODERS:
                raise EngineError(f"{folder.path}: ONNX Runtime cannot run the decoder {name!r}")
        if not (folder.path / GRAPH).is_file():
            named = "default" if folder.path == DEFAULT else folder.path
            raise EngineError(
                f"{folder.path} is not exported for ONNX Runtime; run: hanlattice export FOLDER --model {named}"
                " (with: pip install 'hanlattice[export]')"
            )
        weights = folder.weights()  # first, so that the error for broken weights does not blame the graph
        self._path, self._threads = folder.path, threads
        self._session = _session(folder.path, threads)
        made_for = self._session.get_modelmeta().custom_metadata_map.get(DIGEST)
        if made_for != digest(folder.path / WEIGHTS):
            raise ModelError(f"{folder.path}: {GRAPH} was not exported from this {WEIGHTS}; export the model again")
        self._inputs = [given.name for given in self._session.get_inputs()]
        if unknown := set(self._inputs) - set(feeds([_ONE_CHARACTER])):
            raise EngineError(
                f"{folder.path / GRAPH} is from another version: its input {min(unknown)!r} is unknown; export the"
                " model again"
            )
        with naming(folder):
            check_rows(weights, folder.vocabulary)
        self._conventions = folder.conventions
        self._tags = {convention: folder.tags(weights, convention) for convention in self._conventions}
        if len(self._conventions) > 1 and "convention" not in self._inputs:
            raise EngineError(
                f"{folder.path / GRAPH} is from another version: it has one convention only; export the model again"
            )
        if threads != 1:  # a session with one thread starts no threads
            renew_after_fork(self)

    def renew(self) -> None:
        """Drop the session in a forked process, as its threads do not exist there; the next call opens another.

        The session is never freed: freeing it would wait for its threads. For the same reason ONNX Runtime hangs
        if a forked process ends in any way but ``os._exit``; ``multiprocessing`` ends its processes with it.
        """
        _abandon(self._session)
        self._session = None

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> list[list[ScoredSpan]]:
        """Spans of each sentence by an annotation convention; an empty name is the default one.

        One run of the graph gets at most ``batch_size`` sentences of similar size, and at most `NODES_AT_ONCE`
        nodes unless one sentence has more.
        """
        return sentences.in_batches(batch_size, partial(self._found, convention=convention))

    def _found(self, sentences: Sequence[Encoded], convention: str) -> list[list[ScoredSpan]]:
        emissions, n_chars = zip(*(self.emissions(some, convention) for some in _cut(sentences)), strict=True)
        width = max(scores.shape[1] for scores in emissions)
        padded = [np.pad(scores, ((0, 0), (0, width - scores.shape[1]), (0, 0))) for scores in emissions]
        rules, (start, pair, end) = self._tags[convention]
        return rules.best(Potentials(np.concatenate(padded), pair, start, end, np.concatenate(n_chars)))

    def emissions(
        self, sentences: Sequence[Encoded], convention: str = ""
    ) -> tuple[Float[np.ndarray, "B N Y"], Int[np.ndarray, "B"]]:
        """Scores of tags, padded to the longest sentence, and the number of characters of each sentence.

        Raises:
            ModelError: the graph cannot be run, or its output has another shape or type, or is not finite.
        """
        given = feeds(sentences, self._conventions.index(convention))
        found = self._run({name: given[name] for name in self._inputs})
        most = max(len(rules.names) for rules, _ in self._tags.values())
        expected = (*given["chars"].shape, most)
        if found.dtype != np.float32 or found.shape != expected:
            kind = f"{found.dtype} of the shape {found.shape}, not float32 of the shape {expected}"
            raise ModelError(f"{self._path / GRAPH} gives {kind}; export the model again")
        if not np.isfinite(found).all():
            raise ModelError(f"{self._path / GRAPH} gives numbers that are not finite; export the model again")
        return found[..., : len(self._tags[convention][0].names)], given["n_chars"]

    def _run(self, given: Feeds) -> np.ndarray:
        """The only output of the graph.

        Raises:
            ModelError: the graph has several outputs or none, or it cannot be run on this input.
        """
        if self._session is None:
            self._session = _session(self._path, self._threads)
        try:
            (found,) = self._session.run(None, given)
        except Exception as error:  # the errors of ONNX Runtime have no common base class
            reason = str(error).splitlines()[0]
            raise ModelError(f"{self._path / GRAPH} cannot be run ({reason}); export the model again") from None
        return np.asarray(found)


def _cut(sentences: Sequence[Encoded]) -> Iterator[Sequence[Encoded]]:
    """Groups of consecutive sentences with at most `NODES_AT_ONCE` nodes including padding, or one sentence."""
    first, widest = 0, 0
    for i, sentence in enumerate(sentences):
        widest = max(widest, sentence.n_nodes)
        if i > first and (i + 1 - first) * widest > NODES_AT_ONCE:
            yield sentences[first:i]
            first, widest = i, sentence.n_nodes
    yield sentences[first:]


def _session(folder: Path, threads: int) -> Any:
    """A session of ONNX Runtime for the graph of a folder.

    Raises:
        EngineError: ONNX Runtime is not installed.
        ModelError: the graph is broken.
    """
    runtime = _onnxruntime(folder)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = False  # it would keep a memory plan for every shape of a batch
    try:
        return runtime.InferenceSession(str(folder / GRAPH), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the errors of ONNX Runtime have no common base class
        reason = str(error).splitlines()[0]
        raise ModelError(f"{folder / GRAPH} cannot be run ({reason}); export the model again") from None


def _abandon(thing: object) -> None:
    """Add a reference that is never removed, so that the object is never freed."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _onnxruntime(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise EngineError(
            f"ONNX Runtime, which runs {path / GRAPH}, is not installed: pip install 'hanlattice[onnx]'"
        ) from None
    return onnxruntime


def feeds(sentences: Sequence[Encoded], convention: int = 0) -> Feeds:
    """The inputs of a graph of :mod:`hanlattice.engines.graph`: sentences padded to the longest.

    ``convention`` is the index of a convention, 0 for the default one. ``n_chars`` is the length of each sentence.
    In each sentence, the words with common lengths come first; see :class:`hanlattice.engines.graph.FlatGraph`. No
    axis of a graph may be empty. So each sentence has at least one column for either kind of word, ``common`` has
    at least the lengths 1 and 2, and the list of rare words ends with a dummy word.
    """
    chars, n_chars = padded([s.chars for s in sentences])
    bigrams = _padded_to([s.bigrams for s in sentences], n_chars, chars.shape[1])
    words, head, end, labels = (
        np.concatenate(rows)
        for rows in zip(*((s.words, s.start, s.end, s.word_labels) for s in sentences), strict=True)
    )
    sentence = np.repeat(np.arange(len(sentences)), [len(s.words) for s in sentences])
    length = end - head
    counts = np.bincount(length, minlength=3)
    is_common = counts * COST_OF_A_WORD >= chars.size
    is_common[1:3] = True
    # ``alone`` marks the words with rare lengths; ``into`` is the column of each word in the padded arrays.
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
        "char_bias": np.where(np.arange(chars.shape[1]) < n_chars[:, None], 0, MASKED).astype(np.float32),
        "words": placed(words),
        "head": placed(head),
        "tail": placed(end - 1),
        "labels": placed(labels),
        "word_bias": placed(np.zeros(len(words), np.float32), MASKED),
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
    """Rows of different lengths as one array, padded with 0 on the right, and their lengths."""
    lengths = np.array([len(row) for row in rows], np.int64)
    return _padded_to(rows, lengths, int(lengths.max(initial=0))), lengths


def _padded_to(rows: Sequence[np.ndarray], lengths: np.ndarray, width: int) -> Int[np.ndarray, "B S"]:
    out = np.zeros((len(rows), width), np.int64)
    out[np.arange(width) < lengths[:, None]] = np.concatenate(rows)
    return out


def _slots(sentence: np.ndarray, chosen: np.ndarray, n: int, first: int) -> tuple[np.ndarray, int]:
    """A column for each chosen word, and the number of columns.

    The chosen words of each sentence are numbered from ``first``. The number of columns is the largest number of
    chosen words in a sentence, and at least 1. Results for words that are not chosen have no meaning.
    """
    counts = np.bincount(sentence[chosen], minlength=n)
    place = np.cumsum(chosen) - 1 - (np.cumsum(counts) - counts)[sentence] + first
    return place, max(int(counts.max(initial=0)), 1)

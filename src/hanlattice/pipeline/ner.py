"""``NER``: text in, documents out."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from hanlattice.config.settings import Config
from hanlattice.document import Document, Word
from hanlattice.errors import HanlatticeError
from hanlattice.inputs.encoded import BATCH_SIZE
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline.engine import Engine, WindowReader
from hanlattice.pipeline.entities import entities_of_texts, with_patterns
from hanlattice.pipeline.overrides import (
    Overrides,
    patterns_or_none,
    refuse_unknown_blocked,
    refuse_unknown_labels,
    refuse_wrong_types,
)
from hanlattice.pipeline.reading import Reading
from hanlattice.rules import Blocked, Forced
from hanlattice.text.edges import Edges
from hanlattice.text.normalise import Normaliser

if TYPE_CHECKING:
    from hanlattice.patterns import Patterns
    from hanlattice.tagger import Tagger

LOOK_AHEAD = 16
"""Number of batches taken from a stream at once, so that an engine can batch texts of similar length."""

_NONE = Overrides()


class NER:
    """A model for named entity recognition: an engine with its vocabulary, settings and lexicon.

    ``ner(text)`` gives a :class:`Document`, ``ner(texts)`` a list of documents for a list or tuple of texts, and an
    iterator of documents for any other iterable. The lexicon is live:
    edits of ``ner.lexicon`` take effect at the next call. ``convention`` is the annotation convention of the
    entities; an empty one is the model's default. ``patterns`` are the regular entities that every call also finds;
    None for none.

    ``ner.base`` has the words of the model itself, without the edits of a user; it is not matched.

    A model that was loaded from a folder can be pickled and copied. The pickle holds the path of the folder and the
    lexicon if it was edited, so the folder has to be there when it is unpickled.

    Raises:
        ConfigError: the model does not have the convention.
    """

    def __init__(
        self, engine: Engine, vocabulary: Vocabulary, lexicon: Lexicon, config: Config, *, convention: str = ""
    ):
        engine.eval()
        self.engine, self.vocabulary, self.lexicon, self.config = engine, vocabulary, lexicon, config
        self.convention = convention or vocabulary.convention
        vocabulary.labels_of(self.convention)
        self.base = lexicon.copy()
        self.normaliser = Normaliser.of(config.text)
        self.patterns: Patterns | None = None
        self.reader: WindowReader = Reader(vocabulary, min_word_length=config.lexicon.min_word_length, base=lexicon)
        self._overrides: ContextVar[Overrides] = ContextVar("overrides", default=_NONE)
        self._known_conventions: dict[str, tuple[str, tuple[str, ...], Edges]] = {}
        self._reopen: Callable[[], NER] | None = None
        self._state_when_opened: object = None
        self.folder: Path | None = None  # the folder it was loaded from
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Create the lock; called again in a forked process, where another thread may have held the old lock."""
        self._lock = threading.Lock()

    def opened_by(self, reopen: "Callable[[], NER]", folder: Path | None = None) -> "NER":
        """Remember ``reopen``, which opens the same model again when this one is copied or unpickled.

        ``folder`` is the folder that it was loaded from.
        """
        self._reopen, self._state_when_opened, self.folder = reopen, self.lexicon.state, folder
        return self

    @property
    def lexicon_is_edited(self) -> bool:
        """Whether the lexicon is not the one that the model was loaded with."""
        return self.lexicon.state is not self._state_when_opened

    def __reduce__(self) -> tuple[Any, ...]:
        if self._reopen is None:
            raise HanlatticeError(
                "an NER that was not loaded from a folder cannot be copied or pickled; save its tagger with"
                " hanlattice.model.save_model, and load it"
            )
        lexicon = self.lexicon if self.lexicon_is_edited else None
        return _reopened, (self._reopen, lexicon, self.patterns, self.convention)

    def _facts(self) -> list[tuple[str, str]]:
        folder = "" if self.folder is None else str(self.folder)
        return [
            ("model", folder),
            ("engine", type(self.engine).__name__),
            ("convention", self.active_convention),
            ("labels", ", ".join(self.labels)),
            ("lexicon", f"{len(self.lexicon):,} words"),
        ]

    def __repr__(self) -> str:
        return f"<NER {', '.join(f'{name}: {value}' for name, value in self._facts() if value)}>"

    def _repr_html_(self) -> str:
        """What the model is, as a table for notebooks."""
        from hanlattice.drawing.html import fragment, table

        return fragment(table(self._facts(), heading=False))

    @property
    def labels(self) -> tuple[str, ...]:
        """The entity labels of the active convention."""
        return self.vocabulary.labels_of(self.active_convention)

    @property
    def conventions(self) -> tuple[str, ...]:
        """The annotation conventions of the model, its default first."""
        return (self.vocabulary.convention, *self.vocabulary.conventions)

    @property
    def _labels_by_convention(self) -> dict[str, tuple[str, ...]]:
        return {name: self.vocabulary.labels_of(name) for name in self.conventions}

    @property
    def active_convention(self) -> str:
        """The convention of the entities: the one given to :meth:`using`, else the one chosen when loading."""
        return self._overrides.get().convention or self.convention

    @property
    def active_lexicon(self) -> Lexicon:
        """The lexicon that is matched: the one given to :meth:`using`, else ``lexicon``."""
        given = self._overrides.get().lexicon
        return self.lexicon if given is None else given

    @property
    def active_patterns(self) -> "Patterns | None":
        """The patterns whose entities are found too: of :meth:`using`, else those chosen when loading."""
        return self._patterns_of(self._overrides.get())

    def _patterns_of(self, overrides: Overrides) -> "Patterns | None":
        return self.patterns if overrides.patterns is None else overrides.patterns or None

    @property
    def head(self) -> str:
        """The active convention in the form that an engine expects: empty for the model's default."""
        return self._head_of(self.active_convention)

    def _head_of(self, convention: str) -> str:
        return "" if convention == self.vocabulary.convention else convention

    @property
    def tagger(self) -> "Tagger":
        """The PyTorch modules of the model.

        Raises:
            HanlatticeError: the model runs on an engine without torch.
        """
        if not hasattr(self.engine, "decoder"):
            raise HanlatticeError("this engine has no PyTorch modules; load the model with engine='torch'")
        return cast("Tagger", self.engine)

    @overload
    def __call__(self, text: str) -> Document: ...  # type: ignore[overload-overlap]  # a str also iterates
    @overload
    def __call__(self, text: list[str] | tuple[str, ...]) -> list[Document]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, text: Iterable[str]) -> Iterator[Document]: ...
    def __call__(self, text: str | Iterable[str]) -> Document | list[Document] | Iterator[Document]:
        if isinstance(text, str):
            return self._predict([text], self._overrides.get(), BATCH_SIZE)[0]
        if isinstance(text, list | tuple):
            return list(self.pipe(text))
        return self.pipe(text)

    @overload
    def pipe(
        self, texts: Iterable[str], *, as_tuples: Literal[False] = False, batch_size: int = BATCH_SIZE
    ) -> Iterator[Document]: ...
    @overload
    def pipe(
        self, texts: Iterable[tuple[str, Any]], *, as_tuples: Literal[True], batch_size: int = BATCH_SIZE
    ) -> Iterator[tuple[Document, Any]]: ...
    def pipe(
        self, texts: Iterable[Any], *, as_tuples: bool = False, batch_size: int = BATCH_SIZE
    ) -> Iterator[Document] | Iterator[tuple[Document, Any]]:
        """Predict a stream of texts; the documents come in the same order.

        Args:
            texts: any iterable. ``16 * batch_size`` texts are taken from it at a time.
            as_tuples: the stream holds pairs ``(text, context)``, and the result pairs ``(document, context)``.
            batch_size: texts, or windows of long texts, that the engine reads together; see :meth:`Engine.find`.

        Raises:
            HanlatticeError: the batch size is not an integer of at least 1, or an item is no text (or no
                pair).
        """
        if not isinstance(batch_size, int) or batch_size < 1:
            raise HanlatticeError(f"batch_size must be at least 1, not {batch_size!r}")
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise HanlatticeError(f"texts must be an iterable of str, such as a list, not {_shown(texts)}")
        if not as_tuples:
            return self._stream(texts, batch_size, self._overrides.get())
        return self._stream_pairs(texts, batch_size, self._overrides.get())

    def _stream(self, texts: Iterable[str], batch_size: int, overrides: Overrides) -> Iterator[Document]:
        source = iter(texts)
        while ahead := list(islice(source, batch_size * LOOK_AHEAD)):
            yield from self._predict(ahead, overrides, batch_size)

    def _stream_pairs(
        self, pairs: Iterable[tuple[str, Any]], batch_size: int, overrides: Overrides
    ) -> Iterator[tuple[Document, Any]]:
        source = iter(pairs)
        while ahead := list(islice(source, batch_size * LOOK_AHEAD)):
            for pair in ahead:
                if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                    raise HanlatticeError(f"as_tuples needs pairs (text, context), not {_shown(pair)}")
            documents = self._predict([text for text, _ in ahead], overrides, batch_size)
            yield from zip(documents, (context for _, context in ahead), strict=True)

    @contextmanager
    def using(
        self,
        *,
        lexicon: Lexicon | None = None,
        force: Mapping[str, str] | None = None,
        block: Mapping[str, str | Collection[str] | None] | None = None,
        threshold: float | None = None,
        convention: str | None = None,
        patterns: "Patterns | bool | str | Iterable[str] | None" = None,
    ) -> Iterator["NER"]:
        """Within the ``with`` block, use another lexicon or convention, or change which entities are returned.

        This affects the current thread or asyncio task only. Blocks can be nested; for each option the inner one
        wins.

        Args:
            lexicon: matched instead of the model's own. Its words are not normalised, unless it was made with
                ``rewrite=ner.lexicon.rewrite``.
            force: maps texts that are always an entity to their labels.
            block: maps a text to the label or labels that it never has as an entity; None means all labels. The
                text of a discontinuous entity is that of its fragments, concatenated.
            threshold: entities with a lower score are left out.
            convention: annotation convention of the entities; see :attr:`conventions`.
            patterns: regular entities to find too, in any form that :func:`hanlattice.patterns.patterns_of` takes;
                False for none. Forced texts win over them, and ``block`` applies to them.

        Raises:
            ConfigError: the model does not have the convention, or there is no such kind of pattern.
            DataError: the file of patterns cannot be read.
            HanlatticeError: an option has a wrong type or is out of range; neither the convention nor a pattern in
                use has a label of ``force``, also of an outer block; or no entity has a label of ``block``.
        """
        refuse_wrong_types(lexicon, force, block, threshold)
        active, outer = convention or self.active_convention, self._overrides.get()
        forces = outer.force.labels if force is None and outer.force is not None else force
        regular = patterns_or_none(patterns)
        in_use = None if patterns is False else regular or self.active_patterns
        refuse_unknown_labels(forces or {}, self.vocabulary.labels_of(active), active, in_use)
        refuse_unknown_blocked(block or {}, self._labels_by_convention, regular or self.active_patterns, active)
        given: dict[str, Any] = {
            "lexicon": lexicon, "threshold": threshold, "convention": convention or None,
            "force": None if force is None else Forced(force, self._plain),
            "block": None if block is None else Blocked(block, self._plain),
            "patterns": None if patterns is None else regular or False,
        }  # fmt: skip
        token = self._overrides.set(replace(outer, **{k: v for k, v in given.items() if v is not None}))
        try:
            yield self
        finally:
            self._overrides.reset(token)

    def _plain(self, texts: Sequence[str]) -> Sequence[str]:
        """The normalised texts."""
        return self.normaliser.all(texts).texts

    def _predict(self, texts: Sequence[str], overrides: Overrides, batch_size: int) -> list[Document]:
        for text in texts:
            if not isinstance(text, str):
                raise HanlatticeError(f"a text must be a str, not {_shown(text)}; replace missing texts by ''")
        lexicon = self.lexicon if overrides.lexicon is None else overrides.lexicon
        head, labels, edges = self._of_convention(overrides.convention or self.convention)
        read_words = partial(self._words, overrides)
        reading = Reading(texts, self.normaliser, self.config.text, lexicon, read_words, batch_size)
        with self._lock:  # the reader caches rows of the lexicon, and a module may hold scratch memory
            reading.sentences = self.reader.read(reading.windows.texts, lexicon, labels)
            found = self.engine.find(reading.sentences, head, batch_size=batch_size)
        nested = self.engine.is_nested(head)
        entities = entities_of_texts(reading, found, overrides, edges=edges, nested=nested)
        if patterns := self._patterns_of(overrides):
            normaliser = self.normaliser
            for i, (text, plain) in enumerate(zip(texts, reading.normalised, strict=True)):
                own = entities.get(i, ())
                entities[i] = with_patterns(
                    text, plain, own, patterns, overrides, normaliser=normaliser, nested=nested
                )
        return [Document(text, entities.get(i, ()), source=reading, place=i) for i, text in enumerate(texts)]

    def _words(self, overrides: Overrides, texts: Sequence[str]) -> list[tuple[Word, ...]]:
        """The words of texts, by the convention for words and the lexicon of ``overrides``."""
        from hanlattice.words import CONVENTION, words_of

        self.vocabulary.labels_of(CONVENTION)
        only = Overrides(lexicon=overrides.lexicon, convention=CONVENTION, patterns=False)
        found = self._predict(texts, only, max(len(texts), 1))
        return [words_of(document.text, document.entities) for document in found]

    def _of_convention(self, convention: str) -> tuple[str, tuple[str, ...], Edges]:
        """The convention in the form that an engine expects, its labels, and which edges its entities cannot have.

        Raises:
            UnknownConvention: the model was not trained on the convention.
        """
        found = self._known_conventions.get(convention)
        if found is None:
            settings = self.config.conventions.get(convention)  # None for the default convention
            edges = self.config.prediction.edges if settings is None else settings.edges
            found = self._head_of(convention), self.vocabulary.labels_of(convention), edges
            self._known_conventions[convention] = found
        return found


def _shown(thing: object) -> str:
    """A value of a wrong type, for an error message."""
    text = repr(thing)
    return f"{type(thing).__name__} ({text if len(text) <= 40 else text[:39] + '…'})"


def _reopened(
    reopen: Callable[[], NER], lexicon: Lexicon | None, patterns: "Patterns | None" = None, convention: str = ""
) -> NER:
    """The model that ``reopen`` opens, with another lexicon and convention if they are given; used to unpickle."""
    ner = reopen()
    ner.patterns = patterns
    ner.convention = convention or ner.convention
    if lexicon is not None:
        ner.lexicon = lexicon
    return ner

"""A spaCy component: ``nlp.add_pipe("hanlattice")`` sets ``doc.ents`` and a group of spans.

hanlattice counts characters and spaCy counts tokens. An entity that starts or ends inside a token is extended to
whole tokens, shrunk to them, or left out, by the setting ``alignment_mode``. The first such entity causes one
warning.
"""

import json
import shutil
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Literal, get_args

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from hanlattice.api import EngineName, load
from hanlattice.atomic import atomic_write
from hanlattice.document import Entity
from hanlattice.errors import ConfigError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.edits import edited, save_edits
from hanlattice.model import digests
from hanlattice.model.folder import DEFAULT, EDITS, LEXICON, WEIGHTS
from hanlattice.model.saving import save
from hanlattice.pipeline import NER

Alignment = Literal["expand", "contract", "strict"]
SETTINGS, MODEL = "hanlattice.json", "model"
BATCH = 64

DEFAULTS: dict[str, Any] = {
    "model": None,
    "convention": "",
    "engine": "auto",
    "threads": 0,
    "threshold": 0.0,
    "alignment_mode": "expand",
    "spans_key": "hanlattice",
    "overwrite_ents": True,
}


@Language.factory("hanlattice", assigns=["doc.ents", "doc.spans"], default_config=DEFAULTS)  # type: ignore[untyped-decorator, unused-ignore]
def create(
    nlp: Language,
    name: str,
    model: str | None,
    convention: str,
    engine: str,
    threads: int,
    threshold: float,
    alignment_mode: str,
    spans_key: str | None,
    overwrite_ents: bool,
) -> "HanlatticeComponent":
    """The component from the settings of a pipeline; see :class:`HanlatticeComponent`."""
    settings = {
        "model": model,
        "convention": convention,
        "engine": engine,
        "threads": threads,
        "threshold": threshold,
        "alignment_mode": alignment_mode,
        "spans_key": spans_key,
        "overwrite_ents": overwrite_ents,
    }
    return HanlatticeComponent(settings)


class HanlatticeComponent:
    """Adds the entities of a hanlattice model to docs.

    ``doc.spans[spans_key]`` receives all entities, also nested ones, and their scores in ``attrs["scores"]``.
    ``doc.ents`` receives those that do not overlap; of two overlapping ones the longer.

    Settings:
        model: folder of a model, or the name of a packaged one as in :func:`hanlattice.load`; None for the default.
        convention, engine, threads: as in :func:`hanlattice.load`.
        threshold: entities with a lower score are left out.
        alignment_mode: what happens to an entity that starts or ends inside a token: ``expand`` it to the whole
            token, ``contract`` it to the tokens inside, or leave it out (``strict``).
        spans_key: name of the group of spans; None for no group.
        overwrite_ents: whether entities of earlier components are replaced; otherwise they are kept, and new ones
            that overlap them are added to the group only.

    Raises:
        ConfigError: a setting is unknown or out of range.
        ModelError: the model cannot be loaded.
    """

    def __init__(self, settings: dict[str, Any]):
        unknown = sorted(settings.keys() - DEFAULTS.keys())
        if unknown:
            raise ConfigError(
                f"hanlattice component: unknown setting {unknown[0]!r}; there are {', '.join(DEFAULTS)}"
            )
        self.settings = {**DEFAULTS, **settings}
        if self.settings["alignment_mode"] not in get_args(Alignment):
            modes = ", ".join(map(repr, get_args(Alignment)))
            raise ConfigError(f"alignment_mode must be one of {modes}, not {self.settings['alignment_mode']!r}")
        if not 0 <= self.settings["threshold"] <= 1:
            raise ConfigError(f"threshold must be between 0 and 1, not {self.settings['threshold']}")
        self._warned = False
        self._ner: NER | None = None
        model = self.settings["model"]
        if model is None or Path(model).exists():
            self._ner = self._opened(model)

    def _opened(self, model: str | Path | None) -> NER:
        engine: EngineName = self.settings["engine"]
        return load(model, convention=self.settings["convention"], engine=engine, threads=self.settings["threads"])

    @property
    def ner(self) -> NER:
        """The model, whose lexicon may be edited.

        Raises:
            ModelError: the folder in the settings does not exist. This is not an error before the first text, since
                spaCy makes a component from its settings before it reads the component from disk.
        """
        if self._ner is None:
            self._ner = self._opened(self.settings["model"])
        return self._ner

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = BATCH) -> Iterator[Doc]:
        """Add entities to a stream of docs."""
        with self.ner.using(threshold=self.settings["threshold"]):
            found = self.ner.pipe(((doc.text, doc) for doc in stream), as_tuples=True, batch_size=batch_size)
        for document, doc in found:
            self._set(doc, document.entities)
            yield doc

    def _set(self, doc: Doc, entities: Sequence[Entity]) -> None:
        pairs = [(span, e.score or 0.0) for e in entities if (span := self._aligned(doc, e)) is not None]
        spans = [span for span, _ in pairs]
        key = self.settings["spans_key"]
        if key is not None:
            doc.spans[key] = spans
            doc.spans[key].attrs["scores"] = np.array([score for _, score in pairs], np.float32)
        earlier = () if self.settings["overwrite_ents"] else doc.ents
        taken = {token.i for span in earlier for token in span}
        free = [span for span in spans if taken.isdisjoint(range(span.start, span.end))]
        doc.set_ents(sorted(chain(earlier, filter_spans(free))))

    def _aligned(self, doc: Doc, entity: Entity) -> Span | None:
        """The tokens of an entity, or None if it is left out; a discontinuous entity covers its gaps."""
        exact = doc.char_span(entity.start, entity.end, entity.label, alignment_mode="strict")
        if exact is not None:
            return exact
        mode = self.settings["alignment_mode"]
        self._warn(entity, mode)
        return doc.char_span(entity.start, entity.end, entity.label, alignment_mode=mode) or None

    def _warn(self, entity: Entity, mode: str) -> None:
        """Warn at the first entity that does not fit the tokens, and only then."""
        if self._warned:
            return
        self._warned = True
        done = {"expand": "extended to whole tokens", "contract": "shrunk to whole tokens", "strict": "left out"}
        warnings.warn(
            f"the docs are tokenised differently: {entity.text!r} at characters {entity.start} to {entity.end} does"
            f" not fit the tokens; such entities are {done[mode]} (alignment_mode={mode!r}). Tokens of single"
            " characters, as in spacy.blank('zh'), fit every entity",
            stacklevel=2,
        )

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write settings and model to a folder. The packaged model is named by its digest and not copied."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {"settings": self.settings}
        packaged = self.ner.folder == DEFAULT
        if packaged:
            state["packaged"] = digests.digest(DEFAULT / WEIGHTS)
            self._write_lexicon(path)
        if packaged or self.ner.folder != path / MODEL or self.ner.lexicon_is_edited:
            self._replace_model(path / MODEL, packaged)
        with atomic_write(path / SETTINGS) as stream:
            json.dump(state, stream, ensure_ascii=False, indent=1)

    def _replace_model(self, folder: Path, packaged: bool) -> None:
        """Write the model to ``folder``, unless it is the packaged one, in place of the model that is there."""
        with TemporaryDirectory(dir=folder.parent, prefix=".old-") as old:
            if packaged and folder.exists():
                folder.rename(Path(old) / MODEL)
            elif not packaged:
                draft = save(self.ner, Path(old) / "new")
                if folder.exists():
                    folder.rename(Path(old) / MODEL)
                draft.rename(folder)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "HanlatticeComponent":
        """Read what :meth:`to_disk` wrote.

        Raises:
            ModelError: the folder is broken, or was written with another version of the packaged model.
        """
        path = Path(path)
        try:
            state = json.loads((path / SETTINGS).read_text("utf-8"))
            settings = {**DEFAULTS, **state["settings"]}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ModelError(f"{path / SETTINGS}: missing or broken ({error}); save the pipeline again") from None
        packaged = state.get("packaged")
        same = packaged and self._ner is not None and settings == self.settings and not self._ner.lexicon_is_edited
        self.settings = settings
        if not same:
            self._ner = self._opened(settings["model"] if packaged else path / MODEL)
        if packaged:
            self._check_packaged(packaged, path)
            if (path / LEXICON).exists():
                self._read_lexicon(path / LEXICON)
            elif (path / EDITS).exists():
                self.ner.lexicon = edited(self.ner.lexicon, path / EDITS)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files that :meth:`to_disk` writes, in one value."""
        with TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
            content = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        found: bytes = srsly.msgpack_dumps(content)
        return found

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "HanlatticeComponent":
        """Read what :meth:`to_bytes` returned. The files are in a temporary folder until the component is gone.

        Raises:
            ModelError: these bytes are not from :meth:`to_bytes`, or from another version of the packaged model.
        """
        root = Path(mkdtemp(prefix="hanlattice-")).resolve()
        weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)  # the model is read from there until then
        try:
            files = srsly.msgpack_loads(data)
            if SETTINGS not in files:
                raise ValueError(f"there is no {SETTINGS}")
            for name, content in files.items():
                path = (root / name).resolve()
                if not path.is_relative_to(root):
                    raise ValueError(f"{name!r} is outside the folder")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(f"these bytes are not from to_bytes of this component ({error})") from None
        return self.from_disk(root)

    def _check_packaged(self, digest: str, path: Path) -> None:
        if digests.digest(DEFAULT / WEIGHTS) != digest:
            raise ModelError(
                f"{path}: was saved with the packaged model of another version of hanlattice; install that version,"
                " or add the component again"
            )

    def _write_lexicon(self, path: Path) -> None:
        """Write the edits of the lexicon, or all of it if it is another one than the model's."""
        save_edits(self.ner.lexicon, self.ner.base, path / EDITS)
        (path / LEXICON).unlink(missing_ok=True)

    def _read_lexicon(self, file: Path) -> None:
        """Read what version 0.1 wrote."""
        own, other = self.ner.lexicon, Lexicon.open(file)
        other.known_labels, other.longest, other.rewrite = own.known_labels, own.longest, own.rewrite
        other.shortest = own.shortest
        self.ner.lexicon = other

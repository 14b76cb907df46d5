"""The second model of a cascade or an ensemble: a linear tagger that reads the same texts as an accurate model.

Both models match the words of their own lexicons; edits by the user reach both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from hanlattice.config.files import read_toml
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ConfigError, EngineError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import PACKAGED, ModelFolder

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hanlattice.inputs.encoded import Sentences


def read_settings(folder: ModelFolder, name: str) -> dict[str, Any]:
    """The contents of ``cascade.toml`` or ``ensemble.toml``, which name a second model.

    Raises:
        EngineError: the folder has no such file.
        ModelError: the file is not TOML.
    """
    path = folder.path / name
    if not path.is_file():
        script = f"scripts/make_{path.stem}.py"
        raise EngineError(
            f"{folder.path} has no {name}, which names a second model; write one with {script}, or use another"
            " engine"
        )
    try:
        return read_toml(path)
    except ConfigError as error:
        raise ModelError(str(error)) from None


class SecondModel:
    """A linear tagger, and its lexicon with the user's edits.

    Args:
        name: the name of a packaged model, or a folder relative to that of the accurate model.
        folder: the accurate model.
        lexicon: the lexicon of the accurate model, without edits.

    Attributes:
        tagger: the linear tagger.

    Raises:
        EngineError: the kernels are not compiled.
        ModelError: the second model is missing or broken, or does not fit the accurate one.
    """

    def __init__(self, name: str, folder: ModelFolder, lexicon: Lexicon):
        own = ModelFolder.open(name if name in PACKAGED else folder.path / name)
        self.tagger = LinearTagger.open(own)
        _refuse_misfit(own, folder)
        self._ner = own.read_by(self.tagger)
        self._loaded = _Followed(lexicon.copy(), lexicon.state, self._ner.lexicon)
        self._followed: WeakKeyDictionary[Lexicon, _Followed] = WeakKeyDictionary()

    def read(self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None) -> Sentences:
        """Convert texts to the ids of the second model.

        Args:
            texts: normalised texts.
            lexicon: the lexicon that the accurate model matches.
            user_labels: the labels of user words that count; all if None.
        """
        return self._ner.reader.read(texts, self._lexicon_of(lexicon), user_labels)

    def _lexicon_of(self, lexicon: Lexicon) -> Lexicon:
        """The lexicon that the second model matches: its own with the user's edits.

        Only the edits since the last call are made, or those since the known lexicon that this one is a copy of. A
        lexicon that is no edited copy of the accurate model's is matched as it is.
        """
        state, known = lexicon.state, self._followed.get(lexicon)
        if known is None or known.state is not state:
            known = _Followed(lexicon.copy(), state, self._edited(lexicon, known))
            self._followed[lexicon] = known
        return known.own

    def _edited(self, lexicon: Lexicon, known: _Followed | None) -> Lexicon:
        others = sorted(self._followed.values(), key=lambda one: -len(one.copy))
        for one in filter(None, (known, *others, self._loaded)):
            edits = lexicon.edits_since(one.copy)
            if edits is None:
                continue
            added, removed = edits
            if not (added or removed):
                return one.own
            own = one.own.copy()
            # The edits were checked when they were made.
            own.rewrite = own.known_labels = own.longest = None
            own.update(added)
            for word in removed:
                own.remove(word)
            if one is not self._loaded:
                self._restore([(text, label) for text, label, _ in added] + [(text, None) for text in removed], own)
            return own
        return lexicon

    def _restore(self, edited: Sequence[tuple[str, str | None]], own: Lexicon) -> None:
        """Undo edits after which a word is in the accurate model's lexicon as it was when that was loaded.

        So the words of the second model follow from those of the accurate one, whatever the edits in between.
        """
        loaded, first = self._loaded.copy, self._loaded.own
        for word, label in edited:
            n = loaded.id(word)
            is_there = own.id(word) is not None
            if (n is None) == is_there or (n is not None and loaded.label(n) != label):
                continue
            m = first.id(word)
            if m is None:
                own.remove(word)
            else:
                own.add(word, first.label(m))


class _Followed(NamedTuple):
    """A lexicon of the accurate model in one of its states, and that of the second model with the same edits."""

    copy: Lexicon
    state: object
    own: Lexicon


def _refuse_misfit(second: ModelFolder, accurate: ModelFolder) -> None:
    """Check that two models have the same labels, default convention and normalisation.

    Raises:
        ModelError: their labels, default conventions or normalisations differ.
    """
    own, others = second.vocabulary.conventions, accurate.vocabulary.conventions
    pairs = {
        "default convention": (second.vocabulary.convention, accurate.vocabulary.convention),
        "labels": (set(second.vocabulary.labels), set(accurate.vocabulary.labels)),
        **{
            f"labels of convention {name}": (set(own[name]), set(others[name]))
            for name in sorted(own.keys() & others.keys())
        },
        "normalisation": tuple(
            (
                f.config.text.nfkc,
                f.config.text.lower,
                f.config.text.digits,
                f.config.text.simplify,
                f.config.text.tidy,
            )
            for f in (second, accurate)
        ),
    }
    for name, (one, other) in pairs.items():
        if one != other:
            raise ModelError(f"{second.path} and {accurate.path} differ in their {name}; they cannot be combined")

"""The second model of a cascade or an ensemble: a linear tagger that reads the same texts as an accurate model.

Both models match the words of their own lexicons; edits by the user reach both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from hanlattice.config.files import read_toml
from hanlattice.config.linear import linear_settings
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ConfigError, EngineError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.words import Word
from hanlattice.model.folder import ModelFolder, second_model

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from hanlattice.inputs.encoded import Sentences
    from hanlattice.lexicon.layers import Snapshot

NORMALISATION = ("nfkc", "lower", "digits", "simplify", "tidy")  # settings of text that both models share
_LARGEST = 1 << 53  # of the integers that a float holds exactly; a larger one is not converted


def read_settings(folder: ModelFolder, name: str, known: Collection[str]) -> dict[str, Any]:
    """The contents of ``cascade.toml`` or ``ensemble.toml``, which name a second model. Integers become floats.

    Args:
        folder: the accurate model.
        name: the name of the file.
        known: the settings that the file may have.

    Raises:
        EngineError: the folder has no such file.
        ModelError: the file is not TOML, or has another setting.
    """
    path = folder.path / name
    if not path.is_file():
        raise EngineError(
            f"{folder.path} has no {name}, which names a second model; write a copy that has one with"
            f" hanlattice combine {path.stem}, or use another engine"
        )
    try:
        found = read_toml(path)
    except ConfigError as error:
        raise ModelError(str(error)) from None
    if unknown := [key for key in found if key not in known]:
        raise ModelError(f"{path}: there is no setting {unknown[0]!r}; it may have {', '.join(known)}")
    return {
        key: float(value) if type(value) is int and abs(value) < _LARGEST else value for key, value in found.items()
    }


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
        own = ModelFolder.open(second_model(folder.path, name))
        if linear_settings(own.config) is None:
            raise ModelError(f"{own.path} is not a linear tagger, as a second model has to be; name another one")
        self.tagger = LinearTagger.open(own)
        refuse_misfit(own, folder)
        self._ner = own.read_by(self.tagger)
        accurate, own_lexicon = lexicon.copy(), self._ner.lexicon.copy()
        # Their words are compared with words that were rewritten already.
        accurate.rewrite = own_lexicon.rewrite = own_lexicon.known_labels = own_lexicon.longest = None
        own_lexicon.shortest = 1
        self._loaded = _Followed(accurate, accurate.state, own_lexicon)
        self._followed: WeakKeyDictionary[Lexicon, _Followed] = WeakKeyDictionary()

    def read(self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None) -> Sentences:
        """Convert texts to the ids of the second model.

        Args:
            texts: normalised texts.
            lexicon: the lexicon that the accurate model matches.
            user_labels: the labels of user words that count; all if None.
        """
        return self._ner.reader.read(texts, self.lexicon_of(lexicon), user_labels)

    def lexicon_of(self, lexicon: Lexicon) -> Lexicon:
        """The lexicon that the second model matches: its own with the user's edits.

        Only the edits since the last call are made, or those since the known lexicon that this one is a copy of. A
        lexicon that is not an edited copy of the accurate model's is matched as it is.
        """
        state, known = lexicon.state, self._followed.get(lexicon)
        if known is None or known.state is not state:
            copy = lexicon.at(state)  # other threads may edit `lexicon` meanwhile
            is_edited = state.begins_with(self._loaded.state)
            known = _Followed(copy, state, self._edited(copy, known) if is_edited else copy, is_edited)
            self._followed[lexicon] = known
        return known.own

    def _edited(self, lexicon: Lexicon, known: _Followed | None) -> Lexicon:
        """The lexicon of the second model with the edits of an edited copy of the accurate model's."""
        others = sorted(self._followed.values(), key=lambda one: -len(one.copy))
        starts = [one for one in (known, *others) if one is not None and one.is_edited]
        for one in (*starts, self._loaded):
            edits = lexicon.edits_since(one.copy)
            if edits is None:
                continue
            added, removed = edits
            if not (added or removed):
                return one.own
            own = one.own.copy()
            own.update(added)  # they were checked when they were made
            own.remove(*removed)
            if one is not self._loaded:
                self._restore([(text, label) for text, label, _ in added] + [(text, None) for text in removed], own)
            return own
        raise AssertionError("it is an edited copy of the accurate model's lexicon")

    def _restore(self, edited: Sequence[tuple[str, str | None]], own: Lexicon) -> None:
        """Undo edits after which a word is in the accurate model's lexicon as it was when that was loaded.

        So the words of the second model follow from those of the accurate one, whatever the edits in between.
        """
        loaded, first = self._loaded.copy, self._loaded.own
        texts = [text for text, _ in edited]
        before, now, at_first = (one.ids(texts).tolist() for one in (loaded, own, first))
        again: list[Word] = []
        unknown: list[str] = []  # words that the second model did not have
        for (word, label), n, is_there, m in zip(edited, before, (i >= 0 for i in now), at_first, strict=True):
            if (n < 0) == is_there or (n >= 0 and loaded.label(n) != label):
                continue
            if m < 0:
                unknown.append(word)
            else:
                again.append(Word(word, first.label(m)))
        own.remove(*unknown)
        own.update(again)


class _Followed(NamedTuple):
    """A lexicon for the accurate model in one of its states, and the words that the second model matches then.

    ``is_edited``: whether it is an edited copy of the accurate model's lexicon. ``copy`` and ``own`` never change.
    """

    copy: Lexicon
    state: Snapshot
    own: Lexicon
    is_edited: bool = True


def refuse_misfit(second: ModelFolder, accurate: ModelFolder) -> None:
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
        **{
            f"text.{name}": (getattr(second.config.text, name), getattr(accurate.config.text, name))
            for name in NORMALISATION
        },
    }
    for name, (one, other) in pairs.items():
        if one != other:
            raise ModelError(
                f"{second.path} and {accurate.path} differ in their {name}{_values(one, other)}; they cannot be"
                f" combined{_remedy(name, {second.path: other, accurate.path: one})}"
            )


def _values(one: object, other: object) -> str:
    """What two models have, in brackets; of labels those that only one of them has."""
    if isinstance(one, set) and isinstance(other, set):
        one, other = (", ".join(sorted(labels)) or "none" for labels in (one - other, other - one))
    return f" ({_written(one)} and {_written(other)})"


def _remedy(name: str, wanted: Mapping[Path, object]) -> str:
    """How to train one of two models so that they have the same value of a setting; nothing for labels."""
    setting = {"default convention": "data.convention"}.get(name, name)
    if "labels" in name:
        return ""
    ways = (f"{path} with --{setting} {_written(value)}" for path, value in wanted.items())
    return f": train {', or '.join(ways)}"


def _written(value: object) -> str:
    """A value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)

"""The second model of a cascade or an ensemble: a linear tagger that reads the same texts as an accurate model.

Both models match the words of their own lexicons; edits by the user reach both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import PACKAGED, ModelFolder

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hanlattice.inputs.encoded import Sentences


class SecondModel:
    """A linear tagger, and its lexicon with the user's edits.

    Args:
        name: the name of a packaged model, or a folder relative to that of the accurate model.
        folder: the accurate model.
        lexicon: the lexicon of the accurate model as it was loaded.

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
        self._start = lexicon.copy()
        self._edited: WeakKeyDictionary[Lexicon, tuple[object, Lexicon]] = WeakKeyDictionary()

    def read(self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None) -> Sentences:
        """Convert texts to the ids of the second model.

        Args:
            texts: normalised texts.
            lexicon: the lexicon that the accurate model matches.
            user_labels: if None, all labels of user words count; otherwise those of the second model.
        """
        known = None if user_labels is None else self._ner.labels
        return self._ner.reader.read(texts, self._lexicon_of(lexicon), known)

    def _lexicon_of(self, lexicon: Lexicon) -> Lexicon:
        """The lexicon that the second model matches: its own with the user's edits.

        A lexicon that is no edited copy of the accurate model's is matched as it is.
        """
        state = lexicon.state
        if lexicon in self._edited and self._edited[lexicon][0] is state:
            return self._edited[lexicon][1]
        edits = lexicon.edits_since(self._start)
        found = lexicon
        if edits is not None:
            added, removed = edits
            found = self._ner.lexicon
            if added or removed:
                found = found.copy()
                # The edits were checked when they were made.
                found.rewrite = found.known_labels = found.longest = None
                found.update(added)
                for word in removed:
                    found.remove(word)
        self._edited[lexicon] = (state, found)
        return found


def _refuse_misfit(second: ModelFolder, accurate: ModelFolder) -> None:
    """Check that two models find the same entities in the same texts.

    Raises:
        ModelError: their labels, default conventions or normalisations differ.
    """
    pairs = {
        "default convention": (second.vocabulary.convention, accurate.vocabulary.convention),
        "labels": (set(second.vocabulary.labels), set(accurate.vocabulary.labels)),
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
            raise ModelError(f"{second.path} has another {name} than {accurate.path}; the two cannot be combined")

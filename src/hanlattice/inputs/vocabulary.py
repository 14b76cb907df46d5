"""What the rows of a model's tables stand for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hanlattice.config.settings import DEFAULT_CONVENTION
from hanlattice.errors import ModelError, UnknownConvention
from hanlattice.files import atomic_write

PAD, UNKNOWN = 0, 1
"""The first rows of the tables of characters and bigrams."""

# Follows the last character of a text in its last bigram; no text that is normalised holds it.
END = "\0"


@dataclass(frozen=True)
class Vocabulary:
    """Names of the rows of each table, which start at row 2: row 0 is padding, row 1 everything unknown.

    ``words`` start at row 1, as a word without a vector has row 0. ``word_labels`` (of the gazetteer) start at
    row 1 too. With ``user_words`` their table has as many rows again, for words that a user added: row
    ``len(word_labels) + 1`` is a user word without a label, and its label follows as it does in the first half.

    ``labels`` are the entity labels of the default ``convention``, in the decoder's order; ``conventions`` are
    those of the other annotation conventions that the model learnt.
    """

    chars: tuple[str, ...]
    bigrams: tuple[str, ...]
    words: tuple[str, ...]
    word_labels: tuple[str, ...]
    labels: tuple[str, ...]
    user_words: bool = False
    convention: str = DEFAULT_CONVENTION
    conventions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def word_kinds(self) -> tuple[str, ...]:
        """Names of the rows of the table of gazetteer labels, from row 1 on."""
        of_users = ("<user>", *(f"<user> {label}" for label in self.word_labels)) if self.user_words else ()
        return (*self.word_labels, *of_users)

    @property
    def n_word_kinds(self) -> int:
        """Rows of the table of gazetteer labels: each label and none, once more for user words."""
        return len(self.word_kinds) + 1

    @property
    def all_labels(self) -> frozenset[str]:
        """Those of the gazetteer and of every convention."""
        return frozenset(self.word_labels).union(self.labels, *self.conventions.values())

    def labels_of(self, convention: str) -> tuple[str, ...]:
        """The entity labels of a convention.

        Raises:
            UnknownConvention: the model did not learn the convention.
        """
        if convention == self.convention:
            return self.labels
        if convention not in self.conventions:
            known = ", ".join((self.convention, *self.conventions))
            raise UnknownConvention(f"the model has no convention {convention!r}; it has {known}")
        return self.conventions[convention]

    def first(self, chars: int, bigrams: int, words: int) -> "Vocabulary":
        """The vocabulary with only the first names of each table."""
        return replace(self, chars=self.chars[:chars], bigrams=self.bigrams[:bigrams], words=self.words[:words])

    def save(self, path: str | Path) -> None:
        """Write ``vocabulary.json``: characters and bigrams as one string, as their length is known."""
        fields = {
            "chars": "".join(self.chars),
            "bigrams": "".join(self.bigrams),
            "words": "\n".join(self.words),
            "word_labels": self.word_labels,
            "labels": self.labels,
            "user_words": self.user_words,
            "convention": self.convention,
            "conventions": dict(self.conventions),
        }
        with atomic_write(path) as stream:
            json.dump(fields, stream, ensure_ascii=False, indent=0)
            stream.write("\n")

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Read ``vocabulary.json``.

        Raises:
            ModelError: the file is missing or is not a vocabulary.
        """
        try:
            if not Path(path).is_file():  # what never ends, such as a device or a pipe, is none
                raise FileNotFoundError
            fields = json.loads(Path(path).read_text(encoding="utf-8"))
            pairs = fields["bigrams"]
            found = cls(
                tuple(fields["chars"]),
                tuple(map("".join, zip(pairs[::2], pairs[1::2], strict=True))),
                tuple(fields["words"].split("\n")) if fields["words"] else (),
                tuple(fields["word_labels"]),
                tuple(fields["labels"]),
                fields.get("user_words", False),
                fields.get("convention", DEFAULT_CONVENTION),
                {name: tuple(labels) for name, labels in fields.get("conventions", {}).items()},
            )
            _refuse_no_names(found)
            return found
        except FileNotFoundError:
            raise ModelError(f"{path}: missing; is this the folder of a hanlattice model?") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelError(f"{path}: not a vocabulary of hanlattice ({error})") from None


def _refuse_no_names(found: Vocabulary) -> None:
    """
    Raises:
        TypeError, ValueError: what should be a name or a flag is none, or a convention is there twice.
    """
    if not isinstance(found.user_words, bool):
        raise TypeError("user_words is neither true nor false")
    for name in (found.convention, *found.all_labels):
        if not isinstance(name, str):
            raise TypeError(f"{name!r:.60} is no name")
    if found.convention in found.conventions:
        raise ValueError(f"the convention {found.convention!r} is there twice")


def bigrams_of(text: str) -> list[str]:
    """The bigram that begins at each character; the last character's ends in ``END``."""
    return [a + b for a, b in zip(text, text[1:] + END, strict=False)]  # of an empty text none


def merged(*groups: Sequence[str]) -> tuple[str, ...]:
    """The groups one after the other, each name once."""
    return tuple(dict.fromkeys(name for group in groups for name in group))

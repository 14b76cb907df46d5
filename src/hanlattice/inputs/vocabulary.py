"""The vocabulary of a model: the names of the rows of its embedding tables, and its entity labels."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hanlattice.atomic import atomic_write
from hanlattice.config.settings import DEFAULT_CONVENTION
from hanlattice.errors import ModelError, UnknownConvention

PAD, UNKNOWN = 0, 1
"""The first rows of the tables of characters and bigrams."""

# The second character of the last bigram of a text.
END = "\0"


@dataclass(frozen=True)
class Vocabulary:
    """The names of the rows of each embedding table, and the entity labels.

    The tables begin with rows for special cases::

        row            0            1           2            3            …
        characters     padding      unknown     chars[0]     chars[1]
        bigrams        padding      unknown     bigrams[0]   bigrams[1]
        words          no vector    words[0]    words[1]     words[2]
        word kinds     no label     word_labels[0], …, then "<user>" and the labels again, for user words

    Attributes:
        chars: The characters.
        bigrams: The bigrams, pairs of characters.
        words: The words that have vectors.
        word_labels: The gazetteer labels.
        labels: The entity labels of the default convention, in the decoder's order.
        user_words: Whether the table of word kinds has separate rows for words that a user added.
        convention: The name of the default annotation convention.
        conventions: The entity labels of the other conventions that the model was trained on.
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
        """The names of the rows of the table of word kinds, from row 1 on."""
        of_users = ("<user>", *(f"<user> {label}" for label in self.word_labels)) if self.user_words else ()
        return (*self.word_labels, *of_users)

    @property
    def user_kind(self) -> int:
        """The row of words that a user added without a label, in the table of word kinds."""
        return len(self.word_labels) + 1

    @property
    def n_word_kinds(self) -> int:
        """The number of rows of the table of word kinds."""
        return len(self.word_kinds) + 1

    @property
    def all_labels(self) -> frozenset[str]:
        """The labels of the gazetteer and of all conventions."""
        return frozenset(self.word_labels).union(self.labels, *self.conventions.values())

    def labels_of(self, convention: str) -> tuple[str, ...]:
        """The entity labels of a convention.

        Raises:
            UnknownConvention: The model was not trained on the convention.
        """
        if convention == self.convention:
            return self.labels
        if convention not in self.conventions:
            known = ", ".join((self.convention, *self.conventions))
            raise UnknownConvention(f"the model has no convention {convention!r}; it has {known}")
        return self.conventions[convention]

    def first(self, chars: int, bigrams: int, words: int) -> "Vocabulary":
        """The vocabulary with only the first ``chars``, ``bigrams`` and ``words`` names of these tables."""
        return replace(self, chars=self.chars[:chars], bigrams=self.bigrams[:bigrams], words=self.words[:words])

    def save(self, path: str | Path) -> None:
        """Write ``vocabulary.json``. Characters, bigrams and words are each joined to one string."""
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
            ModelError: The file is missing or not a vocabulary.
        """
        try:
            if not Path(path).is_file():  # refuse devices and pipes, which may never end
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
            _refuse_invalid_names(found)
            return found
        except FileNotFoundError:
            raise ModelError(f"{path}: missing; is this the folder of a hanlattice model?") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelError(f"{path}: not a vocabulary of hanlattice ({error})") from None


def _refuse_invalid_names(found: Vocabulary) -> None:
    """Check the types of names and flags.

    Raises:
        TypeError: A name is not a string, or a flag is not a boolean.
        ValueError: The default convention is also one of the other conventions.
    """
    if not isinstance(found.user_words, bool):
        raise TypeError("user_words is neither true nor false")
    for name in (found.convention, *found.all_labels):
        if not isinstance(name, str):
            raise TypeError(f"{name!r:.60} is not a string")
    if found.convention in found.conventions:
        raise ValueError(f"the convention {found.convention!r} is there twice")


def bigrams_of(text: str) -> list[str]:
    """The bigram that begins at each character. The last one ends in ``END``; an empty text has none."""
    return [a + b for a, b in zip(text, text[1:] + END, strict=False)]


def merged(*groups: Sequence[str]) -> tuple[str, ...]:
    """The names of all groups in order, without duplicates."""
    return tuple(dict.fromkeys(name for group in groups for name in group))

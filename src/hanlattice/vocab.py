"""What the rows of a model's tables stand for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hanlattice.errors import ModelError
from hanlattice.files import atomic_write

PAD, UNKNOWN = 0, 1
"""The first rows of the tables of characters and bigrams."""

# Follows the last character of a text in its last bigram; no text that is normalised holds it.
END = "\0"


@dataclass(frozen=True)
class Vocabulary:
    """Names of the rows of each table, which start at row 2: row 0 is padding, row 1 everything unknown.

    ``words`` start at row 1, as a word without a vector has row 0. ``word_labels`` (of the gazetteer) start at
    row 1 too. ``labels`` are the entity labels in the decoder's order.
    """

    chars: tuple[str, ...]
    bigrams: tuple[str, ...]
    words: tuple[str, ...]
    word_labels: tuple[str, ...]
    labels: tuple[str, ...]

    def first(self, chars: int, bigrams: int, words: int) -> "Vocabulary":
        """The vocabulary with only the first names of each table."""
        return Vocabulary(
            self.chars[:chars], self.bigrams[:bigrams], self.words[:words], self.word_labels, self.labels
        )

    def save(self, path: str | Path) -> None:
        """Write ``vocabulary.json``: characters and bigrams as one string, as their length is known."""
        fields = {
            "chars": "".join(self.chars),
            "bigrams": "".join(self.bigrams),
            "words": "\n".join(self.words),
            "word_labels": self.word_labels,
            "labels": self.labels,
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
            return cls(
                tuple(fields["chars"]),
                tuple(map("".join, zip(pairs[::2], pairs[1::2], strict=True))),
                tuple(fields["words"].split("\n")) if fields["words"] else (),
                tuple(fields["word_labels"]),
                tuple(fields["labels"]),
            )
        except FileNotFoundError:
            raise ModelError(f"{path}: missing; is this the folder of a hanlattice model?") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelError(f"{path}: not a vocabulary of hanlattice ({error})") from None


def bigrams_of(text: str) -> list[str]:
    """The bigram that begins at each character; the last character's ends in ``END``."""
    return [a + b for a, b in zip(text, text[1:] + END, strict=False)]  # of an empty text none


def merged(*groups: Sequence[str]) -> tuple[str, ...]:
    """The groups one after the other, each name once."""
    return tuple(dict.fromkeys(name for group in groups for name in group))

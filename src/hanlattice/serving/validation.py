"""Checks that the conventions and labels in requests exist in the model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hanlattice.errors import DataError, UnknownConvention
from hanlattice.patterns import Patterns
from hanlattice.pipeline import NER
from hanlattice.pipeline.overrides import unknown_blocked
from hanlattice.serving.errors import field_error
from hanlattice.serving.schema import Edits, LabelledWord, ReadRequest


def regular_labels(ner: NER, patterns: Patterns | bool | None) -> frozenset[str]:
    """The labels of the patterns that a request uses.

    Args:
        ner: the model.
        patterns: those of the request; None for those of the model, and True for those or else for all kinds.
    """
    if patterns is None or patterns is True:
        patterns = ner.patterns or (Patterns() if patterns else None)
    return frozenset(patterns.labels) if patterns else frozenset()


@dataclass(frozen=True)
class RequestValidator:
    """Checks requests to a model; a :class:`~hanlattice.serving.errors.RequestError` names the invalid field."""

    ner: NER

    @property
    def conventions(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of each convention."""
        return {name: self.ner.vocabulary.labels_of(name) for name in self.ner.conventions}

    def convention(self, request: ReadRequest) -> str:
        """The annotation convention of the response.

        Raises:
            RequestError: the model does not have it, or it lacks a label that the request forces; or no entity has
                a label that the request blocks.
        """
        name = request.convention or self.ner.convention
        try:
            labels = self.ner.vocabulary.labels_of(name)
        except UnknownConvention as error:
            raise field_error("convention", str(error)) from None
        for text, label in (request.force or {}).items():
            if label not in labels and label not in self._regular(request):
                problem = f"convention {name!r} has no label {label!r}; it has {', '.join(labels)}"
                raise field_error(f"force.{text}", problem)
        if unknown := unknown_blocked(request.block or {}, self.conventions, self.ner.patterns):
            text, label = unknown
            problem = f"no entity has the label {label!r}; in convention {name!r} entities have {', '.join(labels)}"
            raise field_error(f"block.{text}", problem)
        return name

    def _regular(self, request: ReadRequest) -> Collection[str]:
        """The labels of the patterns that a request uses."""
        chosen = request.patterns
        if isinstance(chosen, list | tuple):
            return tuple(chosen)
        return regular_labels(self.ner, chosen)

    def check_words(self, lexicon: Edits | Sequence[str | LabelledWord] | None, field: str = "") -> None:
        """Check that the model can read all words.

        Args:
            lexicon: the words or edits of a request. The id of a stored lexicon is not checked, as its words were
                checked when it was stored.
            field: the field of the request that has the words, for messages.

        Raises:
            RequestError: a word has a label that is in no convention and not in the gazetteer, is longer than the
                window of the model, or has no visible character.
        """
        words: Sequence[str | LabelledWord] = ()
        if isinstance(lexicon, Edits):
            words, field = lexicon.words, f"{field}.words".removeprefix(".")
        elif lexicon is not None and not isinstance(lexicon, str):
            words = lexicon
        known = self.ner.vocabulary.all_labels
        for i, word in enumerate(words):
            if isinstance(word, LabelledWord) and word.label is not None and word.label not in known:
                problem = f"the model has no label {word.label!r}; it has {', '.join(sorted(known))}"
                raise field_error(f"{field}[{i}].label", problem)
        texts = [word if isinstance(word, str) else word.text for word in words]
        if self._problem(texts) is None:
            return
        first, last = 0, len(texts)  # the first wrong word is in this half-open range
        while last - first > 1:
            middle = (first + last) // 2
            first, last = (middle, last) if self._problem(texts[first:middle]) is None else (first, middle)
        raise field_error(f"{field}[{first}]", str(self._problem(texts[first:last])))

    def _problem(self, words: Sequence[str]) -> DataError | None:
        """What is wrong with words that a lexicon of the model cannot have; None if they are right."""
        try:
            self.ner.lexicon.emptied().update(words)
        except DataError as error:
            return error
        return None

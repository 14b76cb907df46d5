"""What requests may name: the conventions of a model, and the labels of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hanlattice.errors import UnknownConvention
from hanlattice.pipeline import NER
from hanlattice.serving.errors import wrong_field
from hanlattice.serving.schema import Edits, Explain, LabelledWord, Question


@dataclass(frozen=True)
class Naming:
    """Checks the names in requests to a model; a :class:`~hanlattice.serving.errors.Refused` names the field."""

    ner: NER

    @property
    def conventions(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of each convention."""
        return {name: self.ner.vocabulary.labels_of(name) for name in self.ner.conventions}

    def convention(self, question: Question | Explain) -> str:
        """The convention by which a request is answered.

        Raises:
            Refused: the model did not learn it, or it lacks a label that the request forces.
        """
        name = question.convention or self.ner.convention
        try:
            labels = self.ner.vocabulary.labels_of(name)
        except UnknownConvention as error:
            raise wrong_field("convention", str(error)) from None
        for text, label in (question.force or {}).items():
            if label not in labels:
                problem = f"convention {name!r} has no label {label!r}; it has {', '.join(labels)}"
                raise wrong_field(f"force.{text}", problem)
        return name

    def check_words(self, lexicon: Edits | Sequence[str | LabelledWord] | None, field: str = "") -> None:
        """
        Raises:
            Refused: a word has a label that neither a convention nor the gazetteer has.
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
                raise wrong_field(f"{field}[{i}].label", problem)

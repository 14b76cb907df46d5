"""Types of request and response bodies, from which the OpenAPI description is made."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from hanlattice.patterns import KINDS, day_of

LONGEST_WORD, LONGEST_LABEL = 256, 64
MOST_RULES = 1000  # largest number of texts in ``force``, and in ``block``
T = TypeVar("T")
ID = r"^[A-Za-z0-9_-]{1,64}$"
NO_ID = "an id is made of A-Z, a-z, 0-9, _ and -, at least 1 and at most 64 of them"


def _checked_kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"there is no kind {name!r}; the kinds are {', '.join(KINDS)}")
    return name


def _checked_day(written: str) -> str:
    day_of(written)  # its error is a ValueError
    return written


# The matcher uses NUL as the separator of words; ordinary text does not contain it.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=LONGEST_WORD)]
Label = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=LONGEST_LABEL)]
LexiconId = Annotated[str, StringConstraints(pattern=ID)]
Day = Annotated[str, AfterValidator(_checked_day), Field(examples=["2024-03-15", "2024-03-15T10:20"])]
KindName = Annotated[str, AfterValidator(_checked_kind)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


# Only the first error of a list and few of an object are reported, so that a body with many errors costs no more.
List = Annotated[list[T], Field(fail_fast=True)]


def _not_too_many(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MOST_RULES:
        raise ValueError(f"at most {MOST_RULES:,} texts, not {len(value):,}")
    return value


Rules = Annotated[dict[Name, T], BeforeValidator(_not_too_many), Field(max_length=MOST_RULES)]


class _RequestBody(BaseModel):
    """Base of request bodies. Unknown fields are errors, and types are not converted: 1 is not a text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > 2 * len(cls.model_fields):
            raise ValueError(f"has {len(value):,} fields; there are {', '.join(cls.model_fields)}")
        return value


class LabelledWord(_RequestBody):
    """A word with an optional label and weight."""

    text: Name
    label: Label | None = Field(
        default=None,
        description="The kind of name that the word is; a label of another convention has no effect.",
    )
    weight: Annotated[float, Field(ge=-3.4e38, le=3.4e38, allow_inf_nan=False)] | None = Field(
        default=None, description="Has no effect on models; it is stored with the word."
    )


def _kind_of_word(value: Any) -> str:
    return "<plain>" if isinstance(value, str) else "<labelled>"


Word = Annotated[
    Annotated[Name, Tag("<plain>")] | Annotated[LabelledWord, Tag("<labelled>")], Discriminator(_kind_of_word)
]


class Edits(_RequestBody):
    """Changes of the model's lexicon for a request, or a lexicon instead of it."""

    words: List[Word] = Field(default=[], description="Words to add.", examples=[["人和药店"]])
    remove: List[Name] = Field(default=[], description="Words of the model to leave out.")
    extends: bool = Field(default=True, description="Whether the model's own words stay.")


def _kind_of_lexicon(value: Any) -> str:
    return "<id>" if isinstance(value, str) else "<words>" if isinstance(value, list) else "<edits>"


AnyLexicon = Annotated[
    Annotated[LexiconId, Tag("<id>")] | Annotated[List[Word], Tag("<words>")] | Annotated[Edits, Tag("<edits>")],
    Discriminator(_kind_of_lexicon),
]


def n_words(lexicon: str | Sequence[str | LabelledWord] | Edits | None) -> int:
    """The number of words that a request adds and removes; 0 if it names a stored lexicon."""
    match lexicon:
        case None | str():
            return 0
        case Edits():
            return len(lexicon.words) + len(lexicon.remove)
    return len(lexicon)


AnyEdits = Annotated[
    Annotated[List[Word], Tag("<words>")] | Annotated[Edits, Tag("<edits>")], Discriminator(_kind_of_lexicon)
]


class ReadRequest(_RequestBody):
    """What all requests to read texts have in common."""

    convention: Label | None = Field(
        default=None,
        description="The annotation convention of the response; `GET /v1/model` lists them. Null for the default.",
    )
    lexicon: AnyLexicon | None = Field(
        default=None, description="The id of a stored lexicon, words to add to the model's own, or edits of them."
    )
    force: Rules[Label] | None = Field(
        default=None,
        description="Texts that are always an entity with this label, which must belong to the convention.",
        examples=[{"鹅厂": "ORG"}],
    )
    block: Rules[Label | List[Label] | None] | None = Field(
        default=None,
        description="Texts that are never an entity (null), or never an entity with this label or these labels.",
    )
    threshold: Share | None = Field(default=None, description="Entities with a lower score are left out.")
    patterns: bool | List[KindName] | None = Field(
        default=None,
        description="Whether regular entities are found too, such as dates and amounts, or the kinds of them."
        " Null for the setting of the service.",
        examples=[["DATE", "MONEY"]],
    )
    today: Day | None = Field(
        default=None, description="Day that relative dates refer to; with a time for expressions such as 十分钟前."
    )


class EntitiesRequest(ReadRequest):
    """One text or several; exactly one of the two fields."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["texts"]}]})

    text: Text | None = Field(default=None, examples=["重庆人和药店在渝中区开业"])
    texts: List[Text] | None = Field(default=None, examples=[["李明去了上海", "他在南京"]])

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError("give either text or texts")
        return self


class ExplainRequest(ReadRequest):
    """One text, whose lattice is returned too."""

    text: Text = Field(examples=["重庆人和药店在渝中区开业"])
    by: Literal["auto", "attention", "influence", "none"] = Field(
        default="auto",
        description="The measure of a word's strength; auto takes the first one that the model and the text allow.",
    )


class FoundEntity(BaseModel):
    """An entity: a half-open span of the text as it was sent, counted in characters (Unicode code points)."""

    start: int
    end: int
    text: str
    label: str
    score: float = Field(description="The confidence of the model, in [0, 1]; 1 for patterns and forced texts.")
    fragments: list[tuple[int, int]] | None = Field(
        default=None, description="The parts of a discontinuous entity."
    )
    value: str | None = Field(
        default=None,
        description="The value of a regular entity: ISO 8601, or a decimal and a unit.",
        examples=["2024-03-05", "3500 CNY"],
    )


class EntitiesResponse(BaseModel):
    """The entities of ``text``, or a list of entities for each of ``texts``."""

    entities: list[FoundEntity] | list[list[FoundEntity]]


class LatticeWord(BaseModel):
    """A word of the lattice; ``strength`` is in [0, 1]."""

    start: int
    end: int
    text: str
    label: str | None
    strength: float | None = None
    reason: str | None = Field(default=None, description="The meaning of the strength, in a sentence.")


class ExplainResponse(BaseModel):
    """A text as the model read it. ``by`` is the measure of the strengths; with ``none`` there are none."""

    text: str
    by: Literal["attention", "influence", "none"]
    characters: list[str] = Field(description="The text's code points, one by one.")
    words: list[LatticeWord]
    entities: list[FoundEntity]


class DoccanoRequest(ReadRequest):
    """One text, and the fields of other requests."""

    text: Text = Field(examples=["重庆人和药店在渝中区开业"])


class DoccanoLabel(BaseModel):
    """An entity as doccano's sequence labelling projects take it."""

    label: str
    start_offset: int
    end_offset: int


class LabelStudioSetup(BaseModel):
    """What Label Studio sends when it connects; other fields are ignored."""

    label_config: str = Field(alias="schema", description="The labelling configuration of the project, as XML.")


class LabelStudioTasks(BaseModel):
    """Tasks of Label Studio and the configuration of their project; other fields are ignored."""

    tasks: List[dict[str, Any]]
    label_config: str


class LabelStudioModel(BaseModel):
    """The name of the model, which Label Studio stores with each prediction."""

    model_version: str


class LabelStudioPredictions(BaseModel):
    """One prediction for each task."""

    results: list[dict[str, Any]]


class LabelStudioHealth(BaseModel):
    """State of the service in Label Studio's words."""

    status: Literal["UP"]


class StoredLexicon(BaseModel):
    """A stored lexicon in numbers."""

    id: str
    words: int
    removed: int
    extends: bool


class LexiconIds(BaseModel):
    """The ids of all stored lexicons, in order."""

    lexicons: list[str]


class ModelInfo(BaseModel):
    """The model and the limits of this service."""

    version: str
    convention: str = Field(description="The annotation convention of requests that name none.")
    conventions: dict[str, list[str]] = Field(description="The labels of each annotation convention.")
    labels: list[str] = Field(description="The labels of requests that name no convention.")
    colours: dict[str, str] = Field(description="A colour for each label of any convention, such as #56b4e9.")
    words: int = Field(description="Number of words in the model's own lexicon.")
    nested: bool = Field(description="Whether the model finds nested entities.")
    max_texts: int
    max_chars: int


class Status(BaseModel):
    """State of a worker."""

    status: Literal["ok", "draining"]


class FieldError(BaseModel):
    """An invalid field of a request, and the reason."""

    field: str
    problem: str


class ErrorResponse(BaseModel):
    """Body of all error responses."""

    error: str
    fields: list[FieldError]
    request_id: str


# Steps of pydantic's paths that are no fields: places of parameters, and names of alternatives.
_ALTERNATIVES = frozenset(("", "[key]", "body", "path", "bool", "constrained-str"))


def field_errors(errors: Iterable[Any]) -> list[FieldError]:
    """Pydantic's errors, without the values that the client sent."""
    return [FieldError(field=_path(error["loc"]), problem=_problem(error)) for error in errors]


def _path(place: Iterable[str | int]) -> str:
    """``texts[3]`` for ``("texts", 3)``; ``body``, ``path`` and the names of alternatives are left out."""
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in _ALTERNATIVES and not step.startswith(("<", "list[")):
            path += f".{step}" if path else step
    return path or "body"


def _problem(error: Any) -> str:
    kind, message = error["type"], str(error["msg"])
    if kind == "string_pattern_mismatch" and r"\x00" in error["ctx"]["pattern"]:
        return (
            "holds a NUL character, or nothing at all"
            if "+" in error["ctx"]["pattern"]
            else "holds a NUL character"
        )
    if kind == "string_pattern_mismatch":
        return NO_ID
    if kind == "string_unicode":
        return "holds half a surrogate pair, which is not a character"
    if kind == "extra_forbidden":
        return "there is no such field"
    if kind in ("model_attributes_type", "model_type"):
        return "give an object"
    if kind == "union_tag_invalid":
        return "give a list of words, or an object with words, remove and extends"
    return message.removeprefix("Value error, ")

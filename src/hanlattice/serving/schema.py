"""What goes in and out of the service, as the OpenAPI description tells it."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

LONGEST_WORD, LONGEST_LABEL = 256, 64
MOST_RULES = 1000  # texts that a request can force, and block
T = TypeVar("T")
ID = r"^[A-Za-z0-9_-]{1,64}$"
NO_ID = "an id is made of A-Z, a-z, 0-9, _ and -, at least 1 and at most 64 of them"

# NUL is what the matcher puts between words; nothing that a person writes holds one.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=LONGEST_WORD)]
Label = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=LONGEST_LABEL)]
LexiconId = Annotated[str, StringConstraints(pattern=ID)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


# One mistake of a list is told, and few of an object, so that a body of a million mistakes costs no more than one.
List = Annotated[list[T], Field(fail_fast=True)]


def _not_too_many(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MOST_RULES:
        raise ValueError(f"at most {MOST_RULES:,} texts, not {len(value):,}")
    return value


Rules = Annotated[dict[Name, T], BeforeValidator(_not_too_many), Field(max_length=MOST_RULES)]


class _Body(BaseModel):
    """What is not named is an error, and nothing is guessed: 1 is no text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > 2 * len(cls.model_fields):
            raise ValueError(f"has {len(value):,} fields; there are {', '.join(cls.model_fields)}")
        return value


class LabelledWord(_Body):
    """A word with what is known of it."""

    text: Name
    label: Label | None = Field(
        default=None,
        description="The kind of name that the word is; a label of another convention has no effect.",
    )
    weight: Annotated[float, Field(ge=-3.4e38, le=3.4e38, allow_inf_nan=False)] | None = None


def _kind_of_word(value: Any) -> str:
    return "<plain>" if isinstance(value, str) else "<labelled>"


Word = Annotated[
    Annotated[Name, Tag("<plain>")] | Annotated[LabelledWord, Tag("<labelled>")], Discriminator(_kind_of_word)
]


class Edits(_Body):
    """Words that are read besides, or instead of, those of the model."""

    words: List[Word] = Field(default=[], description="Words to read by.", examples=[["人和药店"]])
    remove: List[Name] = Field(default=[], description="Words of the model to leave out.")
    extends: bool = Field(default=True, description="Whether the model's own words stay.")


def _kind_of_lexicon(value: Any) -> str:
    return "<id>" if isinstance(value, str) else "<words>" if isinstance(value, list) else "<edits>"


AnyLexicon = Annotated[
    Annotated[LexiconId, Tag("<id>")] | Annotated[List[Word], Tag("<words>")] | Annotated[Edits, Tag("<edits>")],
    Discriminator(_kind_of_lexicon),
]

AnyEdits = Annotated[
    Annotated[List[Word], Tag("<words>")] | Annotated[Edits, Tag("<edits>")], Discriminator(_kind_of_lexicon)
]


class _Asked(_Body):
    convention: Label | None = Field(
        default=None,
        description="The annotation convention of the answer; `GET /v1/model` lists them. Null is the default.",
    )
    lexicon: AnyLexicon | None = Field(
        default=None, description="The id of a stored lexicon, words to add to the model's own, or edits of them."
    )
    force: Rules[Label] | None = Field(
        default=None,
        description="Texts that are always an entity of the label given, which is one of the convention.",
        examples=[{"鹅厂": "ORG"}],
    )
    block: Rules[Label | List[Label] | None] | None = Field(
        default=None,
        description="Texts that are never an entity (null), or never one of the label or labels given.",
    )
    threshold: Share | None = Field(default=None, description="Entities that are less sure are left out.")


class Question(_Asked):
    """One text, or several that are answered together; exactly one of the two fields."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["texts"]}]})

    text: Text | None = Field(default=None, examples=["重庆人和药店在渝中区开业"])
    texts: List[Text] | None = Field(default=None, examples=[["李明去了上海", "他在南京"]])

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError("give either text or texts")
        return self


class Explain(_Asked):
    """One text, whose lattice is wanted too."""

    text: Text = Field(examples=["重庆人和药店在渝中区开业"])
    by: Literal["auto", "attention", "influence", "none"] = Field(
        default="auto",
        description="What makes a word strong; auto takes the first that the model and the text allow.",
    )


class EntityFound(BaseModel):
    """A stretch of the text as it was sent, half-open, counted in characters (Unicode code points)."""

    start: int
    end: int
    text: str
    label: str
    score: float = Field(description="How sure the model is, in [0, 1].")
    fragments: list[tuple[int, int]] | None = Field(
        default=None, description="Its pieces, of an entity in several."
    )


class Found(BaseModel):
    """Of ``text`` its entities; of ``texts`` a list of entities for each."""

    entities: list[EntityFound] | list[list[EntityFound]]


class WordRead(BaseModel):
    """A word of the lattice; ``strength`` is in [0, 1]."""

    start: int
    end: int
    text: str
    label: str | None
    strength: float | None = None
    reason: str | None = Field(default=None, description="What the strength says, in a sentence.")


class Explained(BaseModel):
    """A text as the model read it; ``by`` says what the strengths measure, ``none`` that there are none."""

    text: str
    by: Literal["attention", "influence", "none"]
    characters: list[str] = Field(description="The text's code points, one by one.")
    words: list[WordRead]
    entities: list[EntityFound]


class Stored(BaseModel):
    """A stored lexicon in numbers."""

    id: str
    words: int
    removed: int
    extends: bool


class Names(BaseModel):
    """The ids of all stored lexicons, in order."""

    lexicons: list[str]


class Model(BaseModel):
    """What is served, and what it takes."""

    version: str
    convention: str = Field(description="The annotation convention of requests that name none.")
    conventions: dict[str, list[str]] = Field(description="The labels of each annotation convention.")
    labels: list[str] = Field(description="The labels of requests that name no convention.")
    colours: dict[str, str] = Field(description="A colour for each label of any convention, such as #56b4e9.")
    words: int = Field(description="How many words the model's own lexicon has.")
    nested: bool = Field(description="Whether entities inside entities are found.")
    max_texts: int
    max_chars: int


class Status(BaseModel):
    """How a worker feels."""

    status: Literal["ok", "draining"]


class Mistake(BaseModel):
    """A field of the request and what is wrong with it."""

    field: str
    problem: str


class Refusal(BaseModel):
    """Why a request was not answered."""

    error: str
    fields: list[Mistake]
    request_id: str


def mistakes(errors: Iterable[Any]) -> list[Mistake]:
    """Pydantic's errors without what the client sent."""
    return [Mistake(field=_path(error["loc"]), problem=_problem(error)) for error in errors]


def _path(place: Iterable[str | int]) -> str:
    """``texts[3]`` for ``("texts", 3)``; where it comes from is left out, and so are names in angle brackets."""
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in ("", "[key]", "body", "path") and not step.startswith("<"):
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
        return "holds half a surrogate pair, which is no character"
    if kind == "extra_forbidden":
        return "there is no such field"
    if kind in ("model_attributes_type", "model_type"):
        return "give an object"
    if kind == "union_tag_invalid":
        return "give a list of words, or an object with words, remove and extends"
    return message.removeprefix("Value error, ")

"""Examples and helpers that the tests of corpora share."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from hanlattice import corpus
from hanlattice.cli.check import check as check_command
from hanlattice.cli.convert import convert as convert_command
from hanlattice.corpus.checking import check
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError

app = typer.Typer()
app.command()(check_command)
app.command()(convert_command)

TEXT = "李明在北京"
NAMES = [("李明", "PER"), ("北京", "LOC")]


def lines(text: str) -> list[str]:
    return text.split("\n")


def found(document: Document) -> list[tuple[str, str]]:
    """Text and label of each entity."""
    for entity in document.entities:
        assert document.text[entity.start : entity.end] == entity.text
    return [(entity.text, entity.label) for entity in document.entities]


def plain(document: Document) -> Document:
    """The document without the place where it was read."""
    meta = {key: value for key, value in document.meta.items() if not key.startswith("@")}
    return Document(document.text, document.entities, document.id, document.tokens, meta)


def document(text: str, *spans: tuple[int, int, str], **rest: Any) -> Document:
    entities = tuple(Entity(text[start:end], label, start, end) for start, end, label in spans)
    return Document(text, entities, **rest)


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    """Run ``check`` or ``convert`` of the command line."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def put(path: Path, content: str | bytes | list[Any]) -> Path:
    """Write a file: a text, bytes, or rows as JSON lines."""
    if isinstance(content, list):
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path: Path, **options: Any) -> str:
    """The message of the error when a file is read, without the name of the file."""
    with pytest.raises(DataError) as caught:
        list(corpus.read(path, **options))
    message = str(caught.value)
    assert message.startswith(str(path)), message
    assert "; " in message, message
    assert "\n" not in message
    return message.removeprefix(str(path))


def kinds(path: Path, **options: Any) -> dict[str, str]:
    """The kinds of defects that `check` finds in a file, with the fix of each."""
    return {defect.kind: defect.fix for defect in check([path], **options).defects}


SPANS: list[dict[str, Any]] = [{"start": 0, "end": 2, "label": "PER"}, {"start": 3, "end": 5, "label": "LOC"}]


TRIPLES: list[list[Any]] = [[0, 2, "PER"], [3, 5, "LOC"]]


REGIONS = [{"start": s["start"], "end": s["end"], "labels": [s["label"]]} for s in SPANS]


TAGS = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]


CBLUE: list[dict[str, Any]] = [
    {"start_idx": 0, "end_idx": 1, "type": "PER", "entity": "李明"},
    {"start_idx": 3, "end_idx": 4, "type": "LOC", "entity": "北京"},
]


def task(regions: list[Any], text: str = TEXT) -> dict[str, Any]:
    return {"id": 1, "data": {"text": text}, "annotations": [{"result": regions}]}


def hypertext(first: int, last: int, label: str, **value: Any) -> dict[str, Any]:
    where = {"start": "/text()[1]", "end": "/text()[1]", "startOffset": first, "endOffset": last}
    return {"type": "hypertextlabels", "value": {**where, "hypertextlabels": [label], **value}}


ROWS: dict[str, tuple[str, dict[str, Any] | list[Any]]] = {
    "own rows": ("jsonl", {"text": TEXT, "entities": SPANS}),
    "own rows with the texts of tokens": (
        "jsonl",
        {"text": TEXT, "tokens": ["李明", "在", "北京"], "entities": SPANS},
    ),
    "entities under 'ner'": ("jsonl", {"text": TEXT, "ner": SPANS}),
    "entities under 'mentions'": ("jsonl", {"text": TEXT, "mentions": SPANS}),
    "entities under 'annotations'": ("jsonl", {"text": TEXT, "annotations": SPANS}),
    "entities under 'spans'": ("jsonl", {"text": TEXT, "spans": SPANS}),
    "entities under 'label'": ("jsonl", {"text": TEXT, "label": TRIPLES}),
    "entities under 'labels'": ("jsonl", {"text": TEXT, "labels": TRIPLES, "label": "news"}),
    "entities with a type": (
        "jsonl",
        {"text": TEXT, "entities": [{**s, "type": s["label"], "label": None} for s in SPANS]},
    ),
    "CBLUE's CMeEE": ("cmeee-json", {"text": TEXT, "entities": CBLUE}),
    "CMeEE with exclusive ends": (
        "cmeee-json",
        {"text": TEXT, "entities": [{**item, "end_idx": item["end_idx"] + 1} for item in CBLUE]},
    ),
    "Label Studio": ("label-studio", task([{"value": value} for value in REGIONS])),
    "Label Studio with a text of another name": (
        "label-studio",
        {"data": {"content": TEXT}, "annotations": [{"result": [{"value": value} for value in REGIONS]}]},
    ),
    "Label Studio, HyperText": ("label-studio", task([hypertext(0, 2, "PER"), hypertext(3, 5, "LOC")])),
    "Label Studio, HyperText with global offsets": (
        "label-studio",
        task([
            hypertext(9, 9, "PER", start="/p[1]", globalOffsets={"start": 0, "end": 2}),
            hypertext(9, 9, "LOC", start="/p[1]", globalOffsets={"start": 3, "end": 5}),
        ]),
    ),
    "Label Studio's JSON-MIN": ("label-studio", {"id": 1, "text": TEXT, "label": REGIONS}),
    "Label Studio's JSON-MIN with another control": ("label-studio", {"id": 1, "text": TEXT, "our_names": REGIONS}),
    "Label Studio's JSON-MIN, two controls": ("label-studio", {"text": TEXT, "a": REGIONS[:1], "b": REGIONS[1:]}),
    "Prodigy": (
        "prodigy",
        {
            "text": TEXT,
            "tokens": [{"text": c, "start": i, "end": i + 1, "id": i} for i, c in enumerate(TEXT)],
            "spans": [{**s, "token_start": s["start"], "token_end": s["end"] - 1} for s in SPANS],
            "answer": "accept",
        },
    ),
    "GLiNER": ("gliner", {"tokenized_text": ["李明", "在", "北", "京"], "ner": [[0, 0, "PER"], [2, 3, "LOC"]]}),
    "W2NER": (
        "w2ner",
        {
            "sentence": list(TEXT),
            "ner": [{"index": [0, 1], "type": "PER"}, {"index": [3, 4], "type": "LOC"}],
            "word": [],
        },
    ),
    "Hugging Face": ("huggingface", {"id": "7", "tokens": list(TEXT), "ner_tags": TAGS}),
    "Hugging Face with words": (
        "huggingface",
        {"tokens": ["李明", "在", "北京"], "ner_tags": ["B-PER", "O", "B-LOC"], "pos_tags": [1, 2, 1]},
    ),
    "tags under 'labels' for a text": ("huggingface", {"text": TEXT, "labels": TAGS}),
    "spaCy": ("spacy", [TEXT, {"entities": TRIPLES}]),
    "CLUENER": ("cluener", {"text": TEXT, "label": {"PER": {"李明": [[0, 1]]}, "LOC": {"北京": [[3, 4]]}}}),
}  # fmt: skip


@st.composite
def documents(draw: st.DrawFn, flat: bool = False) -> Document:
    """Documents with any characters and with entities anywhere."""
    text = draw(st.text(st.sampled_from('我们在渝中ab1 \n\t😀\u3000\ufeff"\\'), min_size=1, max_size=12))
    cuts = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda cut: cut[0] != cut[1])
    spans = sorted({(min(cut), max(cut)) for cut in draw(st.lists(cuts, max_size=4))}, key=lambda s: (s[0], -s[1]))
    if flat:
        spans = [span for i, span in enumerate(spans) if all(span[0] >= other[1] for other in spans[:i])]
    labels = [draw(st.sampled_from(["PER", "类 型", "a-b_c"])) for _ in spans]
    return document(text, *((start, end, label) for (start, end), label in zip(spans, labels, strict=True)))


def columns(path: Path, *sentences: str) -> Path:
    """Write a file of columns; ``"我/B-X 们/I-X"`` is a sentence."""
    rows = (word.replace("/", "\t") for sentence in sentences for word in [*sentence.split(" "), ""])
    path.write_text("\n".join(rows), encoding="utf-8")
    return path

"""Integrations where their libraries are not installed, with the few functions of a library that they call.

With the libraries themselves they are tested in the other files of this folder; see scripts/integrations.
"""

import gc
import importlib
import pickle
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import hanlattice
from hanlattice.annotation.output_formats import entity_type
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError, ModelError
from hanlattice.integrations.columns import _is_missing, documents_of, require_column, rows_of

TEXT = "雷军在北京发布小米14，央视直播。"


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load("lite")


def module(name: str, **contents: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(contents)
    return made


def imported(name: str, libraries: list[ModuleType], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of an integration, with libraries in place of those that it imports."""
    if find_spec(libraries[0].__name__) is not None:
        pytest.skip("the library is installed")
    for library in libraries:
        monkeypatch.setitem(sys.modules, library.__name__, library)
    whole = f"hanlattice.integrations.{name}"
    monkeypatch.delitem(sys.modules, whole, raising=False)
    made = importlib.import_module(whole)
    monkeypatch.delitem(sys.modules, whole)
    return made


class Odd:
    """A cell without a truth value, such as pandas.NA, or one whose comparison is an array."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __ne__(self, other: object) -> Any:
        raise self.error


def test_missing_cells(ner: hanlattice.NER) -> None:
    cells = [None, float("nan"), Odd(TypeError)]
    assert [_is_missing(cell) for cell in cells] == [True] * 3
    assert [_is_missing(cell) for cell in ("", 0, b"x", Odd(ValueError))] == [False] * 4
    read = documents_of([TEXT, *cells, ""], ner, batch_size=2)
    assert [d.text for d in read] == [TEXT, "", "", "", ""]
    assert [len(d.entities) for d in read[1:]] == [0] * 4
    expected = [(e.start, e.end, e.text, e.label, e.score, None, None) for e in ner(TEXT).entities]
    assert [tuple(row.values()) for row in rows_of(read[0])] == expected
    assert [*rows_of(read[0])[0]] == [field.name for field in entity_type().value_type]
    with pytest.raises(DataError, match="row 1 of 'text' is 3, not a text"):
        documents_of(["", 3], ner)


def test_rows_keep_fragments_and_values() -> None:
    document = Document(
        "上肢、下肢疼痛",
        (Entity("上肢、下肢疼痛", "SYM", 0, 7, 0.5, ((0, 2), (5, 7))), Entity("上肢", "BOD", 0, 2, value="arm")),
    )
    assert [(row["fragments"], row["value"]) for row in rows_of(document)] == [
        ([[0, 2], [5, 7]], None),
        (None, "arm"),
    ]


def test_columns_to_read_and_to_write() -> None:
    require_column(iter(["a", "b"]), "a", "c")
    with pytest.raises(DataError, match="there is no column 'c'; there are 'a', 'b'"):
        require_column(iter(["a", "b"]), "c", "d")
    with pytest.raises(DataError, match="there is a column 'b' already; name another with entities='NAME'"):
        require_column(iter(["a", "b"]), "a", "b")


class Series(list[Any]):
    """A column of pandas or polars, with its name, index and type."""

    def __init__(self, values: Any, data: Any = None, *, index: Any = None, dtype: Any = None) -> None:
        super().__init__(values if data is None else data)
        self.name = "texts" if data is None else values
        self.index, self.dtype = index, dtype  # type: ignore[method-assign]


class Frame(dict[str, Series]):
    index = ("i", "j")

    @property
    def columns(self) -> list[str]:
        return list(self)

    def assign(self, **more: Series) -> "Frame":
        return Frame({**self, **more})

    def with_columns(self, column: Series) -> "Frame":
        return Frame({**self, column.name: column})


def test_frames_of_pandas(ner: hanlattice.NER, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = imported("pandas", [module("pandas", DataFrame=Frame, Series=Series)], monkeypatch)
    frame = Frame(title=Series([TEXT, None]))
    found = ours.annotate(frame, ner, text="title", entities="names")
    assert [list(column) for column in found.values()] == [[TEXT, None], [rows_of(ner(TEXT)), []]]
    assert (found["names"].index, found["names"].dtype, "names" in frame) == (("i", "j"), object, False)
    assert [d.entities for d in ours.documents(Series([TEXT, None]), ner)] == [ner(TEXT).entities, ()]
    with pytest.raises(DataError, match="row 0 of 'texts' is 3"):
        ours.documents(Series([3]), ner)
    with pytest.raises(DataError, match="there is no column 'text'"):
        ours.annotate(frame, ner)


def test_frames_of_polars(ner: hanlattice.NER, monkeypatch: pytest.MonkeyPatch) -> None:
    types = {name: name for name in ("Int64", "String", "Float64")}
    library = module(
        "polars",
        DataFrame=Frame,
        LazyFrame=type("LazyFrame", (), {}),
        Series=Series,
        List=lambda kind: [kind],
        Struct=lambda kinds: [*kinds.items()],
        **types,
    )
    ours = imported("polars", [library], monkeypatch)
    with pytest.raises(DataError, match=r"annotate frame\.collect\(\)"):
        ours.annotate(library.LazyFrame(), ner)
    found = ours.annotate(Frame(text=Series([TEXT, None])), ner)
    assert [list(column) for column in found.values()] == [[TEXT, None], [rows_of(ner(TEXT)), []]]
    assert found["entities"].dtype == ours.ENTITIES == [[
        ("start", "Int64"), ("end", "Int64"), ("text", "String"), ("label", "String"), ("score", "Float64"),
        ("fragments", [["Int64"]]), ("value", "String"),
    ]]  # fmt: skip
    assert [d.entities for d in ours.documents(Series([TEXT, None]), ner)] == [ner(TEXT).entities, ()]
    with pytest.raises(DataError, match="there is a column 'text' already"):
        ours.annotate(Frame(text=Series([])), ner, entities="text")


class Dataset:
    """A data set of ``datasets``: columns with features."""

    def __init__(self, columns: dict[str, list[Any]], features: dict[str, Any]) -> None:
        self.columns, self.features, self.column_names = columns, features, list(columns)
        self.options: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @classmethod
    def from_dict(cls, columns: dict[str, list[Any]], features: dict[str, Any]) -> "Dataset":
        return cls(columns, features)

    def map(self, function: Any, *, features: dict[str, Any], **options: Any) -> "Dataset":
        made = Dataset({**self.columns, **function(self.columns)}, features)
        made.options = options
        return made

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True))


class ClassLabel:
    def __init__(self, names: list[str]) -> None:
        self.names = names


class ListOf:
    def __init__(self, feature: Any) -> None:
        self.feature = feature


def test_data_sets(ner: hanlattice.NER, monkeypatch: pytest.MonkeyPatch) -> None:
    class Numbered(Dataset):
        """As a real one, it holds the numbers of the tags."""

        @classmethod
        def from_dict(cls, columns: dict[str, list[Any]], features: dict[str, Any]) -> "Dataset":
            names = features["ner_tags"].feature.names
            tags = [[names.index(tag) for tag in row] for row in columns["ner_tags"]]
            return cls({**columns, "ner_tags": tags}, features)

    library = module("datasets", ClassLabel=ClassLabel, Dataset=Numbered, Features=dict, Value=str, List=ListOf)
    ours = imported("datasets", [library], monkeypatch)
    given = Dataset({"text": [TEXT, None]}, {"text": "string"})
    found = ours.annotate(given, ner)
    assert found.columns == {"text": [TEXT, None], "entities": [rows_of(ner(TEXT)), []]}
    assert found.features == {"text": "string", "entities": ours.ENTITIES}
    assert found.options == {"batched": True, "load_from_cache_file": False}
    with pytest.raises(DataError, match="there is a column 'text' already"):
        ours.annotate(given, ner, entities="text")

    documents = [
        Document("李明在北京", (Entity("李明", "PER", 0, 2), Entity("北京", "LOC", 3, 5))),
        Document("无", ()),
    ]
    made = ours.to_dataset(documents)
    assert made.columns["tokens"] == [list("李明在北京"), ["无"]]
    assert made.features["ner_tags"].feature.names == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert made.columns["ner_tags"] == [[3, 4, 0, 1, 2], [0]]
    again = list(ours.from_dataset(made))
    assert [(d.text, d.spans, d.meta["@line"]) for d in again] == [
        (d.text, d.spans, i) for i, d in enumerate(documents, 1)
    ]
    ordered = ours.to_dataset(documents, ["PER", "X", "LOC"], scheme="BMES")
    assert [name[2:] for name in ordered.features["ner_tags"].feature.names[1::4]] == ["PER", "X", "LOC"]
    with pytest.raises(DataError, match="an entity has the label 'LOC'; labels has 'PER'"):
        ours.to_dataset(documents, ["PER"])


class EntityRecognizer:
    """The base class of Presidio."""

    def __init__(self, supported_entities: list[str], supported_language: str, name: str, **options: Any) -> None:
        self.supported_entities, self.supported_language = supported_entities, supported_language
        self.name, self.options, self.id = name, options, f"{name}_1"
        self.load()

    def load(self) -> None: ...


class RecognizerResult:
    RECOGNIZER_NAME_KEY, RECOGNIZER_IDENTIFIER_KEY = "name", "identifier"

    def __init__(self, *parts: Any) -> None:
        self.parts = parts


def test_findings_of_presidio(ner: hanlattice.NER, monkeypatch: pytest.MonkeyPatch) -> None:
    explained = module(
        "presidio_analyzer",
        AnalysisExplanation=lambda **parts: parts,
        EntityRecognizer=EntityRecognizer,
        RecognizerResult=RecognizerResult,
    )
    ours = imported("presidio", [explained], monkeypatch)
    recognizer = ours.HanlatticeRecognizer(ner, context=["x"])
    assert recognizer.supported_entities == ["LOCATION", "ORGANIZATION", "PERSON"]
    assert (recognizer.supported_language, recognizer.name) == ("zh", "HanlatticeRecognizer")
    assert recognizer.options == {"context": ["x"]}
    names = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}
    expected = [(names[e.label], e.start, e.end, e.score) for e in ner(TEXT).entities if e.label in names]
    for all_of_them in (None, [], list(names.values())):
        assert [result.parts[:4] for result in recognizer.analyze(TEXT, all_of_them)] == expected
    for wanted in ("PERSON", "LOCATION", "DATE"):
        found = recognizer.analyze(TEXT, [wanted])
        assert [result.parts[:4] for result in found] == [row for row in expected if row[0] == wanted]
    *_, score, why, metadata = recognizer.analyze(TEXT, None)[0].parts
    assert why["original_score"] == score
    assert metadata == {"name": "HanlatticeRecognizer", "identifier": "HanlatticeRecognizer_1"}
    other = ours.HanlatticeRecognizer(ner, entities={"PER": "NAME"}, language="x", name="mine")
    assert {result.parts[0] for result in other.analyze(TEXT, None)} == {"NAME"}
    assert (other.supported_language, other.name) == ("x", "mine")
    assert other.analyze(TEXT, ["PERSON"]) == []
    unscored = SimpleNamespace(entities=(Entity("雷军", "PER", 0, 2),))
    other.ner = lambda text: unscored
    assert other.analyze(TEXT, None)[0].parts[3] == 1.0


class Span:
    def __init__(self, doc: "Doc", start: int, end: int, label: str) -> None:
        self.doc, self.start, self.end, self.label_ = doc, start, end, label

    def __iter__(self) -> Iterator[Any]:
        return (SimpleNamespace(i=i) for i in range(self.start, self.end))

    def __lt__(self, other: "Span") -> bool:
        return self.start < other.start

    @property
    def row(self) -> tuple[int, int, str]:
        return self.start, self.end, self.label_


class Group(list[Span]):
    def __init__(self, spans: list[Span]) -> None:
        super().__init__(spans)
        self.attrs: dict[str, Any] = {}


class Groups(dict[str, Group]):
    def __setitem__(self, key: str, spans: list[Span]) -> None:
        super().__setitem__(key, Group(spans))


class Doc:
    """A text of tokens as spaCy has it; each token is a given number of characters."""

    ents: tuple[Span, ...]

    def __init__(self, text: str, sizes: list[int] | None = None) -> None:
        sizes = sizes or [1] * len(text)
        self.bounds = [(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(len(sizes))]
        self.text, self.spans, self.ents = text, Groups(), ()

    def char_span(self, start: int, end: int, label: str, alignment_mode: str) -> Span | None:
        if alignment_mode == "expand":
            inside = [i for i, (a, b) in enumerate(self.bounds) if a < end and start < b]
        else:
            inside = [i for i, (a, b) in enumerate(self.bounds) if start <= a and b <= end]
        if not inside:
            return None
        first, last = inside[0], inside[-1]
        exact = self.bounds[first][0] == start and self.bounds[last][1] == end
        return Span(self, first, last + 1, label) if exact or alignment_mode != "strict" else None

    def set_ents(self, spans: list[Span]) -> None:
        self.ents = tuple(spans)


def filter_spans(spans: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start - s.end, s.start)):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    return kept


def unpickled(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except (EOFError, pickle.UnpicklingError) as error:
        raise ValueError(error) from None


@pytest.fixture
def spacy(monkeypatch: pytest.MonkeyPatch) -> Any:
    def factory(name: str, **options: Any) -> Any:
        assert (name, options["assigns"]) == ("hanlattice", ["doc.ents", "doc.spans"])
        return lambda function: function

    libraries = [
        module("spacy"),
        module("spacy.language", Language=SimpleNamespace(factory=factory)),
        module("spacy.tokens", Doc=Doc, Span=Span),
        module("spacy.util", filter_spans=filter_spans),
        module("srsly", msgpack_dumps=pickle.dumps, msgpack_loads=unpickled),
    ]
    return imported("spacy", libraries, monkeypatch)


def rows(spans: Any) -> list[tuple[int, int, str]]:
    return [span.row for span in spans]


def test_docs_of_spacy(spacy: Any, ner: hanlattice.NER) -> None:
    component = spacy.HanlatticeComponent(
        {"model": "lite"} if Path("lite").exists() else {"model": str(ner.folder)}
    )
    expected = [(e.start, e.end, e.label) for e in ner(TEXT).entities]
    doc = component(Doc(TEXT))
    assert rows(doc.ents) == rows(doc.spans["hanlattice"]) == expected
    assert doc.spans["hanlattice"].attrs["scores"].tolist() == pytest.approx([e.score for e in ner(TEXT).entities])
    docs = [Doc(TEXT), Doc(""), Doc("李明在上海")]
    found = list(component.pipe(iter(docs), batch_size=1))
    assert found == docs
    assert [len(one.ents) for one in found] == [len(ner(one.text).entities) for one in docs]
    component.settings["threshold"] = 1.0
    assert component(Doc(TEXT)).ents == ()


def component_with(spacy: Any, entities: list[Entity], **settings: Any) -> Any:
    """A component whose entities are known."""
    component = spacy.HanlatticeComponent({"model": "/not/yet/there", **settings})
    return lambda doc: component._set(doc, entities) or doc


def test_entities_that_do_not_fit_tokens(spacy: Any) -> None:
    given = [Entity("bc", "X", 1, 3, 0.5), Entity("d", "Y", 3, 4)]
    for mode, expected in (
        ("expand", [(0, 2, "X"), (2, 3, "Y")]),
        ("contract", [(1, 2, "X"), (2, 3, "Y")]),
        ("strict", [(2, 3, "Y")]),
    ):
        component = component_with(spacy, given, alignment_mode=mode)
        with pytest.warns(UserWarning, match=rf"'bc' at characters 1 to 3 .* \(alignment_mode='{mode}'\)"):
            doc = component(Doc("abcd", [2, 1, 1]))
        assert rows(doc.ents) == expected
        assert doc.spans["hanlattice"].attrs["scores"].tolist() == [0.5, 0.0][-len(expected) :]
        assert rows(component(Doc("abcd", [2, 1, 1])).ents) == expected, "there is one warning only"
    inside = component_with(spacy, [Entity("b", "X", 1, 2)], alignment_mode="contract")
    with pytest.warns(UserWarning, match="shrunk to whole tokens"):
        assert inside(Doc("abcd", [4])).ents == ()


def test_overlaps_and_earlier_entities(spacy: Any) -> None:
    given = [Entity("ab", "X", 0, 2), Entity("abc", "Y", 0, 3), Entity("e", "Z", 4, 5)]
    for overwrite, expected in (
        (True, [(0, 3, "Y"), (4, 5, "Z")]),
        (False, [(0, 2, "X"), (2, 4, "old"), (4, 5, "Z")]),
    ):
        doc = Doc("abcde")
        doc.ents = (Span(doc, 2, 4, "old"),)
        doc = component_with(spacy, given, overwrite_ents=overwrite, spans_key="mine")(doc)
        assert rows(doc.ents) == expected
        assert rows(doc.spans["mine"]) == [(0, 2, "X"), (0, 3, "Y"), (4, 5, "Z")]
    assert component_with(spacy, given, spans_key=None)(Doc("abcde")).spans == {}


def test_settings_of_the_component(spacy: Any) -> None:
    for settings, message in (
        ({"x": 1}, "unknown setting 'x'"),
        ({"alignment_mode": "x"}, "alignment_mode must be one of 'expand', 'contract', 'strict', not 'x'"),
        ({"threshold": 1.1}, "threshold must be between 0 and 1, not 1.1"),
        ({"threshold": -0.1}, "threshold must be between 0 and 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            spacy.HanlatticeComponent(settings)
    later = spacy.HanlatticeComponent({"model": "/not/yet/there", "threshold": 1})
    assert later.settings == {
        "model": "/not/yet/there", "convention": "", "engine": "auto", "threads": 0, "threshold": 1,
        "alignment_mode": "expand", "spans_key": "hanlattice", "overwrite_ents": True,
    }  # fmt: skip
    with pytest.raises(ModelError):
        _ = later.ner
    made = spacy.create(None, "x", "/not/yet/there", "c", "numpy", 2, 0.5, "strict", "k", False)
    assert list(made.settings.values()) == ["/not/yet/there", "c", "numpy", 2, 0.5, "strict", "k", False]


def test_a_component_on_the_disk(spacy: Any, ner: hanlattice.NER, tmp_path: Path) -> None:
    component = spacy.HanlatticeComponent({"model": str(ner.folder), "threshold": 0.2})
    component.ner.lexicon.add("阿巴卡星")
    component.to_disk(tmp_path / "a" / "b")
    again = spacy.HanlatticeComponent({}).from_disk(tmp_path / "a" / "b")
    assert again.settings == component.settings
    assert "阿巴卡星" in again.ner.lexicon
    assert again.ner.folder == tmp_path / "a" / "b" / "model"
    card = again.ner.folder / "README.md"
    card.write_text("as it is", "utf-8")
    again.to_disk(tmp_path / "a" / "b")
    assert card.read_text("utf-8") == "as it is", "its own folder is left alone unless words were edited"
    again.ner.lexicon.add("新词")
    again.to_disk(tmp_path / "a" / "b")
    assert "新词" in spacy.HanlatticeComponent({"threshold": 0.1}).from_disk(tmp_path / "a" / "b").ner.lexicon
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["hanlattice.json", "model"]
    for content in ("{", "[]", "{}"):
        (tmp_path / "a" / "b" / "hanlattice.json").write_text(content)
        with pytest.raises(ModelError, match=r"hanlattice\.json: missing or broken .*; save the pipeline again"):
            again.from_disk(tmp_path / "a" / "b")


@pytest.mark.parametrize("packaged", [True, False])
def test_a_component_in_bytes(spacy: Any, ner: hanlattice.NER, packaged: bool) -> None:
    component = spacy.HanlatticeComponent({"model": None if packaged else str(ner.folder), "threshold": 0.2})
    component.ner.lexicon.add("阿巴卡星")
    content = component.to_bytes()
    again = spacy.HanlatticeComponent({}).from_bytes(content)
    assert again.settings == component.settings
    assert "阿巴卡星" in again.ner.lexicon
    assert again.to_bytes() == content
    folder = again.ner.folder
    del again
    gc.collect()
    assert folder.exists() == packaged, "the temporary folder goes with the component"
    for other in (b"", b"abc", pickle.dumps({}), pickle.dumps({"hanlattice.json": b"", "../a": b""})):
        with pytest.raises(ModelError, match="these bytes are not from to_bytes of this component"):
            component.from_bytes(other)


def test_the_packaged_model_is_named_and_not_copied(spacy: Any, tmp_path: Path) -> None:
    component = spacy.HanlatticeComponent({})
    (tmp_path / "model").mkdir()
    component.to_disk(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["hanlattice.json"]
    again = spacy.HanlatticeComponent({}).from_disk(tmp_path)
    assert again.ner.folder == component.ner.folder
    component.ner.lexicon.add("阿巴卡星")
    component.to_disk(tmp_path)
    read = again.from_disk(tmp_path).ner.lexicon
    assert "阿巴卡星" in read
    assert (read.known_labels, read.longest) == (component.ner.lexicon.known_labels, component.ner.lexicon.longest)
    assert read.rewrite is not None
    spacy.HanlatticeComponent({}).to_disk(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["hanlattice.json"]
    state = (tmp_path / "hanlattice.json").read_text("utf-8")
    (tmp_path / "hanlattice.json").write_text(state.replace('"packaged": "', '"packaged": "0'), "utf-8")
    with pytest.raises(ModelError, match="another version of hanlattice"):
        spacy.HanlatticeComponent({}).from_disk(tmp_path)

"""Data sets of Hugging Face, with datasets."""

from dataclasses import replace

import pytest

import hanlattice
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError

datasets = pytest.importorskip("datasets", reason="datasets is not installed (scripts/integrations)")
from hanlattice.integrations import datasets as hl  # noqa: E402

GOLD = [
    Document("雷军在北京", (Entity("雷军", "PER", 0, 2), Entity("北京", "LOC", 3, 5))),
    Document("今天很好"),
    Document("央视直播", (Entity("央视", "ORG", 0, 2),)),
]


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


def test_missing_texts_have_no_entities(ner: hanlattice.NER) -> None:
    data = datasets.Dataset.from_dict({"id": [1, 2, 3], "text": ["雷军在北京", None, "央视直播"]})
    out = hl.annotate(data, ner)
    assert out.features["entities"] == hl.ENTITIES
    assert [[e["text"] for e in row] for row in out["entities"]] == [["雷军", "北京"], [], ["央视"]]
    assert out["id"][:] == [1, 2, 3]
    with pytest.raises(DataError, match="there is no column 'title'"):
        hl.annotate(data, ner, text="title")


def test_an_empty_data_set_has_the_column_too(ner: hanlattice.NER) -> None:
    data = datasets.Dataset.from_dict({"id": [1], "text": ["雷军"]}).select([])
    out = hl.annotate(data, ner)
    assert (len(out), out.features) == (0, {**data.features, "entities": hl.ENTITIES})


@pytest.mark.parametrize("scheme", ["BIO", "BMES"])
def test_documents_come_back(scheme: str) -> None:
    data = hl.to_dataset(GOLD, scheme=scheme)
    assert data.features["ner_tags"].feature.names[0] == "O"
    assert data["tokens"][0] == list("雷军在北京")
    back = [replace(document, meta={}) for document in hl.from_dataset(data)]
    assert back == GOLD


def test_labels_have_a_fixed_order() -> None:
    data = hl.to_dataset(GOLD, ["ORG", "PER", "LOC", "TIME"])
    assert data.features["ner_tags"].feature.names[1:3] == ["B-ORG", "I-ORG"]
    assert data["ner_tags"][2] == [1, 2, 0, 0]
    with pytest.raises(DataError, match="the label 'LOC'; labels has 'PER'"):
        hl.to_dataset(GOLD, ["PER"])


def test_tags_without_names_are_one_line() -> None:
    data = datasets.Dataset.from_dict({"tokens": [["雷"]], "ner_tags": [[1]]})
    with pytest.raises(DataError, match="are numbers, and their names are not known"):
        list(hl.from_dataset(data))

"""Labels are renamed in one way, by the settings of training and by ``--map``."""

import pytest

from hanlattice.corpus.labels import relabelled
from hanlattice.document import Document, Entity

TEXT = "他在北京"
TWICE = Document(TEXT, (Entity("北京", "GPE", 2, 4), Entity("北京", "LOC", 2, 4, 0.5)), id="1", meta={"by": "a"})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"GPE": "LOC"}, [("LOC", None)]),
        ({"LOC": "GPE"}, [("GPE", None)]),
        ({"GPE": "X", "LOC": "X"}, [("X", None)]),
        ({"GPE": "LOC", "LOC": "GPE"}, [("LOC", None), ("GPE", 0.5)]),
        ({"PER": "X"}, [("GPE", None), ("LOC", 0.5)]),
        ({}, [("GPE", None), ("LOC", 0.5)]),
    ],
)
def test_of_entities_that_become_equal_the_first_one_stays(
    labels: dict[str, str], expected: list[tuple[str, float | None]]
) -> None:
    [document] = relabelled([TWICE], labels)
    assert [(entity.label, entity.score) for entity in document.entities] == expected
    assert (document.text, document.id, document.meta) == (TWICE.text, TWICE.id, TWICE.meta)


def test_entities_that_differ_in_their_fragments_are_not_equal() -> None:
    whole, parts = Entity(TEXT, "A", 0, 4), Entity(TEXT, "B", 0, 4, fragments=((0, 1), (2, 4)))
    [document] = relabelled([Document(TEXT, (whole, parts))], {"A": "C", "B": "C"})
    assert [entity.fragments for entity in document.entities] == [whole.fragments, parts.fragments]
    assert {entity.label for entity in document.entities} == {"C"}

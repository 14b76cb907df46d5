"""Documents, entities and lattices: what they hold, and the forms that they can be written in."""

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from xml.etree import ElementTree

import pytest

import tiny
from hanlattice.document import Document, Entity, Lattice, Word, html_page
from hanlattice.errors import HanlatticeError
from hanlattice.spans import Span

TEXT = "王小明去了北京。"
PERSON = Entity("王小明", "PER", 0, 3)
PLACE = Entity("北京", "LOC", 5, 7, score=0.98765432)


def test_spans_of_a_document() -> None:
    assert Document(TEXT, (PERSON, PLACE)).spans == [Span(0, 3, "PER"), Span(5, 7, "LOC")]


def test_to_dict_leaves_out_missing_values() -> None:
    assert Document(TEXT, (PERSON, PLACE)).to_dict() == {
        "text": TEXT,
        "entities": [
            {"start": 0, "end": 3, "text": "王小明", "label": "PER"},
            {"start": 5, "end": 7, "text": "北京", "label": "LOC", "score": 0.987654},
        ],
    }
    assert Document("", id="s1").to_dict() == {"text": "", "entities": [], "id": "s1"}


def test_to_dict_has_the_value_of_a_regular_entity() -> None:
    row = Entity("三月五日", "DATE", 0, 4, value="03-05").to_dict()
    assert row == {"start": 0, "end": 4, "text": "三月五日", "label": "DATE", "value": "03-05"}


def test_to_dict_has_the_fragments_of_a_discontinuous_entity() -> None:
    entity = Entity("上肢疼痛", "SYM", 0, 4, fragments=((0, 2), (3, 4)))
    assert entity.to_dict()["fragments"] == [[0, 2], [3, 4]]
    assert "fragments" not in PERSON.to_dict()


def test_every_entity_has_fragments() -> None:
    """An entity with one fragment may name it or not."""
    assert Entity("王小明", "PER", 0, 3, fragments=((0, 3),)) == PERSON
    assert (PERSON.fragments, PERSON.parts, PERSON.discontinuous) == (((0, 3),), ("王小明",), False)
    pain = Entity.of("上肢皮肤疼痛", Span.of([(0, 2), (4, 6)], "SYM"), 0.5)
    assert pain == Entity("上肢皮肤疼痛", "SYM", 0, 6, 0.5, ((0, 2), (4, 6)))
    assert (pain.parts, pain.discontinuous) == (("上肢", "疼痛"), True)
    assert pain.span == Span(0, 6, "SYM", ((2, 4),))
    touching = Entity("上肢", "SYM", 0, 2, fragments=((0, 1), (1, 2)))
    assert touching.span == Span(0, 2, "SYM")


@pytest.mark.parametrize(
    "fragments",
    [
        ((0, 1), (2, 3)),
        ((1, 2), (3, 4)),
        ((2, 4), (0, 1)),
        ((0, 3), (2, 4)),
        ((0, 4), (2, 4)),
        ((0, 1),),
        ((1, 4),),
    ],
)
def test_fragments_must_be_in_order_from_start_to_end(fragments: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(HanlatticeError, match=r"do not reach from 0 to 4 in order"):
        Entity("上肢疼痛", "SYM", 0, 4, fragments=fragments)


def test_to_tags() -> None:
    document = Document(TEXT, (PERSON, PLACE))
    assert document.to_tags() == ["B-PER", "M-PER", "E-PER", "O", "O", "B-LOC", "E-LOC", "O"]
    assert document.to_tags("BIO") == ["B-PER", "I-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O"]
    assert Document("").to_tags() == []


def test_overlapping_entities_cannot_become_tags() -> None:
    nested = Document("北京大学", (Entity("北京大学", "ORG", 0, 4), Entity("北京", "LOC", 0, 2)))
    with pytest.raises(ValueError, match=r"LOC \[0, 2\) and ORG \[0, 4\) overlap"):
        nested.to_tags()
    with pytest.raises(HanlatticeError, match="unknown tag scheme 'IOB1'"):
        Document(TEXT).to_tags("IOB1")


class Texts:
    """Computes what a model would."""

    def lattice(self, index: int) -> Lattice:
        return Lattice("重庆" * index, (), (), (), ())

    def words(self, index: int) -> tuple[Word, ...]:
        return (Word("王小明", "nr", index, 3),)


def test_a_document_is_pickled_without_its_lattice() -> None:
    document = Document(TEXT, (PERSON,), "a", ((0, 3), (3, 8)), {"@line": 3}, Texts(), 1)
    again = pickle.loads(pickle.dumps(document))
    assert again == document
    assert (again.source, again.lattice, again.words) == (None, None, None)


@pytest.mark.parametrize("copied", [copy, deepcopy])
def test_a_copy_keeps_its_lattice(copied: Callable[[Document], Document]) -> None:
    document = tiny.ner()("王小明去了北京。")
    again = copied(document)
    assert again == document
    assert again.lattice == document.lattice is not None
    marked = Document(TEXT, meta={"a": [1]})
    deepcopy(marked).meta["a"].append(2)
    assert marked.meta == {"a": [1]}


def test_what_a_model_can_still_compute_is_not_compared_or_shown() -> None:
    """Two documents are equal if their texts and entities are."""
    read, plain = Document(TEXT, (PERSON,), source=Texts(), place=2), Document(TEXT, (PERSON,))
    assert read == plain
    assert repr(read) == repr(plain)
    assert (read.words, read.lattice) == ((Word("王小明", "nr", 2, 3),), Lattice("重庆重庆", (), (), (), ()))
    assert (plain.words, plain.lattice, plain.meta) == (None, None, {})


def test_a_lattice_has_as_many_labels_and_strengths_as_words() -> None:
    with pytest.raises(ValueError, match="zip"):
        list(Lattice("重庆", (0,), (2,), ("重庆",), ()))
    with pytest.raises(ValueError, match="zip"):
        Lattice("重庆", (0,), (2,), ("重庆",), (None,)).to_svg((), (0.5, 0.5))


@pytest.mark.parametrize(("n", "cut"), [(400, False), (401, True)])
def test_a_notebook_shows_400_characters_of_a_lattice(n: int, cut: bool) -> None:
    html = Lattice("字" * n, (), (), (), ())._repr_html_()
    assert ("The first" in html) == ("The first 400 of 401 characters." in html) == cut


def texts(svg: str) -> set[str | None]:
    return {element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}


def test_a_lattice_draws_its_words_with_strengths_and_reasons() -> None:
    lattice = Lattice("重庆人", (0, 1), (2, 3), ("重庆", "庆人"), ("LOC", None))
    svg = lattice.to_svg()
    assert texts(svg) == {*"重庆人"}
    assert "<title>重庆 LOC</title>" in svg
    assert "<title>庆人</title>" in svg
    drawn = lattice.to_svg([Entity("重庆", "LOC", 0, 2)], (1.0, 0.0), ("first reason", "second reason"))
    assert texts(drawn) == {*"重庆人", "LOC"}
    assert 'stroke-width="5"' in drawn
    assert "<title>first reason</title>" in drawn


def test_a_document_that_a_model_has_read_draws_its_lattice() -> None:
    document = tiny.ner()("王小红在北京工作。")
    svg = tiny.lattice(document).to_svg()
    assert svg == tiny.lattice(tiny.ner()("王小红在北京工作。")).to_svg()
    assert texts(svg) == set("王小红在北京工作。")
    html = document.to_html()
    assert html.count("<svg") == 1
    assert "</figure>" in html
    assert "<svg" not in Document("王小红").to_html(), "no model has read it"


def test_a_page_of_several_documents() -> None:
    documents = [tiny.ner()("王小红在北京工作。"), Document("李明")]
    plain, drawn = "".join(html_page(documents)), "".join(html_page(documents, lattices=True))
    assert plain.count("<p>") == drawn.count("<p>") == 2
    assert (plain.count("<svg"), drawn.count("<svg")) == (0, 1)

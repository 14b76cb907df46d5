"""States of a lexicon: when layers are merged, which words are present, and what an edit leaves alone."""

import pytest

from hanlattice.lexicon.layers import GROWTH, SMALL_LAYER, Snapshot
from hanlattice.lexicon.words import PLAIN


def named(numbers: range) -> list[str]:
    return [chr(0x4E00 + n % 5000) + chr(0x4E00 + n // 5000) for n in numbers]


def state(*additions: int) -> Snapshot:
    """A lexicon to which this many new words were added, one edit for each number."""
    made, n = Snapshot(), 0
    for more in additions:
        made = made.edited(dict.fromkeys(named(range(n, n + more)), PLAIN))
        n += more
    return made


def sizes(*additions: int) -> list[int]:
    return [len(layer.words) for layer in state(*additions).layers]


@pytest.mark.parametrize(
    ("additions", "expected"),
    [
        ((0,), []),
        ((SMALL_LAYER, 1), [SMALL_LAYER + 1]),
        ((SMALL_LAYER + 1, 1), [SMALL_LAYER + 1, 1]),
        ((SMALL_LAYER + 1, 1, 1), [SMALL_LAYER + 1, 2]),
        ((2000 * GROWTH, 2000), [2000 * GROWTH + 2000]),
        ((2000 * GROWTH, 1999), [2000 * GROWTH, 1999]),
        ((2500 * GROWTH, 2000, 500), [2500 * GROWTH + 2500]),
        ((2500 * GROWTH + 1, 2000, 500), [2500 * GROWTH + 1, 2500]),
    ],
)
def test_when_layers_are_merged(additions: tuple[int, ...], expected: list[int]) -> None:
    assert sizes(*additions) == expected


def test_ids_are_those_of_the_order_of_addition() -> None:
    made = state(1500, 3, 4000, 2)
    assert [made.text(n) for n in range(made.id_count)] == named(range(5505))
    starts = [layer.start for layer in made.layers]
    assert starts[0] == 0
    assert starts[1:] == [layer.end for layer in made.layers[:-1]]
    for wrong in (-1, 5505):
        with pytest.raises(IndexError, match=r"word id -?\d+ is outside the 5505 of this lexicon"):
            made.text(wrong)


def test_presence() -> None:
    made = state(3)
    a, b, c = named(range(3))
    assert made.present is None
    fewer = made.edited({b: None})
    assert fewer.present is not None
    assert fewer.present.tolist() == [True, False, True]
    assert (fewer.size, fewer.id_count, made.size) == (2, 3, 3)
    more = fewer.edited({"新词": PLAIN, c: None})
    assert more.present is not None
    assert more.present.tolist() == [True, False, False, True]
    again = more.edited({b: PLAIN, c: PLAIN})
    assert again.present is None
    assert (again.size, again.id_count) == (4, 4)
    assert made.edited({"没有": None}).present is None, "a word that is not there cannot be removed"
    assert a == again.text(0)


def test_labels_and_weights_of_an_edit() -> None:
    a, b, c = named(range(3))
    made = state(3).edited({a: ("ORG", 2.0), b: ("", None)})
    assert [made.label(n) for n in range(3)] == ["ORG", None, None]
    made = made.edited({b: ("LOC", None), "新词": ("ORG", 1.5)})
    assert [made.label(n) for n in range(4)] == ["ORG", "LOC", None, "ORG"]
    assert made.labels == ("ORG", "LOC")
    assert [None if w != w else w for w in made.weights.tolist()] == [2.0, None, None, 1.5]
    plain = made.edited({a: PLAIN, c: None})
    assert [plain.label(n) for n in range(4)] == [None, "LOC", None, "ORG"]
    assert [made.label(n) for n in range(4)] == ["ORG", "LOC", None, "ORG"], "the earlier state is as it was"


def test_which_states_begin_alike() -> None:
    first = state(1500)
    second = first.edited(dict.fromkeys(named(range(1500, 1510)), PLAIN))
    merged = state(1500, 400, 10)
    assert second.begins_with(first)
    assert not first.begins_with(second)
    assert merged.begins_with(first), "the layers differ, the words do not"
    assert not state(2000).begins_with(Snapshot().edited(dict.fromkeys(named(range(1, 1500)), PLAIN)))
    labelled = first.edited({named(range(1))[0]: ("ORG", None)})
    assert labelled.begins_with(first)
    assert not first.begins_with(labelled), "its labels have no numbers there"

"""Offsets in other units or with inclusive ends, and offsets that do not match the text."""

import json
from pathlib import Path
from typing import Any

import pytest

from corpus_examples import (
    NAMES,
    SPANS,
    TEXT,
    TRIPLES,
    found,
    kinds,
    put,
    refusal,
    run,
)
from hanlattice import corpus
from hanlattice.corpus import offsets
from hanlattice.corpus.checking import check
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.offsets import Annotation, entities, fitting, in_order
from hanlattice.corpus.source import Source
from hanlattice.errors import HanlatticeError


def counted(text: str, units: str, inclusive: bool) -> list[list[Any]]:
    """The two names of a text that ends in TEXT, by the offsets of other programs."""

    def offset(place: int) -> int:
        if units == "characters":
            return place
        return len(text[:place].encode("utf-16-le")) // 2 if units == "utf16" else len(text[:place].encode())

    first = len(text) - len(TEXT)
    places = ((first + start, first + end, label) for start, end, label in TRIPLES)
    return [[offset(start), offset(end) - inclusive, label] for start, end, label in places]


@pytest.mark.parametrize("units", ["characters", "utf16", "bytes"])
@pytest.mark.parametrize("ends", ["exclusive", "inclusive"])
@pytest.mark.parametrize("form", ["jsonl", "prodigy", "spacy", "csv", "brat", "cmeee"])
def test_ends_and_units_are_options(tmp_path: Path, form: str, ends: str, units: str) -> None:
    texts = ["😀a" + TEXT, TEXT]
    spans = [counted(text, units, ends == "inclusive") for text in texts]
    path = tmp_path / "in"
    if form == "csv":
        rows = "".join(
            f'{t},"{json.dumps(s).replace(chr(34), chr(34) * 2)}"\n' for t, s in zip(texts, spans, strict=True)
        )
        put(path, "text,entities\n" + rows)
    elif form == "brat":
        path.mkdir()
        for i, (text, found_spans) in enumerate(zip(texts, spans, strict=True)):
            put(path / f"{i}.txt", text)
            put(path / f"{i}.ann", "".join(f"T{j}\t{s[2]} {s[0]} {s[1]}\n" for j, s in enumerate(found_spans)))
    elif form == "cmeee":
        put(
            path,
            "".join(
                f"{t}|||{'|||'.join(' '.join(map(str, s)) for s in ss)}|||\n"
                for t, ss in zip(texts, spans, strict=True)
            ),
        )
    elif form == "spacy":
        put(path, json.dumps([[t, {"entities": s}] for t, s in zip(texts, spans, strict=True)]))
    else:
        key = "spans" if form == "prodigy" else "entities"
        items = [[dict(zip(("start", "end", "label"), s, strict=True)) for s in ss] for ss in spans]
        put(path, [{"text": t, key: s, "answer": "accept"} for t, s in zip(texts, items, strict=True)])
    read = list(corpus.read(path, form, ends=ends, units=units))
    assert [found(document) for document in read] == [NAMES] * 2
    out = tmp_path / "out.jsonl"
    assert run("convert", path, out, "--from", form, "--ends", ends, "--units", units).exit_code == 0
    assert [found(document) for document in corpus.read(out)] == [NAMES] * 2
    assert run("check", path, "--from", form, "--ends", ends, "--units", units).exit_code == 0


def test_ends_and_units_need_a_format_with_offsets(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "李\tB-PER\n")
    with pytest.raises(HanlatticeError, match="conll has no offsets; leave out ends and units"):
        list(corpus.read(path, ends="inclusive"))
    row = put(tmp_path / "row", [{"text": TEXT, "entities": SPANS}])
    with pytest.raises(HanlatticeError, match="unknown ends 'both'; allowed are exclusive, inclusive"):
        list(corpus.read(row, ends="both"))
    with pytest.raises(HanlatticeError, match="unknown units 'utf8'; allowed are characters, utf16, bytes"):
        list(corpus.read(row, units="utf8"))


def test_an_offset_inside_a_character_is_an_error(tmp_path: Path) -> None:
    for units, span in (("utf16", [1, 3]), ("bytes", [0, 2])):
        path = put(tmp_path / "file", [{"text": "😀李明", "label": [[*span, "PER"]]}])
        assert f"PER [{span[0]}, {span[1]}) does not lie within" in refusal(path, units=units)


def test_a_mismatch_names_the_option_that_fixes_it(tmp_path: Path) -> None:
    inclusive = [
        {"start": s["start"], "end": s["end"] - 1, "label": s["label"], "text": t}
        for s, (t, _) in zip(SPANS, NAMES, strict=True)
    ]
    assert "; they would match with inclusive ends: hanlattice convert --ends inclusive" in refusal(
        put(tmp_path / "a", [{"text": TEXT, "entities": inclusive}])
    )
    assert "--ends inclusive" in refusal(put(tmp_path / "b", [{"text": TEXT, "label": [[2, 2, "X"]]}]))
    assert "; they would match as UTF-8 bytes: hanlattice convert --units bytes" in refusal(
        put(tmp_path / "c", [{"text": TEXT, "label": [[0, 6, "PER"], [9, 15, "LOC"]]}])
    )
    assert "they would match" not in refusal(put(tmp_path / "d", [{"text": TEXT, "label": [[0, 99, "PER"]]}]))


def test_offsets_that_match_only_as_utf16_are_reported(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": "😀在北京", "label": [[3, 5, "LOC"]]}])
    assert [found(document) for document in corpus.read(path)] == [[("北京", "LOC")]]
    assert kinds(path) == {"UTF-16 offsets": "read the whole file with --units utf16"}


def test_a_surface_that_does_not_match_the_text_is_a_defect(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT, "entities": [{**SPANS[0], "text": "王明"}]}])
    report = check([path])
    assert report.kinds["misaligned span"] == 1
    assert not report.usable


TEXTS = ["", "李", "李明李", "aaa", "ab李ab李ab", "李李李李"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("surface", ["李", "aa", "ab", "ab李", "明", "李李"])
def test_the_nearest_occurrence_by_trying_every_place(text: str, surface: str) -> None:
    places = [i for i in range(len(text)) if text.startswith(surface, i)]
    for start in range(-2, len(text) + 2):
        expected = min(places, key=lambda place: (abs(place - start), place), default=-1)
        assert offsets._nearest(text, surface, start) == expected


@pytest.mark.parametrize(
    ("surface", "fragments", "same"),
    [
        ("李 明", ((0, 3),), True),
        ("李\n明", ((0, 3),), True),
        ("李  明", ((0, 3),), True),
        ("李明", ((0, 3),), False),
        ("李 明 ", ((0, 3),), False),
        (" 李 明", ((0, 3),), False),
        ("李 在", ((0, 1), (3, 4)), True),
        ("李 明在", ((0, 1), (3, 4)), True),  # brat gives the text between the ends too
        ("李在", ((0, 1), (3, 4)), False),
        ("李 北", ((0, 1), (3, 4)), False),
        ("", ((0, 3),), False),
    ],
)
def test_which_surfaces_are_those_of_the_text(surface: str, fragments: Any, same: bool) -> None:
    assert offsets._same(surface, "李 明在", fragments) == same


@pytest.mark.parametrize(
    ("fragments", "message"),
    [
        (((0, 1),), None),
        (((4, 5),), None),
        (((0, 5),), None),
        (((0, 1), (1, 2)), None),
        (((0, 1), (2, 3)), None),
        (((1, 1),), "X [1, 1) ends before it starts"),
        (((0, 1), (3, 2)), "X [0, 1);[3, 2) ends before it starts"),
        (((-1, 1),), "X [-1, 1) does not lie within the 5 characters of the text"),
        (((4, 6),), "X [4, 6) does not lie within the 5 characters of the text"),
        (((0, 2), (1, 3)), "X [0, 2);[1, 3) does not lie within the 5 characters of the text"),
    ],
)
def test_which_fragments_lie_in_the_text(fragments: Any, message: str | None) -> None:
    found: list[Defect] = []
    kept = fitting(TEXT, [Annotation(fragments, "X")], Source(on_defect=found.append))
    assert [annotation.fragments for annotation in kept] == ([fragments] if message is None else [])
    assert [defect.message for defect in found] == ([] if message is None else [message])


def test_entities_are_sorted_by_start_and_the_longer_first() -> None:
    spans = [(2, 4), (0, 1), (2, 5), (0, 5), (2, 4)]
    given = [Annotation((span,), str(i)) for i, span in enumerate(spans)]
    by_start = sorted(enumerate(spans), key=lambda row: (row[1][0], -row[1][1]))
    expected = [(str(i), *span) for i, span in by_start]
    found = entities(TEXT, given, Source())
    assert [(e.label, e.start, e.end) for e in found] == expected
    again = in_order(entities(TEXT, [annotation], Source())[0] for annotation in given)
    assert [(e.label, e.start, e.end) for e in again] == expected


def test_offsets_of_every_character_in_other_units() -> None:
    text = "a李😀\u00e9\uffff\U00010000"
    for units, encoding, size in (("bytes", "utf-8", 1), ("utf16", "utf-16-le", 2)):
        expected = {len(text[:n].encode(encoding)) // size: n for n in range(len(text) + 1)}
        assert offsets.boundaries(text, units) == expected


def test_hints_are_given_only_if_no_option_is_named_and_all_entities_would_match(tmp_path: Path) -> None:
    """One wrong entity among inclusive ones, and ends or units that the user names."""
    inclusive = [{"text": TEXT, "entities": [{"start": 0, "end": 1, "label": "PER", "text": "李明"}]}]
    path = put(tmp_path / "a", inclusive)
    assert "they would match" in refusal(path)
    assert "they would match" not in refusal(path, ends="exclusive")
    assert "they would match" not in refusal(path, units="characters")
    wrong = {"start": 0, "end": 0, "label": "LOC", "text": "北京"}
    mixed: list[dict[str, Any]] = [{**inclusive[0], "entities": [*inclusive[0]["entities"], wrong]}]
    assert "they would match" not in refusal(put(tmp_path / "b", mixed))
    ascii_text = [{"text": "abcdef", "label": [[0, 9, "X"]]}]
    assert "they would match" not in refusal(put(tmp_path / "c", ascii_text)), "bytes are characters here"


def test_utf16_is_told_only_if_it_is_a_guess(tmp_path: Path) -> None:
    """An entity with its text proves the units; a row where nothing is shifted stays as it is."""
    text = "😀在北京"
    proved = put(
        tmp_path / "a", [{"text": text, "entities": [{"start": 3, "end": 5, "label": "X", "text": "北京"}]}]
    )
    assert [found(d) for d in corpus.read(proved)] == [[("北京", "X")]]
    assert kinds(proved) == {}
    assert "does not lie within" in refusal(put(tmp_path / "b", [{"text": "在\uffff北京", "label": [[3, 5, "X"]]}]))
    refused = refusal(put(tmp_path / "c", [{"text": text, "label": [[3, 5, "X"]]}]), units="characters")
    assert "X [3, 5) does not lie within the 4 characters" in refused

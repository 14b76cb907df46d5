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
from hanlattice.corpus.checking import check
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
    assert "; they would match with inclusive ends: --ends inclusive" in refusal(
        put(tmp_path / "a", [{"text": TEXT, "entities": inclusive}])
    )
    assert "--ends inclusive" in refusal(put(tmp_path / "b", [{"text": TEXT, "label": [[2, 2, "X"]]}]))
    assert "; they would match as UTF-8 bytes: --units bytes" in refusal(
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

"""A saved copy of a model reads like the model with the edits of its lexicon."""

import shutil
from pathlib import Path

import pytest

import hanlattice
import tiny
from hanlattice.api import EngineName
from hanlattice.errors import DataError
from hanlattice.lexicon import Lexicon, Word
from hanlattice.model.digests import faults
from hanlattice.model.folder import CASCADE, DEFAULT, EDITS, ENSEMBLE, LEXICON, LITE
from hanlattice.model.saving import save

TWO_MODELS: list[EngineName] = ["ensemble", "cascade"]
TEXT = "昨天鱼丸王和橙子哥在灯下出版社聊了阿尔法蛋，后来去了北京。"


def read(ner: hanlattice.NER) -> list[tuple[str, str, float]]:
    return [(e.text, e.label, round(e.score or 0, 6)) for e in ner(TEXT).entities]


@pytest.mark.parametrize("engine", ["ensemble", "cascade", "native"])
def test_user_words_remain_user_words(engine: EngineName, tmp_path: Path) -> None:
    ner = hanlattice.load(engine=engine, threads=1)
    unedited = read(ner)
    ner.lexicon.update(
        ["鱼丸王", ("橙子哥", "PER", None), ("灯下出版社", None, None), ("阿尔法蛋", "PRODUCT", 2.5)]
    )
    ner.lexicon.remove("北京")
    expected = read(ner)
    assert expected != unedited
    copy = save(ner, tmp_path / "copy")
    assert (copy / LEXICON).read_bytes() == ((ner.folder or Path()) / LEXICON).read_bytes()
    again = hanlattice.load(copy, engine=engine, threads=1)
    assert read(again) == expected
    assert again.lexicon.weight(again.lexicon.id("阿尔法蛋") or 0) == 2.5
    again.lexicon.remove("鱼丸王")
    second = hanlattice.load(save(again, tmp_path / "second"), engine=engine, threads=1)
    assert (read(second), "鱼丸王" in second.lexicon) == (read(again), False)
    for word in ("橙子哥", "灯下出版社", "阿尔法蛋"):
        second.lexicon.remove(word)
    second.lexicon.add("北京", label="LOC")
    assert not {"橙子哥", "鱼丸王"} & set(second.lexicon)
    assert read(second) == unedited


@pytest.mark.parametrize("inside", [True, False])
def test_a_copy_has_the_second_model_that_it_names(inside: bool, tmp_path: Path) -> None:
    model, name = tmp_path / "model", "own" if inside else "../own"
    shutil.copytree(DEFAULT, model)
    shutil.copytree(LITE, model / name)
    (model / name / "secret.key").write_text("private", "utf-8")
    for settings in (ENSEMBLE, CASCADE):
        text = (model / settings).read_text("utf-8")
        assert text.count('"lite"') == 1
        (model / settings).write_text(text.replace('"lite"', f'"{name}"'), "utf-8")
    expected = [read(hanlattice.load(model, engine=engine, threads=1)) for engine in TWO_MODELS]
    copy = save(hanlattice.load(model, threads=1), tmp_path / "elsewhere" / "copy")
    assert len([*copy.glob("*/config.toml")]) == (1 if inside else 2)
    assert list(faults(copy)) == []
    assert inside or not [*copy.rglob("secret.key")]
    shutil.rmtree(model)
    shutil.rmtree(tmp_path / "own", ignore_errors=True)
    assert [read(hanlattice.load(copy, engine=engine, threads=1)) for engine in TWO_MODELS] == expected


@pytest.mark.parametrize(
    "settings", ["second = 3\n", "second = \n", 'second = "../nowhere"\n', 'second = "../private"\n']
)
def test_settings_that_name_no_second_model_are_copied_as_they_are(settings: str, tmp_path: Path) -> None:
    shutil.copytree(LITE, tmp_path / "model")
    (tmp_path / "model" / CASCADE).write_text(settings, "utf-8")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.key").write_text("private", "utf-8")
    copy = save(hanlattice.load(tmp_path / "model"), tmp_path / "copy")
    assert (copy / CASCADE).read_text("utf-8") == settings
    assert not [*copy.glob("*/config.toml")]


def test_a_copy_without_edits_has_no_file_of_them(tmp_path: Path) -> None:
    ner = hanlattice.load("lite")
    ner.lexicon.add("鱼丸王")
    ner.lexicon.remove("鱼丸王")
    assert not (save(ner, tmp_path / "copy") / EDITS).exists()


def test_another_lexicon_is_saved_whole(tmp_path: Path) -> None:
    ner = hanlattice.load("lite")
    ner.lexicon.add("鱼丸王")
    edited = hanlattice.load(save(ner, tmp_path / "edited"))
    edited.lexicon = Lexicon([("橙子哥", "PER", None)])
    copy = save(edited, tmp_path / "copy")
    again = hanlattice.load(copy)
    assert list(again.lexicon.entries()) == [Word("橙子哥", "PER")]
    again.lexicon = ner.lexicon
    assert list(hanlattice.load(save(again, tmp_path / "third")).lexicon.entries()) == list(ner.lexicon.entries())


@pytest.mark.parametrize("engine", ["ensemble", "cascade", "native"])
def test_another_lexicon_has_the_same_effect_after_saving(engine: EngineName, tmp_path: Path) -> None:
    ner = hanlattice.load(engine=engine, threads=1)
    ner.lexicon = Lexicon([("鱼丸王", "PER", None), "灯下出版社", "北京"], rewrite=ner.normaliser.words)
    expected = read(ner)
    again = hanlattice.load(save(ner, tmp_path / "copy"), engine=engine, threads=1)
    assert read(again) == expected
    again.lexicon.add("Ｈｅｌｌｏ計算", "ORG")  # normalised as by the model
    assert "Hello计算" in set(again.lexicon)
    with pytest.raises(DataError):
        again.lexicon.add("计算", "XYZ")


def test_words_that_a_word_list_cannot_hold_are_saved(tmp_path: Path) -> None:
    ner = hanlattice.load("lite")
    words = ["\ud83d坏", "薴烯", "a\tb"]
    for word in words:
        ner.lexicon.add(word, "PRODUCT")
    again = hanlattice.load(save(ner, tmp_path / "copy"))
    assert all(again.lexicon.label(again.lexicon.id(word) or 0) == "PRODUCT" for word in words)
    found = {(start, end, label) for start, end, _, label in tiny.lattice(again("检出薴烯成分。"))}
    assert (2, 4, "PRODUCT") in found


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"added": [[]], "removed": []}', '{"added": 3}', '{"added": [], "removed": 1}']
)
def test_broken_edits_are_one_line(text: str, tmp_path: Path) -> None:
    copy = save(hanlattice.load("lite"), tmp_path / "copy")
    (copy / EDITS).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"lexicon_edits\.json: does not have the edits of a lexicon; save"):
        hanlattice.load(copy)


def test_save_is_public(tmp_path: Path) -> None:
    ner = hanlattice.load("lite")
    ner.lexicon.add("灯下出版社", label="ORG")
    again = hanlattice.load(hanlattice.save(ner, tmp_path / "saved"))
    assert "灯下出版社" in again.lexicon
    assert repr(again.lexicon) == f"<Lexicon: {len(ner.lexicon):,} words>"

"""What ``lexicon.files`` may name: word lists, compiled lexicons and models."""

from pathlib import Path

import pytest

import tiny
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError
from hanlattice.lexicon import Lexicon, Word
from hanlattice.lexicon.edits import save_edits
from hanlattice.model.folder import EDITS, LEXICON, LITE
from hanlattice.model.weights import save_model
from hanlattice.pipeline import NER
from hanlattice.text.normalise import Normaliser
from hanlattice.training.resume import refuse_changed_files, write_inputs
from hanlattice.training.vocabularies import lexicon_file, load_lexicon
from hanlattice.vectors import default_vectors


def loaded(*files: str) -> Lexicon:
    config = Config().with_settings({"lexicon": {"files": list(files), "vector_words": False}})
    return load_lexicon(config, default_vectors(), Normaliser.of(config.text))


def saved(folder: Path) -> NER:
    ner = tiny.ner()
    save_model(folder, ner.tagger, ner.vocabulary, ner.lexicon, ner.config)
    return ner


def test_the_lexicon_of_a_packaged_model_with_its_labels() -> None:
    lexicon, packaged = loaded("lite"), Lexicon.open(LITE / LEXICON)
    assert list(lexicon.entries()) == list(packaged.entries())
    assert any(word.label for word in lexicon.entries())


@pytest.mark.parametrize("others", [[], ["more.txt"]])
def test_the_words_of_lists_are_normalised_as_texts_are(tmp_path: Path, others: list[str]) -> None:
    (tmp_path / "words.txt").write_text("ＡＢＣ公司\n臺灣大學\n", encoding="utf-8")
    (tmp_path / "more.txt").write_text("臺灣大學\n", encoding="utf-8")
    files = [str(tmp_path / name) for name in ("words.txt", *others)]
    config = Config().with_settings(
        {"lexicon": {"files": files, "vector_words": False}, "text": {"simplify": True}}
    )
    lexicon = load_lexicon(config, default_vectors(), Normaliser.of(config.text))
    assert list(lexicon) == ["ABC公司", "台湾大学"]
    assert "ＡＢＣ公司" in lexicon


def test_a_single_compiled_lexicon_is_used_as_it_is(tmp_path: Path) -> None:
    Lexicon(["ＡＢＣ公司"]).save(tmp_path / "words.lexicon")
    assert list(loaded(str(tmp_path / "words.lexicon"))) == ["ＡＢＣ公司"]


def test_the_lexicon_of_a_folder_with_its_edits(tmp_path: Path) -> None:
    ner = saved(tmp_path / "model")
    before = set(loaded(str(tmp_path / "model")))
    assert before == set(ner.lexicon)
    assert "北京" in before
    ner.lexicon.add("花果山")
    ner.lexicon.remove("北京")
    save_edits(ner.lexicon, ner.base, tmp_path / "model" / EDITS)
    assert set(loaded(str(tmp_path / "model"))) == (before | {"花果山"}) - {"北京"}


def test_models_and_word_lists_together(tmp_path: Path) -> None:
    saved(tmp_path / "model")
    (tmp_path / "words.txt").write_text("花果山\n", encoding="utf-8")
    lexicon = loaded(f"{tmp_path / 'words.txt'}=LOC", str(tmp_path / "model"))
    assert next(lexicon.entries()) == Word("花果山", "LOC", None)
    assert set(lexicon) == {"花果山", *tiny.ner().lexicon}


def test_a_folder_that_is_no_model_has_a_compiled_lexicon(tmp_path: Path) -> None:
    Lexicon(["花果山"]).save(tmp_path)
    (tmp_path / LEXICON).write_text("水帘洞\n", encoding="utf-8")
    assert set(loaded(str(tmp_path))) == {"花果山"}


def test_a_model_whose_lexicon_changed_is_noticed(tmp_path: Path) -> None:
    saved(tmp_path / "model")
    config = Config().with_settings({"lexicon": {"files": [str(tmp_path / "model")]}})
    write_inputs(tmp_path, config)
    refuse_changed_files(tmp_path, config)
    lexicon_file(str(tmp_path / "model")).write_text("花果山\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"cannot be resumed with other files: .*model changed"):
        refuse_changed_files(tmp_path, config)

"""Model folders: what is saved is what is loaded, and what is broken says so in a line."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import tiny
from hanlattice import api
from hanlattice.errors import ConfigError, HanlatticeError, ModelError
from hanlattice.inputs.batch import collate
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import RECORD, faults
from hanlattice.model.folder import LEXICON, save_lexicon
from hanlattice.model.weights import load_model, load_weights, save_model, save_weights
from hanlattice.pipeline import NER


def scores(ner: NER) -> Tensor:
    texts = [document.text for document in tiny.documents()]
    with torch.inference_mode():
        return ner.tagger(collate(ner.reader.read(texts, ner.lexicon)))


def saved(ner: NER, folder: Path, **options: str) -> NER:
    save_model(folder, ner.tagger, ner.vocabulary, ner.lexicon, ner.config, **options)
    return api.load(folder, engine="torch")


def test_a_saved_model_scores_the_same(tmp_path: Path) -> None:
    ner = tiny.ner()
    again = saved(ner, tmp_path, card="# A card\n")
    assert torch.equal(scores(again), scores(ner))
    assert again.config == ner.config
    assert again.vocabulary == ner.vocabulary
    assert load_model(tmp_path).folder == tmp_path
    assert list(again.lexicon.entries()) == list(ner.lexicon.entries())
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "# A card\n"
    assert not [file.name for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_model_is_saved_into_a_folder_within_new_folders(tmp_path: Path) -> None:
    ner = tiny.ner()
    again = saved(ner, tmp_path / "a" / "b")
    assert again.config == ner.config
    assert list(faults(tmp_path / "a" / "b")) == []
    for name in ("config.toml", RECORD):
        assert (tmp_path / "a" / "b" / name).read_bytes().endswith(b"\n"), name


def test_an_edited_lexicon_is_saved_with_its_labels_and_weights(tmp_path: Path) -> None:
    ner = tiny.ner()
    ner.lexicon.add("花果山", label="LOC", weight=2.5)
    ner.lexicon.add("水帘洞", weight=3)
    ner.lexicon.remove("北京")
    assert list(saved(ner, tmp_path).lexicon.entries()) == sorted(ner.lexicon.entries(), key=lambda word: word.text)


@pytest.mark.parametrize(
    ("word", "label", "weight"),
    [
        ("花果山", None, 1234567.0),
        ("花果山", "LOC", 1e-7),
        ("花果山", "2", None),
        ("花\t果", None, 0.1),
        ("花\n果", "LOC", None),
        ("\ufeff花果", None, None),
        ("花果 ", None, None),
        ("花果", " LOC", None),
        ("\ud83d花果", None, None),
        ("一" * 1000, "LOC", 0.1),
        ("一" * 970, "LOC", -1.1754944e-38),
    ],
)
def test_every_word_is_saved_exactly(word: str, label: str | None, weight: float | None, tmp_path: Path) -> None:
    lexicon = Lexicon([(word, label, weight), "北京"])
    save_lexicon(lexicon, tmp_path / LEXICON)
    assert set(Lexicon.open(tmp_path / LEXICON).entries()) == set(lexicon.entries())


def test_float16_is_half_the_size_and_close(tmp_path: Path) -> None:
    ner = tiny.ner()
    half = saved(ner, tmp_path, precision="float16")
    full = sum(t.numel() * 4 for t in ner.tagger.state_dict().values())
    assert (tmp_path / "model.safetensors").stat().st_size < full / 2 + 8_000
    for name, weight in half.tagger.state_dict().items():
        torch.testing.assert_close(weight, ner.tagger.state_dict()[name], rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(scores(half), scores(ner), rtol=0, atol=0.05)


def test_int8_is_within_half_a_step_of_each_row(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {"big": torch.randn(1500, 40), "zero rows": torch.zeros(1001, 3), "small": torch.randn(30, 40)}
    state["big"][7] = 0
    save_weights(state, tmp_path / "w.safetensors", precision="int8")
    stored = load_file(tmp_path / "w.safetensors")
    assert stored["big"].dtype == torch.int8
    assert stored["small"].dtype == torch.float16
    loaded = load_weights(tmp_path / "w.safetensors")
    step = state["big"].abs().amax(1, keepdim=True) / 127
    assert ((loaded["big"] - state["big"]).abs() <= 0.51 * step + 1e-6).all()
    assert torch.equal(loaded["zero rows"], state["zero rows"])
    assert set(loaded) == set(state)


def test_another_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'float32', 'float16' or 'int8', not 'float8'"):
        save_weights({}, tmp_path / "w.safetensors", precision="float8")


class TestBroken:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        shutil.copytree(tiny.trained(), tmp_path / "model")
        return tmp_path / "model"

    def refuse(self, folder: Path, message: str, kind: type[HanlatticeError] = ModelError) -> None:
        with pytest.raises(kind, match=message) as error:
            api.load(folder)
        assert "\n" not in str(error.value)
        assert str(folder) in str(error.value)

    def test_missing(self, tmp_path: Path) -> None:
        self.refuse(tmp_path / "nothing", "no such folder; train a model")

    def test_foreign_folder(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
        self.refuse(tmp_path, r"holds no config\.toml, so it is not the folder of a hanlattice model")

    @pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.json"])
    def test_missing_files(self, folder: Path, name: str) -> None:
        (folder / name).unlink()
        self.refuse(folder, f"{name}: missing")

    def test_a_missing_lexicon(self, folder: Path) -> None:
        (folder / "lexicon.txt").unlink()
        self.refuse(folder, r"lexicon\.txt: .*No such file", HanlatticeError)

    @pytest.mark.parametrize("kept", [0, 4, 100, -1])
    def test_truncated_weights_are_refused(self, folder: Path, kept: int) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:kept])
        self.refuse(folder, r"model\.safetensors: broken or not a safetensors file")

    def test_weights_of_another_model(self, folder: Path) -> None:
        save_file({"weight": torch.zeros(2, 2)}, folder / "model.safetensors")
        self.refuse(folder, "weights do not fit the settings and vocabulary")

    def test_weights_of_another_size(self, folder: Path) -> None:
        config = folder / "config.toml"
        config.write_text(
            config.read_text(encoding="utf-8").replace("d_model = 20", "d_model = 10"), encoding="utf-8"
        )
        self.refuse(folder, "weights do not fit the settings and vocabulary")

    @pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"chars": "ab"}', "\xff"])
    def test_invalid_vocabulary_is_refused(self, folder: Path, text: str) -> None:
        (folder / "vocabulary.json").write_text(text, encoding="latin-1")
        self.refuse(folder, r"vocabulary\.json: not a vocabulary")

    def test_vocabulary_of_another_model(self, folder: Path) -> None:
        path = folder / "vocabulary.json"
        fields = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(fields | {"chars": "李"}), encoding="utf-8")
        self.refuse(folder, "weights do not fit the settings and vocabulary")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[training", "not TOML"),
            ("[training]\nepoch = 3\n", "no setting 'training.epoch'; did you mean 'epochs'"),
            ('[decoder]\nname = "crv"\n', "there is no decoder 'crv'; did you mean 'crf'"),
        ],
    )
    def test_settings(self, folder: Path, text: str, message: str) -> None:
        (folder / "config.toml").write_text(text, encoding="utf-8")
        self.refuse(folder, message)

    def test_no_pickle_is_read(self, folder: Path) -> None:
        torch.save({"weight": torch.zeros(2)}, folder / "model.safetensors")
        self.refuse(folder, r"model\.safetensors: broken or not a safetensors file")

"""Language models within taggers: what is trained and how fast, what is saved, and what is refused.

Faults that go red here: weights that learn although frozen; a saved model that needs the language model's folder;
first weights overwritten before training; a pickle that is read.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hanlattice.embeddings.stack import Stack

pytest.importorskip("transformers", reason="the extra 'pretrained' is not installed")

import hanlattice
import tiny
import tiny_language_models
from hanlattice import api
from hanlattice.build import build
from hanlattice.config.files import load_config
from hanlattice.config.settings import Config
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.pretrained import Pretrained
from hanlattice.errors import ConfigError, ModelError
from hanlattice.inputs.batch import collate
from hanlattice.inputs.encoded import Encoded
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.tagger import Tagger
from hanlattice.training.optimiser import freeze_pretrained, initialise, optimisers, set_learning_rate

PAPERS = Path(hanlattice.__path__[0]) / "papers"
VOCABULARY = Vocabulary(tuple("重庆人和药店"), (), (), (), ("LOC", "ORG"))

QUICK = {"optimiser": "adamw", "learning_rate": 0.1, "pretrained_rate": 0.5}


def config(training: dict[str, Any] | None = None, *, name: str = "bert", **settings: Any) -> Config:
    embedding = {"name": "pretrained", "path": str(tiny_language_models.folder(name)), **settings}
    return Config().with_settings({"embedding": embedding, "encoder": {"name": "none"}, "training": training or {}})


def tagger(of: Config, vocabulary: Vocabulary = VOCABULARY) -> Tagger:
    torch.manual_seed(0)
    widths = {"chars": 4, "bigrams": 4, "words": 4}
    return build(of, Tables.empty(vocabulary, widths), vocabulary.labels)


def changed(t: Tagger, of: Config, steps: int = 1) -> set[str]:
    """Names of the parameters that some steps of training change."""
    before = {name: p.detach().clone() for name, p in t.named_parameters()}
    chosen = optimisers(t, of.training)
    set_learning_rate(chosen, 1.0)
    batch = collate(encoded("重庆人和药店", "hello 重庆"))
    for _ in range(steps):
        t.loss(batch, [[], []]).backward()
        for optimiser in chosen:
            optimiser.step()
            optimiser.zero_grad()
    return {name for name, p in t.named_parameters() if not torch.equal(p, before[name])}


def encoded(*texts: str) -> list[Encoded]:
    return list(Reader(VOCABULARY).read(texts, Lexicon()))


def of_layer(names: set[str], i: int) -> bool:
    return any(f"layer.{i}." in name for name in names)


def language_model(tagger: Tagger) -> nn.Module:
    assert isinstance(tagger.embedding, Pretrained)
    return tagger.embedding.language_model


class TestWhatLearns:
    def test_everything_but_what_is_never_read(self) -> None:
        c = config(QUICK)
        t = tagger(c)
        rest = {name for name, _ in t.named_parameters()} - changed(t, c)
        assert all("pooler" in name or name.startswith("decoder") for name in rest)

    def test_nothing_of_a_frozen_model_which_drops_nothing_out(self) -> None:
        c = config(QUICK, trainable=False)
        t = tagger(c).train()
        assert not language_model(t).training
        assert all(name.startswith("decoder") for name in changed(t, c))

    def test_a_mix_of_a_frozen_model(self) -> None:
        c = config(QUICK, trainable=False, layers="mix")
        learnt = changed(tagger(c), c)
        assert {name for name in learnt if name.startswith("embedding")} == {
            "embedding.mix.weight",
            "embedding.mix.scale",
        }

    def test_frozen_embeddings(self) -> None:
        for name in ("bert", "electra"):
            c = config(QUICK, name=name, trainable_embeddings=False)
            learnt = changed(tagger(c), c)
            assert of_layer(learnt, 0)
            assert not any("embeddings" in name for name in learnt)

    def test_frozen_layers_and_what_is_below_them(self) -> None:
        c = config(QUICK, frozen_layers=1)
        learnt = changed(tagger(c), c)
        assert of_layer(learnt, 1)
        assert not of_layer(learnt, 0)
        assert not any("embeddings" in name for name in learnt)

    def test_low_rank_matrices_alone(self) -> None:
        c = config(QUICK, lora_rank=2, lora_targets=["query", "value"])
        learnt = {name for name in changed(tagger(c), c, steps=2) if name.startswith("embedding")}
        assert len(learnt) == 2 * 2 * 2
        assert {name.rpartition(".")[2] for name in learnt} == {"down", "up"}

    def test_nothing_in_epochs_before_its_first(self) -> None:
        c = config({"learning_rate": 0.1, "momentum": 0.9, "pretrained_from": 3})
        t = tagger(c)
        for epoch, learns in ((1, False), (2, False), (3, True)):
            freeze_pretrained(t, c.training, epoch)
            t.train()
            assert language_model(t).training == learns
            assert any("language_model" in name for name in changed(t, c)) == learns

    def test_rates_fall_from_the_last_layer_down(self) -> None:
        c = config({"learning_rate": 0.4, "pretrained_rate": 0.5, "layer_decay": 0.1, "weight_decay": 0.01})
        t = tagger(c)
        names = {id(p): name for name, p in t.named_parameters()}
        rates, decays = {}, {}
        for group in optimisers(t, c.training)[0].param_groups:
            for p in group["params"]:
                rates[names[id(p)]], decays[names[id(p)]] = group["rate"], group["weight_decay"]
        model = "embedding.language_model."
        assert rates[f"{model}encoder.layer.1.output.dense.weight"] == pytest.approx(0.2)
        assert rates[f"{model}encoder.layer.0.output.dense.weight"] == pytest.approx(0.02)
        assert rates[f"{model}embeddings.word_embeddings.weight"] == pytest.approx(0.002)
        assert rates["decoder.emission.weight"] == pytest.approx(0.4)
        assert decays[f"{model}encoder.layer.0.output.dense.weight"] == 0.01
        assert decays[f"{model}encoder.layer.0.output.dense.bias"] == 0.0

    def test_training_begins_with_its_weights(self) -> None:
        t = tagger(config())
        before = {name: w.clone() for name, w in t.embedding.state_dict().items()}
        initialise(t, "xavier")
        assert all(torch.equal(w, before[name]) for name, w in t.embedding.state_dict().items())


def trained(place: Path, embedding: dict[str, Any], **settings: Any) -> Path:
    both = {"embedding": embedding, "encoder": {"name": "none"}}
    small = Config().with_settings(tiny.settings(epochs=2, pretrained_rate=0.5)).with_settings({**both, **settings})
    return api.train(small, output=place / "model").folder


class TestSaved:
    @pytest.fixture
    def original(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        copy = shutil.copytree(tiny_language_models.folder(), tmp_path / "downloads" / "bert")
        monkeypatch.setenv("BERT", str(copy))
        return copy

    @pytest.mark.parametrize(
        "embedding",
        [
            {"name": "pretrained", "path": "$BERT", "layers": "mix"},
            {"name": "pretrained", "path": "$BERT", "lora_rank": 2},
            {
                "name": "stack",
                "parts": {"chars": {"bigrams": False}, "bert": {"name": "pretrained", "path": "$BERT"}},
            },
        ],
        ids=["mix", "lora", "stack"],
    )
    def test_a_model_needs_the_folder_of_its_language_model_no_longer(
        self, original: Path, tmp_path: Path, embedding: dict[str, Any]
    ) -> None:
        folder = trained(tmp_path, embedding)
        texts = ["李明在重庆 工作。hello", "昨天王小红去了光明集团\n"]
        batch = collate(api.load(folder).reader.read(texts, Lexicon()))
        expected = api.load(folder).tagger(batch)
        shutil.rmtree(original)
        shutil.move(folder, tmp_path / "elsewhere")
        again = api.load(tmp_path / "elsewhere")
        assert torch.equal(again.tagger(batch), expected)
        assert not any(
            str(tmp_path) in file.read_text("utf-8") for file in (tmp_path / "elsewhere").rglob("*.json")
        )

    def test_saved_again_it_is_whole(self, original: Path, tmp_path: Path) -> None:
        ner = api.load(trained(tmp_path, {"name": "pretrained", "path": "$BERT"}))
        from hanlattice.model.weights import save_model

        save_model(tmp_path / "again", ner.tagger, ner.vocabulary, ner.lexicon, ner.config, precision="float16")
        shutil.rmtree(original)
        assert [e.label for e in api.load(tmp_path / "again")("李明").entities] == [
            e.label for e in ner("李明").entities
        ]

    def test_a_model_whose_files_are_gone_says_so(self, original: Path, tmp_path: Path) -> None:
        folder = trained(tmp_path, {"name": "pretrained", "path": "$BERT"})
        shutil.rmtree(folder / "embedding")
        with pytest.raises(ModelError, match=r"model: embedding 'pretrained': .*embedding: no such folder"):
            api.load(folder)

    def test_nothing_is_left_of_a_run_that_could_not_begin(self, original: Path, tmp_path: Path) -> None:
        (original / "model.safetensors").unlink()
        with pytest.raises(ConfigError, match="holds no weights"):
            trained(tmp_path, {"name": "pretrained", "path": "$BERT"})
        assert not (tmp_path / "model").exists()


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def as_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def of_another_width(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 12}), "utf-8")


def with_more_layers(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}), "utf-8")


def cut_short(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def of_unknown_type(folder: Path) -> None:
    (folder / "config.json").write_text("{}", "utf-8")


def with_another_tokenizer(folder: Path) -> None:
    import transformers

    pieces = {piece: i for i, piece in enumerate([*tiny_language_models.vocabulary(), "多", "出"])}
    transformers.BertTokenizer(vocab=pieces).save_pretrained(folder)


class TestRefused:
    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (shutil.rmtree, "bert: no such folder; download a language model and name its folder as path"),
            (without("config.json"), "bert: holds no config.json, so it is not the folder of a Hugging Face"),
            (without("model.safetensors"), "bert: holds no weights; add the model.safetensors of this model"),
            (as_pickle, r"weights as a pickle only, .* once, with: python -c .*save_pretrained"),
            (
                without("tokenizer.json", "vocab.txt"),
                "bert: holds no tokenizer; add the tokenizer.json or vocab.txt",
            ),
            (of_another_width, "bert: cannot be read as a language model .*; get it again"),
            (
                with_more_layers,
                r"bert: its weights lack 16 arrays that its config.json requires, such as encoder.layer.2",
            ),
            (cut_short, "bert: cannot be read as a language model .*; get it again"),
            (of_unknown_type, "bert: cannot be read as a language model .*model_type"),
            (
                with_another_tokenizer,
                r"its tokenizer has \d+ tokens and its weights have vectors for \d+; do they",
            ),
        ],
    )
    def test_a_folder(self, tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
        folder = shutil.copytree(tiny_language_models.folder(), tmp_path / "bert")
        spoil(folder)
        with pytest.raises(ConfigError, match=message) as caught:
            tagger(config(path=str(folder)))
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"path": ""}, "set path to the folder"),
            (
                {"path": "$NO_SUCH_VARIABLE/bert"},
                "set the environment variable NO_SUCH_VARIABLE",
            ),
            (
                {"path": "$ONTONOTES4/dev.bmes"},
                "or name another file .ONTONOTES4 is a folder with .* made from LDC2011T03",
            ),
            ({"layers": "first"}, "embedding.layers must be one of 'last', 'mix'"),
            ({"frozen_layers": 3}, "frozen_layers must be from 0 to 2"),
            ({"lora_rank": 2, "frozen_layers": 1}, "lora_rank freezes the whole model"),
            ({"lora_rank": 2, "lora_targets": ["q_proj"]}, "no linear layer 'q_proj' to adapt"),
            ({"pooling": "sum"}, "embedding.pooling must be one of 'mean', "),
            ({"poolings": "mean"}, "has no setting 'poolings'; did you mean 'pooling'"),
        ],
    )
    def test_a_setting(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            tagger(config(**settings))

    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            ({}, "needs at least one part"),
            (3, "embedding.parts must be a table of parts"),
            ({"chars": 3}, r"embedding.parts.chars has a name and settings of its own"),
            ({"chars": {"name": "character"}}, "there is no embedding.parts.chars 'character'; did you mean"),
            ({"chars": {"bigram": True}}, "has no setting 'bigram'; did you mean 'bigrams'"),
            ({"a.b": {}}, "embedding 'stack': .*can't contain"),
        ],
    )
    def test_a_stack(self, parts: Any, message: str) -> None:
        c = Config().with_settings({"embedding": {"name": "stack", "parts": parts}, "encoder": {"name": "none"}})
        with pytest.raises(ConfigError, match=message):
            tagger(c)

    def test_a_missing_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        c = config()
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(ConfigError, match=r"needs: pip install 'hanlattice\[pretrained\]'"):
            tagger(c)


def test_one_setting_of_a_part_of_a_stack_can_be_changed() -> None:
    parts = {
        "chars": {"bigrams": False},
        "bert": {"name": "pretrained", "path": str(tiny_language_models.folder())},
    }
    c = Config().with_settings({"embedding": {"name": "stack", "parts": parts}, "encoder": {"name": "none"}})
    c = c.with_settings({"embedding": {"parts": {"bert": {"frozen_layers": 2}}}})
    t = tagger(c)
    assert t.embedding.d_out == 4 + 8
    assert isinstance(t.embedding, Stack)
    bert = t.embedding.parts["bert"]
    assert isinstance(bert, Pretrained)
    assert not any(p.requires_grad for p in bert.language_model.parameters())


@pytest.mark.parametrize(
    "paper",
    [path for path in sorted(PAPERS.rglob("*.toml")) if "$BERT" in path.read_text("utf-8")],
    ids=lambda path: path.relative_to(PAPERS).as_posix(),
)
def test_settings_of_papers_build(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT", str(tiny_language_models.folder()))
    c = load_config(paper)
    labels = tuple(c.embedding.settings.get("queries", VOCABULARY.labels))  # queries name the labels of a corpus
    t = tagger(c, replace(VOCABULARY, labels=labels))
    assert any(isinstance(part, Pretrained) for part in t.modules())
    assert len(t(collate(encoded("重庆人")))[0]) == 3


def test_the_extra_is_imported_by_those_who_ask_for_it() -> None:
    import subprocess
    import sys

    code = "import hanlattice.build, sys; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Any settings file of the package, trained for one epoch on the small world, with small parts."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hanlattice
import tiny
import tiny_language_models
from hanlattice import api, corpus
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS
from hanlattice.build.settings import parameters_of
from hanlattice.config.files import load_config
from hanlattice.config.settings import Config
from hanlattice.document import Document
from hanlattice.training import Run

# One for each kind of embedding, encoder and decoder; test_every_system.py trains the others.
KINDS = (
    "BiLSTM-CRF on characters",
    "word-level baseline",
    "FLAT",
    "LGN",
    "LR-CNN",
    "SoftLexicon, released code",
    "XLNet, with segments",
    "SANER, words of a second table",
    "MRC, query and text read together",
    "W2NER",
)

ROOT = Path(__file__).parents[2]
FOLDER = Path(hanlattice.__file__).parent / "papers"
BUILDERS = {**EMBEDDINGS, **ENCODERS, **DECODERS}
SMALL: dict[str, Any] = {
    "d_model": 12, "d_feed_forward": 8, "heads": 2, "d_head": 4, "d_hidden": 6, "d_characters": 4, "d_graph": 6,
    "d_place": 3, "d_span": 6, "d_biaffine": 4, "d_query": 4, "channels": 6, "d_segmentation": 4, "d_letter": 6,
    "neighbours": 3,
}  # fmt: skip


def rows() -> dict[str, str]:
    """The last section of docs/systems.md: what a row names, and the settings file and options that train it."""
    page = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8").partition("## Every system and option")[2]
    table = re.findall(r"^\| ([^|]+) \|(?:[^|]*\|)? `([^`]+)`[^|]*\|$", page, re.MULTILINE)
    return {name.strip(): command for name, command in table}


def trained(command: str, output: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Train a settings file, with the options after it, for one epoch on sentences of the small world."""
    name, *options = command.split()
    monkeypatch.setenv("WORD_VECTORS", str(tiny.word_vectors()))
    overrides = dict(zip((option.removeprefix("--") for option in options[::2]), options[1::2], strict=True))
    config = load_config(FOLDER / f"{name}.toml", overrides)
    if "$BERT" in str(config):
        pytest.importorskip("transformers", reason="the extra 'pretrained' is not installed")
        monkeypatch.setenv("BERT", str(tiny_language_models.folder("bert", layers=4)))
    return api.train(config.with_settings(_on_sample(config, output)), output=output / "run")


def _on_sample(config: Config, output: Path) -> dict[str, Any]:
    asked = config.embedding.settings.get("queries", {}) or config.decoder.settings.get("queries", {})
    names = dict(zip(("PER", "LOC", "ORG"), asked, strict=False))
    documents = [_renamed(document, names) for document in tiny.documents()[:12]]
    output.mkdir(exist_ok=True)
    corpus.write(documents, output / "corpus.jsonl", "jsonl")
    place = str(output / "corpus.jsonl")
    return {
        "data": {
            "train": place,
            "dev": place,
            "test": "",
            "format": "",
            "user_words": 0.0,
            "exclude": [],
            "labels": {},
        },
        "lexicon": {"files": [str(tiny.folder() / "words.txt")]},
        "vectors": {"path": str(tiny.folder() / "vectors.safetensors")},
        "training": {"epochs": 1, "batch_size": 6, "device": "cpu", "least_steps": 0},
        **{part: _small({"name": (p := getattr(config, part)).name, **p.settings}) for part in PARTS},
    }


PARTS = ("embedding", "encoder", "decoder")


def _small(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a part and of the parts inside it, with small sizes."""
    known = parameters_of(BUILDERS[settings["name"]])
    small = {**settings, **{key: value for key, value in SMALL.items() if key in known}}
    if isinstance(small.get("inner"), dict):
        small["inner"] = _small({"name": "bilstm", **small["inner"]})
    if isinstance(small.get("parts"), dict):
        small["parts"] = {key: _small({"name": "characters", **part}) for key, part in small["parts"].items()}
    return small


def _renamed(document: Document, names: dict[str, str]) -> Document:
    entities = tuple(replace(e, label=names.get(e.label, e.label)) for e in document.entities)
    return replace(document, entities=entities)

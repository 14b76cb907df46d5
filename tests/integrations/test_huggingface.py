"""Folders and outputs in the forms of Hugging Face, with huggingface_hub and transformers."""

from pathlib import Path
from typing import Any

import pytest

import hanlattice
from hanlattice.errors import ConfigError, DataError, ModelError
from hanlattice.evaluation.scores import evaluate_spans
from hanlattice.model.digests import faults
from hanlattice.spans import Span

hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed (scripts/integrations)")
from hanlattice.integrations.huggingface import TokenClassifier, from_pretrained, save_pretrained  # noqa: E402

TEXT = "雷军在北京发布会"


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


def test_a_saved_folder_has_a_card_and_loads(tmp_path: Path) -> None:
    ner = hanlattice.load()
    ner.lexicon.add("阿巴卡星", label="LOC")
    report = evaluate_spans([[Span(0, 2, "PER"), Span(3, 5, "LOC")]], [[Span(0, 2, "PER")]])
    options = {"name": "mine", "license": "apache-2.0", "datasets": ["me/corpus"], "report": report}
    folder = save_pretrained(ner, tmp_path / "saved", **options)  # type: ignore[arg-type]
    card = hub.ModelCard.load(folder / "README.md")
    assert card.data.to_dict() | {"model-index": None} == {
        "language": "zh", "license": "apache-2.0", "library_name": "hanlattice", "datasets": ["me/corpus"],
        "pipeline_tag": "token-classification", "model-index": None,
        "tags": ["named-entity-recognition", "chinese", "word-lattice"],
    }  # fmt: skip
    scores = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert scores == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3, abs=1e-6)}
    assert "# The packaged model" in card.text
    assert list(faults(folder)) == []
    again = from_pretrained(folder, convention="msra")
    assert "阿巴卡星" in again.lexicon
    assert again.convention == "msra"
    second = save_pretrained(again, tmp_path / "second")
    assert (second / "README.md").read_text("utf-8").count("library_name") == 1
    with pytest.raises(ModelError, match="exists already"):
        save_pretrained(ner, folder)
    with pytest.raises(ConfigError, match="need the name of their corpus"):
        save_pretrained(ner, tmp_path / "third", report=report)
    assert not (tmp_path / "third").exists()


def test_a_folder_of_links_loads_as_in_the_cache_of_the_hub(ner: hanlattice.NER, tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    for path in (ner.folder or Path()).iterdir():
        (tmp_path / "snapshot" / path.name).symlink_to(path)
    assert from_pretrained(tmp_path / "snapshot")(TEXT).entities == ner(TEXT).entities


def test_a_name_of_the_hub_is_one_line() -> None:
    with pytest.raises(ModelError, match=r"someone/model: no such folder.*hf download someone/model --local-dir"):
        from_pretrained("someone/model")


def test_a_local_folder_is_opened_even_if_a_packaged_model_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lite").mkdir()
    with pytest.raises(ModelError, match="lite"):
        from_pretrained("lite")


def test_rows_are_entities_or_characters(ner: hanlattice.NER) -> None:
    simple = TokenClassifier(ner)(TEXT)
    assert [(r["entity_group"], r["word"], r["start"], r["end"]) for r in simple] == [
        ("PER", "雷军", 0, 2), ("LOC", "北京", 3, 5),
    ]  # fmt: skip
    rows = TokenClassifier(ner, aggregation_strategy="none")(TEXT)
    assert [(r["entity"], r["index"], r["word"]) for r in rows] == [
        ("B-PER", 1, "雷"), ("I-PER", 2, "军"), ("B-LOC", 4, "北"), ("I-LOC", 5, "京"),
    ]  # fmt: skip
    assert TokenClassifier(ner)([TEXT, "", TEXT]) == [simple, [], simple]
    assert TokenClassifier(ner)([]) == []
    with pytest.raises(DataError, match="input 1 is int, not a text"):
        TokenClassifier(ner)([TEXT, 3])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="must be 'simple' or 'none'"):
        TokenClassifier(ner, aggregation_strategy="max")  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ["simple", "none"])
def test_the_shape_is_that_of_transformers(ner: hanlattice.NER, tmp_path: Path, strategy: str) -> None:
    """A tiny model with random weights labels every character, so its output has rows to compare with."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(0)
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(TEXT))])
    )
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        id2label={0: "B-PER", 1: "I-PER"}, label2id={"B-PER": 0, "I-PER": 1},
    )  # fmt: skip
    model = transformers.BertForTokenClassification(config).eval()
    theirs = transformers.pipeline(
        "token-classification", model=model, tokenizer=tokenizer, aggregation_strategy=strategy, device="cpu"
    )
    ours = TokenClassifier(ner, aggregation_strategy=strategy)  # type: ignore[arg-type]
    for inputs in (TEXT, [TEXT, TEXT]):
        found: Any
        expected, found = theirs(inputs), ours(inputs)
        if isinstance(inputs, list):
            assert len(expected) == len(found) == 2
            expected, found = expected[0], found[0]
        assert [*found[0]] == [*expected[0]]
        for key, value in found[0].items():
            is_number = key == "score"
            assert isinstance(float(expected[0][key]) if is_number else expected[0][key], type(value)), key

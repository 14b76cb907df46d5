"""docs/systems.md has a row for every system of the sources, and one of each kind trains on a sample."""

from pathlib import Path

import pytest

from papers.sampled import FOLDER, KINDS, rows, trained

# The headings of the sources: overviews of Chinese NER, of position encodings, of FLAT and of Lattice LSTM.
HEADINGS = (
    *("softmax tagging", "CRF tagging", "sigmoid tagging", "BiLSTM-CRF", "softword", "ExSoftword", "word-level"),
    *("BERT-CRF", "BERT-BiLSTM-CRF", "IDCNN-CRF", "learned positions", "sinusoidal positions", "recurrent front"),
    *("a recurrence", "FLOATER", "Shaw", "Transformer-XL", "XLNet", "T5", "DeBERTa", "enhanced mask decoder"),
    *("rotary", "TENER", "Lattice LSTM", "LR-CNN", "CGN", "LGN", "SoftLexicon", "FLAT", "FLAT with BERT", "msm"),
    *("mld", "head distances", "fusion", "trained distances", "cascade pointers", "softmax pointers", "MRC"),
    *("token pairs", "biaffine", "GlobalPointer", "Efficient GlobalPointer", "span enumeration", "SANER", "W2NER"),
    *("position encodings compared", "scaled against unscaled", "missing labels", "nested entities"),
    *("direction", "tested on long ones", "share of nested", "sentence length", "entities in the lexicon"),
    *("words as units", "batch size", "pretrained vectors"),
)


def test_every_heading_of_the_sources_has_a_row_with_settings() -> None:
    found = rows()
    assert len(found) >= 70
    assert [heading for heading in HEADINGS if not any(heading in name for name in found)] == []
    assert [c for c in found.values() if not (FOLDER / f"{c.split()[0]}.toml").is_file()] == []


@pytest.mark.parametrize("name", KINDS)
def test_one_of_each_kind_trains_on_a_sample(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trained(rows()[name], tmp_path, monkeypatch).progress.epoch == 1

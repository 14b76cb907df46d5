"""Tests of the rows of a comparison: scores, sizes, recalls and differences."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny
from compared import Finished, saved, systems
from hanlattice import api, corpus
from hanlattice.cli import main
from hanlattice.comparison import compare
from hanlattice.document import Document, Entity
from hanlattice.spans import Span


def test_scores_and_sizes_are_those_of_the_saved_models(finished: Finished) -> None:
    folder, rows = finished
    assert [row.system for row in rows] == ["slow", "quick/wide"]
    for row in rows:
        scores = []
        for seed in ("1", "2"):
            ner = api.load(folder / row.system / seed, engine="torch")
            scores.append(api.evaluate(ner, tiny.folder() / "corpus.bmes").micro.f1)
            total = sum(p.numel() for p in ner.tagger.parameters())
            assert row.parameters == total
            tables = ("chars.weight", "bigrams.weight", "words.table.weight")
            in_tables = sum(p.numel() for name, p in ner.tagger.named_parameters() if name.endswith(tables))
            assert row.without_tables == total - in_tables
        for f1 in (row.dev, row.test):
            assert f1 is not None
            assert f1.mean == pytest.approx(np.mean(scores))
            assert f1.n == 2
            assert f1.deviation == pytest.approx(np.std(scores, ddof=1))


def test_recalls_of_nested_and_reachable_entities_have_columns(tmp_path: Path, capsys: Any) -> None:
    """Of six entities, a CRF can predict the three outer ones, and a biaffine decoder all."""
    text = "李明在重庆大学工作"
    entities = [Entity.of(text, span) for span in (Span(3, 5, "LOC"), Span(3, 7, "ORG"))]
    corpus.write([Document(text, tuple(entities))] * 3, tmp_path / "nested.jsonl", "jsonl")
    file = str(tmp_path / "nested.jsonl")
    shutil.copy(file, again := str(tmp_path / "again.jsonl"))
    data = {"train": [file, again], "dev": file, "test": file, "outermost": True}
    flat = tiny.config(epochs=1).with_settings({"data": data})
    nested = flat.with_settings({"decoder": {"name": "biaffine", "d_span": 4}, "data": {"outermost": False}})
    pair = {"flat": flat, "nested": nested}
    rows, failures = compare(pair, tmp_path / "runs", seeds=(1, 2), speed=False)
    assert failures == {}
    assert [row.recalls["reachable"] for row in rows] == [0.5, 1.0]
    assert rows[0].recalls["nested"] <= 0.5
    files = [saved(tmp_path, name, config) for name, config in pair.items()]
    options = ["--output", tmp_path / "runs", "--seeds", "1,2", "--no-speed", "--quiet", "--format", "md"]
    with pytest.raises(SystemExit):
        main(["compare", *map(str, [*files, *options])])
    head, _, first, second, *_ = capsys.readouterr().out.splitlines()
    assert head.endswith("| nested recall | reachable recall |")
    assert first.endswith("| 50.00 |")
    assert second.endswith("| 100.00 |")


def test_all_systems_but_the_baseline_have_a_difference(finished: Finished) -> None:
    _, (slow, wide) = finished
    assert slow.difference is None
    assert slow.test
    assert wide.test
    assert wide.difference
    assert 0 < wide.difference.p <= 1
    pooled = wide.difference.difference  # F1 of all runs together is close to their mean F1
    assert pooled == pytest.approx(wide.test.mean - slow.test.mean, abs=0.02)


def test_another_baseline(finished: Finished) -> None:
    folder, (_, wide) = finished
    (slow, other), _ = compare(systems(), folder, seeds=(1, 2), speed=False, baseline="quick/wide")
    assert other.difference is None
    assert slow.difference
    assert wide.difference
    assert slow.difference.difference == -wide.difference.difference

"""What benchmarks/new_genres.py leaves out of training."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from hanlattice.config.files import load_config

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def new_genres(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("new_genres")


@pytest.mark.parametrize(
    ("genres", "left_out"),
    [
        (["video"], {"video"}),
        (["queries", "resume"], {"queries", "resume"}),
        (["novel", "ecommerce"], {"novel", "products"}),
        (["titles"], {"novel"}),  # hundreds of the titles are sentences of this corpus
        (["history", "reviews"], set()),
    ],
)
def test_corpora_with_sentences_of_the_genres_are_left_out(
    new_genres: ModuleType, genres: list[str], left_out: set[str], tmp_path: Path
) -> None:
    packaged = load_config(new_genres.FLAT)
    systems = new_genres.systems(genres, tmp_path, (8, 3), 0.5)
    corpora = {
        name: {Path(file).stem for file in one.corpus}
        for name, one in {**systems["FLAT, all"].conventions, **systems["FLAT, all"].auxiliary}.items()
    }
    given = {"msra", "cluener", "weibo", "resume", "medical", "news1998", "words"}
    given |= {"annotated", "novel", "products", "video", "queries"}
    assert corpora == {name: {name} for name in given - left_out}
    assert systems["FLAT, all"].auxiliary["annotated"].corpus == (str(tmp_path / "annotated.jsonl"),)
    assert systems["FLAT, all"].lexicon.files == (str(tmp_path / "gazetteer.txt"),)
    assert systems["FLAT, all"].conventions["msra"].share == 0.5 * packaged.conventions["msra"].share
    for name in ("FLAT, wild", "linear, wild"):
        assert systems[name].conventions == systems[name].auxiliary == {}
        assert systems[name].lexicon.files == ()
    assert systems["linear, all"].conventions == {}
    assert systems["linear, all"].auxiliary == {"annotated": systems["FLAT, all"].auxiliary["annotated"]}
    assert systems["linear, all"].lexicon.files == systems["FLAT, all"].lexicon.files
    assert [systems[name].training.epochs for name in ("FLAT, wild", "FLAT, all")] == [8, 3]
    assert {system.data.train for system in systems.values()} == {(str(tmp_path / "open.jsonl"),)}


def test_sentences_and_names_of_the_genres_are_left_out(new_genres: ModuleType, tmp_path: Path) -> None:
    rows = [
        {"text": "李明来了", "entities": [{"start": 0, "end": 2, "label": "PER"}], "genre": "video"},
        {"text": "北京很大", "entities": [{"start": 0, "end": 2, "label": "LOC"}], "genre": "news"},
        {"text": "李明在北京", "entities": [{"start": 3, "end": 5, "label": "LOC"}], "genre": "video"},
    ]
    corpus, kept = tmp_path / "corpus.jsonl", tmp_path / "kept.jsonl"
    corpus.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    left_out = new_genres.without(corpus, {"video"}, kept)
    assert [document.text for document in left_out] == ["李明来了", "李明在北京"]
    assert [json.loads(line)["text"] for line in kept.read_text(encoding="utf-8").splitlines()] == ["北京很大"]
    names = tmp_path / "names.txt"
    names.write_text("北京\tLOC\n李明\tPER\n上海\tLOC\n", encoding="utf-8")
    others = new_genres.gazetteer_without(names, kept, left_out, tmp_path / "others.txt")
    assert others.read_text(encoding="utf-8") == "北京\tLOC\n上海\tLOC\n"

"""Published corpora, read completely and counted; needs HANLATTICE_DATA, the folder that contains them."""

import io
import os
from pathlib import Path

import pytest

from hanlattice import corpus
from hanlattice.corpus.checking import check
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.tagged import conll

DATA = Path(os.environ.get("HANLATTICE_DATA", "/nonexistent")) / "labelled"


def file(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"set HANLATTICE_DATA to a folder with labelled/{name}")
    return path


WEIBO = "weibo/weiboNER_2nd_conll"


@pytest.mark.parametrize(
    ("name", "form", "documents", "tokens", "lenient", "strict"),
    [
        (f"{WEIBO}.train", "conll", 1350, 73_778, 1895, 1885),
        (f"{WEIBO}.dev", "conll", 270, 14_509, 389, 389),
        (f"{WEIBO}.test", "conll", 270, 14_842, 418, 414),
        ("resume/train.char.bmes", "conll", 3821, 124_099, 13_440, 13_436),
        ("resume/dev.char.bmes", "conll", 463, 13_890, 1497, 1497),
        ("resume/test.char.bmes", "conll", 477, 15_100, 1630, 1630),
        ("msra/test4365.char.bmes", "conll", 4365, 172_601, 6181, 6181),
        ("msra/test_data", "conll", 4631, 172_601, 6192, 6181),
        ("ecommerce_mdg/train.txt.bieos", "conll", 3989, 119_085, 12_110, 12_109),
        ("ecommerce_mdg/dev.txt.bieos", "conll", 500, 14_885, 1540, 1540),
        ("ecommerce_mdg/test.txt.bieos", "conll", 498, 14_680, 1567, 1567),
        ("youku_allanj/train.txt", "conll", 8001, 136_240, 12_754, 12_754),
        ("youku_allanj/dev.txt", "conll", 1000, 16_346, 1581, 1581),
        ("youku_allanj/test.txt", "conll", 1001, 17_213, 1570, 1570),
        ("video_music_book/train.txt", "conll", 7809, 502_925, 13_532, None),
        ("video_music_book/valid.txt", "conll", 975, 62_388, 1777, 1777),
        ("video_music_book/test.txt", "conll", 978, 61_387, 1716, 1716),
        ("cluener2020/train.json", "cluener", 10_748, 401_764, 23_971, None),
        ("cluener2020/dev.json", "cluener", 1343, 50_260, 3072, None),
        ("cmeee/val_data.txt", "cmeee", 5000, 270_417, 20_300, None),
        ("people_daily_199801/derived/nested.jsonl", "jsonl", 19_484, 1_841_657, 60_472, None),
    ],
)
def test_counts_of_documents_tokens_and_entities(
    name: str, form: str, documents: int, tokens: int, lenient: int, strict: int | None
) -> None:
    path = file(name)
    assert corpus.detect(path) == form
    read = list(corpus.read(path))
    entities = [entity for document in read for entity in document.entities]
    assert len(read) == documents
    assert sum(len(document.tokens or document.text) for document in read) == tokens
    assert len(entities) == lenient
    assert all(entity.text for entity in entities)
    if strict is not None:
        assert sum(len(document.entities) for document in corpus.read(path, strict=True)) == strict


def test_counts_of_msra_train() -> None:
    documents = characters = entities = 0
    for document in corpus.read(file("msra/train_data")):
        documents += 1
        characters += len(document.text)
        entities += len(document.entities)
    assert (documents, characters, entities) == (50_658, 2_169_879, 74_709)


@pytest.mark.parametrize(
    ("name", "documents", "characters", "entities", "bad"),
    [
        ("cmeee/train_data.txt", 15_000, 812_295, 61_796, 2),
        ("literature/brat/Training", 695, 1_188_780, 124_992, 1905),
        ("literature/brat/Validation", 58, 113_036, 11_924, 3),
        ("literature/brat/Testing", 84, 154_771, 16_811, 9),
    ],
)
def test_every_lost_entity_is_reported(name: str, documents: int, characters: int, entities: int, bad: int) -> None:
    defects: list[Defect] = []
    read = list(corpus.read(file(name), on_defect=defects.append))
    assert (len(read), sum(len(document.text) for document in read)) == (documents, characters)
    lossy = [defect.kind for defect in defects if defect.lossy]
    assert lossy == ["misaligned span"] * bad
    assert {defect.kind for defect in defects} <= {"misaligned span", "unclear reference"}
    assert sum(len(document.entities) for document in read) + bad == entities


def test_cmeee_names_the_two_bad_lines() -> None:
    report = check([file("cmeee/train_data.txt")])
    assert [defect.line for defect in report.defects if defect.lossy] == [6052, 6422]
    assert report.kinds["duplicate"] + report.kinds["duplicate with other labels"] == 43
    assert report.kinds["duplicate with other labels"] == 18


def test_weibo_has_duplicates_and_leaks() -> None:
    kinds = check([file(f"{WEIBO}.train"), file(f"{WEIBO}.test")]).kinds
    assert kinds["duplicate"] + kinds["duplicate with other labels"] == 101 + 8
    assert kinds["duplicate with other labels"] == 36 + 1
    assert kinds["leak"] + kinds["leak with other labels"] == 40
    assert kinds["ill-formed tags"] == 10 + 4


@pytest.mark.parametrize("name", [f"{WEIBO}.train", "video_music_book/test.txt", "ecommerce_mdg/test.txt.bieos"])
def test_columns_are_read_back_as_written(name: str) -> None:
    read = list(corpus.read(file(name)))
    stream = io.StringIO()
    conll.write(read, stream, "BMES")
    again = conll.read(stream.getvalue().split("\n"))
    for one, other in zip(read, again, strict=True):
        assert (one.text, one.entities, one.tokens) == (other.text, other.entities, other.tokens)
        assert one.meta.get("positions") == other.meta.get("positions")

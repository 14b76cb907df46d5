"""Documents that share text with dev or excluded corpora are left out, wherever they share it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hanlattice import corpus
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, HanlatticeError
from hanlattice.spans import Span
from hanlattice.training.corpora import (
    SHARED_LENGTH,
    identical_texts,
    load_corpora,
    unknown_labels,
    without_shared,
)

DEV = "重庆人和药店昨天在渝中区开业了很多人都去看了热闹非常"


@pytest.mark.parametrize("start", [0, 3, len(DEV) - SHARED_LENGTH], ids=["first", "middle", "last"])
def test_twenty_shared_characters_are_enough(start: int) -> None:
    shared = DEV[start : start + SHARED_LENGTH]
    for text in (shared, f"听说{shared}", f"{shared}吗", f"听说{shared}吗"):
        assert without_shared([Document(DEV, ())], [Document(text, ())]) == []


@pytest.mark.parametrize("start", [0, 3, len(DEV) - SHARED_LENGTH + 1], ids=["first", "middle", "last"])
def test_nineteen_are_not(start: int) -> None:
    document = Document(f"甲{DEV[start : start + SHARED_LENGTH - 1]}乙", ())
    assert without_shared([Document(DEV, ())], [document]) == [document]


def test_case_and_width_do_not_matter() -> None:
    shared = "ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴ"
    assert without_shared([Document(shared, ())], [Document("abcdefghijklmnopqrst", ())]) == []


def test_white_space_does_not_matter() -> None:
    spaced = " ".join(DEV)
    for banned, text in ((DEV, spaced), (spaced, DEV)):
        assert without_shared([Document(banned, ())], [Document(text, ())]) == []


def test_shorter_texts_are_compared_as_a_whole() -> None:
    banned = [Document("今天天气 很好", ()), Document("", ())]
    kept = [
        Document(text, ())
        for text in ("今天天气很好吗", "天气很好", "", "他说今天天气很好，我们都去看了热闹吧", DEV)
    ]
    assert without_shared(banned, [Document(" 今天天气很好", ()), *kept]) == kept
    assert without_shared([Document(DEV, ())], [Document(DEV[:19], ())]) == [Document(DEV[:19], ())]


@pytest.mark.parametrize("name", ["data.train", "conventions.w.corpus", "auxiliary.w.corpus"])
def test_a_file_is_named_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "a.jsonl", Document(DEV, (Entity("重庆", "LOC", 0, 2),)))
    monkeypatch.setenv("PLACE", str(tmp_path))
    table, *rest, key = name.split(".")
    twice: dict[str, Any] = {key: [first, "$PLACE/a.jsonl"]}
    settings = {"data": {"train": [first]}} | {table: {rest[0]: twice} if rest else twice}
    with pytest.raises(ConfigError) as error:
        load_corpora(Config().with_settings(settings))
    assert str(error.value) == f"{name} names $PLACE/a.jsonl twice; name it once"


def write(path: Path, *documents: Document) -> str:
    corpus.write(list(documents), path, "jsonl")
    return str(path)


ONE = Document("李明在北京", (Entity("李明", "PER", 0, 2),))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "no training corpus: give --train FILE, or data.train in the settings"),
        ({"train": ["one"], "dev": "empty"}, "empty: has no document"),
        ({"train": ["empty"], "dev": "one"}, "empty: has no document"),
        (
            {"train": ["one"]},
            "one: too few documents for training and development; name a dev corpus with --dev, raise"
            r" data\.dev_share, or name more files",
        ),
        ({"train": ["plain"], "dev": "one"}, "plain: has no entity to learn from; name an annotated corpus"),
    ],
)
def test_corpora_without_documents_or_entities(data: dict[str, Any], problem: str, tmp_path: Path) -> None:
    files = {
        "one": write(tmp_path / "one", ONE),
        "plain": write(tmp_path / "plain", Document("今天天气很好")),
        "empty": str(tmp_path / "empty"),
    }
    (tmp_path / "empty").write_text("[]", "utf-8")
    named = {key: [files[name] for name in v] if isinstance(v, list) else files[v] for key, v in data.items()}
    config = Config().with_settings({"data": {"format": "jsonl", **named}})
    with pytest.raises(HanlatticeError, match=problem):
        load_corpora(config)


def test_equal_texts_are_in_train_or_in_dev(tmp_path: Path) -> None:
    texts = [f"{word}在北京工作了{i}年" for i in range(30) for word in ("李明", "张伟")]
    documents = [Document(text, (Entity(text[:2], "PER", 0, 2),)) for text in texts * 4]
    data = {"train": [write(tmp_path / "a", *documents)], "format": "jsonl", "dev_share": 0.3}
    found = load_corpora(Config().with_settings({"data": data}))
    train, dev = ({d.text for d in part} for part in (found.train, found.dev))
    assert not train & dev
    assert len(found.train) + len(found.dev) == 240
    assert 0.15 < len(found.dev) / 240 < 0.45


def test_why_no_document_is_left(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": 1}\n{"text": 2}\n', "utf-8")
    one = write(tmp_path / "one", Document("李明在北京的一家很大很大的公司里工作了很多年", ONE.entities))
    rows: list[tuple[dict[str, Any], str]] = [
        ({"train": [str(bad)], "dev": one, "drop": True}, r"bad\.jsonl:1: has no document that can be read: .*; "),
        (
            {"train": [one], "dev": one, "exclude": [one]},
            "too few documents .*; 1 share text with data.exclude",
        ),
    ]
    for data, message in rows:
        with pytest.raises(HanlatticeError, match=message):
            load_corpora(Config().with_settings({"data": {"format": "jsonl", **data}}))


def test_a_discontinuous_entity_removes_no_other_one(tmp_path: Path) -> None:
    text = "左右肺及心脏病变"
    whole = [Entity("左右肺", "部位", 0, 3), Entity("右肺", "部位", 1, 3), Entity("心脏", "部位", 4, 6)]
    broken = [Entity.of(text, Span(0, 8, "病", ((1, 6),))), Entity.of(text, Span(3, 8, "病", ((4, 6),)))]
    path = write(tmp_path / "a", Document(text, (*whole, *broken)))
    found = load_corpora(Config().with_settings({"data": {"train": [path], "dev": path, "outermost": True}}))
    assert [e.span for e in found.train[0].entities] == [whole[0].span, broken[1].span, whole[2].span]
    assert found.n_nested == 2


def test_labels_of_dev_and_test_that_train_lacks_are_named_and_counted(tmp_path: Path) -> None:
    other = Document("重庆和渝", (Entity("重庆", "LOC", 0, 2), Entity("渝", "GPE", 3, 4)))
    one = write(tmp_path / "one", ONE)
    data = {"train": [one], "dev": one, "test": write(tmp_path / "other", other)}
    found = load_corpora(Config().with_settings({"data": data}))
    assert list(unknown_labels(found, ["PER"])) == ["test has 2 entities with labels that train lacks: GPE, LOC"]
    assert list(unknown_labels(found, ["PER", "LOC", "GPE"])) == []
    assert len(list(unknown_labels(found, []))) == 2


def test_a_dev_set_without_entities_is_reported(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", Document("今天很好", ()))
    found = load_corpora(Config().with_settings({"data": {"train": [write(tmp_path / "one", ONE)], "dev": empty}}))
    (message,) = unknown_labels(found, ["PER"])
    assert message == "dev has no entities, so the best epoch cannot be chosen: name another corpus with --dev"


def test_entities_that_become_equal_count_once(tmp_path: Path) -> None:
    """A place that is annotated with two labels, which are then mapped to one."""
    twice = Document("他在北京", (Entity("北京", "GPE", 2, 4), Entity("北京", "LOC", 2, 4)))
    path = write(tmp_path / "twice.jsonl", twice)
    config = Config().with_settings({"data": {"train": path, "dev": path, "labels": {"GPE": "LOC"}}})
    found = load_corpora(config)
    assert [[e.span for e in d.entities] for d in (*found.train, *found.dev)] == [[Span(2, 4, "LOC")]] * 2


def test_formats_of_other_corpora_are_detected(tmp_path: Path) -> None:
    """Those of the settings are the formats of train, dev and test."""
    files = {name: str(tmp_path / name) for name in ("train", "names", "words", "excluded")}
    tags = ["B-PER", "E-PER", "O", "O"]
    lines = "".join(f"{c} {tag}\n" for c, tag in zip("李明工作", tags, strict=True))
    (tmp_path / "train").write_text(f"{lines}\n今 O\n天 O\n", "utf-8")
    for name in ("names", "words", "excluded"):
        write(tmp_path / name, ONE if name != "excluded" else Document("今天"))
    own = {"format": "bmes", "scheme": "BMES", "exclude": [files["excluded"]]}
    given: dict[str, dict[str, Any]] = {
        "data": {**dict.fromkeys(("train", "dev", "test"), files["train"]), **own},
        "conventions": {"names": {"corpus": files["names"]}},
        "auxiliary": {"words": {"corpus": files["words"]}},
    }
    found = load_corpora(Config().with_settings(given))
    assert [d.text for d in found.train] == ["李明工作"]
    assert [[d.text for d in documents] for documents in found.further.values()] == [[ONE.text]] * 2


def test_texts_of_train_in_dev_or_test_are_counted(tmp_path: Path) -> None:
    texts = ["李明在北京", "张伟在ABC", "李明在南京", "张伟在上海"]
    train, dev, test = (
        write(tmp_path / name, *(Document(text, (Entity(text[:2], "PER", 0, 2),)) for text in part))
        for name, part in (("train", texts), ("dev", ["李明 在北京"]), ("test", ["张伟在abc", "张伟在上"]))
    )
    found = load_corpora(Config().with_settings({"data": {"train": train, "dev": dev, "test": test}}))
    (message,) = identical_texts(found)
    assert message == "2 texts of train are in dev or test too, where the scores are higher than for new texts"
    assert not list(identical_texts(replace(found, train=found.train[2:])))

"""The spaCy component, with spaCy."""

import shutil
import warnings
from pathlib import Path

import pytest

import hanlattice
from hanlattice.errors import ConfigError, ModelError
from hanlattice.model.saving import save

spacy = pytest.importorskip("spacy", reason="spacy is not installed (scripts/integrations)")
import srsly  # noqa: E402
from spacy.language import Language  # noqa: E402
from spacy.tokens import Doc, Span  # noqa: E402

import hanlattice.integrations.spacy  # noqa: E402  # an installed package is found by its entry point

TEXT = "雷军在北京发布小米14，央视直播。"
EXPECTED = [("雷军", "PER", 0, 2), ("北京", "LOC", 3, 5), ("央视", "ORG", 12, 14)]


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = spacy.blank("zh")
    nlp.add_pipe("hanlattice")
    return nlp


def entities(doc: Doc) -> list[tuple[str, str, int, int]]:
    kept = {"PER", "LOC", "ORG"}
    return [(e.text, e.label_, e.start_char, e.end_char) for e in doc.ents if e.label_ in kept]


def test_entities_are_those_of_the_library(nlp: Language) -> None:
    doc = nlp(TEXT)
    assert entities(doc) == EXPECTED
    expected = hanlattice.load()(TEXT).entities
    assert [(e.text, e.label_) for e in doc.ents] == [(e.text, e.label) for e in expected]
    group = doc.spans["hanlattice"]
    assert [span.text for span in group] == [e.text for e in expected]
    assert group.attrs["scores"] == pytest.approx([e.score for e in expected], abs=1e-3)


def test_pipe_keeps_the_order(nlp: Language) -> None:
    texts = [TEXT, "", "今天天气很好。", *[f"李明在{place}工作。" for place in ("上海", "重庆")] * 40]
    docs = list(nlp.pipe(texts, batch_size=8))
    assert [doc.text for doc in docs] == texts
    assert [entities(doc) for doc in docs] == [entities(nlp(text)) for text in texts]
    assert entities(docs[3]) == [("李明", "PER", 0, 2), ("上海", "LOC", 3, 5)]
    both = list(nlp.pipe(texts[:6], n_process=2, batch_size=2))
    assert [entities(doc) for doc in both] == [entities(doc) for doc in docs[:6]]


def test_survives_the_disk_with_its_lexicon(tmp_path: Path) -> None:
    nlp = spacy.blank("zh")
    component = nlp.add_pipe("hanlattice", config={"convention": "msra", "threshold": 0.2})
    component.ner.lexicon.add("阿巴卡星", label="LOC")
    nlp.to_disk(tmp_path / "pipeline")
    assert not (tmp_path / "pipeline" / "hanlattice" / "model").exists()
    again = spacy.load(tmp_path / "pipeline")
    loaded = again.get_pipe("hanlattice")
    assert (loaded.ner.convention, loaded.settings["threshold"]) == ("msra", 0.2)
    assert "阿巴卡星" in loaded.ner.lexicon
    assert entities(again(TEXT)) == entities(nlp(TEXT))
    (tmp_path / "pipeline" / "hanlattice" / "hanlattice.json").write_text("{}")
    with pytest.raises(ModelError, match=r"hanlattice\.json: missing or broken"):
        spacy.load(tmp_path / "pipeline")


def test_a_model_in_a_folder_is_copied(tmp_path: Path) -> None:
    own = save(hanlattice.load(), tmp_path / "own")
    nlp = spacy.blank("zh")
    nlp.add_pipe("hanlattice", config={"model": str(own)})
    nlp.to_disk(tmp_path / "pipeline")
    expected = entities(nlp(TEXT))
    own.rename(tmp_path / "moved")
    again = spacy.load(tmp_path / "pipeline")
    assert entities(again(TEXT)) == expected == EXPECTED
    again.get_pipe("hanlattice").ner.lexicon.add("阿巴卡星")
    for _ in range(2):
        again.to_disk(tmp_path / "pipeline")
    assert "阿巴卡星" in spacy.load(tmp_path / "pipeline").get_pipe("hanlattice").ner.lexicon
    assert sorted(path.name for path in (tmp_path / "pipeline" / "hanlattice").iterdir()) == [
        "hanlattice.json",
        "model",
    ]


@pytest.mark.parametrize("packaged", [True, False])
def test_survives_bytes_with_its_lexicon(tmp_path: Path, packaged: bool) -> None:
    model = None if packaged else str(save(hanlattice.load(), tmp_path / "model"))
    nlp = spacy.blank("zh")
    component = nlp.add_pipe("hanlattice", config={"model": model, "threshold": 0.2})
    component.ner.lexicon.add("阿巴卡星", label="LOC")
    content, component_content = nlp.to_bytes(), component.to_bytes()
    if model:
        shutil.rmtree(model)
    again = spacy.blank("zh")
    again.add_pipe("hanlattice")
    loaded = again.from_bytes(content).get_pipe("hanlattice")
    assert loaded.settings == component.settings
    assert entities(again(TEXT)) == EXPECTED
    assert [(e.text, e.label_) for e in again("他去了阿巴卡星。").ents] == [("阿巴卡星", "LOC")]
    assert loaded.to_bytes() == component_content


@pytest.mark.parametrize(
    "content",
    [b"", b"abc", b"\x80", srsly.msgpack_dumps([1]), srsly.msgpack_dumps({"hanlattice.json": b"{}", "../a": b"x"})],
)
def test_other_bytes_are_one_line(nlp: Language, content: bytes) -> None:
    with pytest.raises(ModelError, match="these bytes are not from to_bytes of this component"):
        nlp.get_pipe("hanlattice").from_bytes(content)


def test_a_model_that_is_gone_is_one_line(tmp_path: Path) -> None:
    nlp = spacy.blank("zh")
    nlp.add_pipe("hanlattice", config={"model": str(tmp_path / "gone")})
    with pytest.raises(ModelError, match="gone: no such folder"):
        nlp(TEXT)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("expand", ["雷军在", "北京"]), ("contract", ["北京"]), ("strict", ["北京"])],
)
def test_docs_tokenised_differently_are_aligned_with_one_warning(mode: str, expected: list[str]) -> None:
    nlp = spacy.blank("zh")
    component = nlp.add_pipe("hanlattice", config={"alignment_mode": mode})
    words = ["雷军在", "北京", "发布会", "上"]
    with pytest.warns(UserWarning, match="tokenised differently: '雷军' at characters 0 to 2"):
        component(Doc(nlp.vocab, words=words, spaces=[False] * 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a second warning
        doc = component(Doc(nlp.vocab, words=words, spaces=[False] * 4))
    assert [e.text for e in doc.ents if e.label_ in ("PER", "LOC")] == expected


def test_tokens_that_fit_cause_no_warning(nlp: Language) -> None:
    component = nlp.get_pipe("hanlattice")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = component(Doc(nlp.vocab, words=["雷军", "在", "北京"], spaces=[False] * 3))
    assert [e.text for e in doc.ents] == ["雷军", "北京"]


def test_overlapping_entities_are_in_the_group_only(nlp: Language) -> None:
    component = nlp.get_pipe("hanlattice")
    doc = nlp.make_doc("北京大学很大")
    nested = [hanlattice.Entity("北京", "LOC", 0, 2, 0.9), hanlattice.Entity("北京大学", "ORG", 0, 4, 0.8)]
    component._set(doc, nested)
    assert [e.text for e in doc.ents] == ["北京大学"]
    assert [span.text for span in doc.spans["hanlattice"]] == ["北京", "北京大学"]


@pytest.mark.parametrize(("overwrite", "label"), [(True, "PER"), (False, "OWN")])
def test_earlier_entities(overwrite: bool, label: str) -> None:
    nlp = spacy.blank("zh")
    component = nlp.add_pipe("hanlattice", config={"overwrite_ents": overwrite})
    doc = nlp.make_doc(TEXT)
    doc.set_ents([Span(doc, 0, 2, "OWN")])
    component(doc)
    assert (doc.ents[0].text, doc.ents[0].label_) == ("雷军", label)
    assert "北京" in [e.text for e in doc.ents]


def test_no_group_of_spans() -> None:
    nlp = spacy.blank("zh")
    nlp.add_pipe("hanlattice", config={"spans_key": None})
    doc = nlp("雷军在北京")
    assert [e.text for e in doc.ents] == ["雷军", "北京"]
    assert len(doc.spans) == 0


def test_wrong_settings_are_one_line() -> None:
    nlp = spacy.blank("zh")
    for settings, message in (
        ({"alignment_mode": "guess"}, "alignment_mode must be one of"),
        ({"threshold": 2.0}, "threshold must be between 0 and 1"),
        ({"convention": "nothing"}, "nothing"),
    ):
        with pytest.raises(ConfigError, match=message):
            nlp.add_pipe("hanlattice", name="x", config=settings)

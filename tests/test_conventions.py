"""Annotation conventions: one model learns from corpora annotated differently, and answers by each."""

import asyncio
import shutil
import threading
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import hanlattice
import tiny
from hanlattice import api, corpus
from hanlattice.build import build
from hanlattice.config.files import load_config, save_config
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.embeddings.words import Composition
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.errors import ConfigError, DataError, HanlatticeError, UnknownConvention
from hanlattice.inputs.batch import collate
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels import library
from hanlattice.model.folder import WEIGHTS, ModelFolder
from hanlattice.model.weights import load_weights
from hanlattice.pipeline import NER
from hanlattice.spans import Span
from hanlattice.tagger import Head
from hanlattice.text.edges import trimmed
from hanlattice.training import Silent
from hanlattice.training.corpora import consistent, load_corpora
from hanlattice.training.prepare import prepare
from hanlattice.training.tasks import with_heads

TEXTS = [
    "李明在北京工作。",
    "",
    "王",
    "昨天 王小红去了 光明集团",
    "人和药店的长江大桥局很好,赵子龙说" * 9,  # more than a window
    "孙悟空和花果山",
]
SMALL = {"encoder": {"d_model": 32, "d_feed_forward": 32}}  # which the kernels in C can read


class Memory(Silent):
    """Keeps what a run says, and stops it after an epoch."""

    def __init__(self, stop_after: int = 0):
        self.said: list[str] = []
        self.stop_after = stop_after

    def say(self, message: str) -> None:
        self.said.append(message)

    def epoch(self, row: dict[str, Any]) -> None:
        if row["epoch"] == self.stop_after:
            raise KeyboardInterrupt


def words() -> list[Document]:
    """Sentences whose every known word is marked."""
    texts = ["王小红去了上海的药店", "昨天李明在光明集团工作", "南京市的天气今天很好"]
    known = [word for word in tiny.WORDS if word not in ("药店", "集团")]
    marked = [[(text.index(w), w) for w in known if w in text] for text in texts]
    return [
        Document(text, tuple(Entity(w, f"w{len(w)}", at, at + len(w)) for at, w in sorted(found)))
        for text, found in zip(texts, marked, strict=True)
    ]


def config(folder: Path, *, run: int = 3, **settings: Any) -> Config:
    """The small world by its own convention ``open``, and by ``names`` and ``word-s``."""
    corpus.write(tiny.other_documents(), folder / "names.jsonl", "jsonl")
    corpus.write(words(), folder / "words.jsonl", "jsonl")
    own = {
        "data": {"convention": "open", "user_words": 0.3},
        "conventions": {
            "names": {"corpus": str(folder / "names.jsonl"), "edges": "punctuation"},
            "word-s": {"corpus": str(folder / "words.jsonl"), "decoder": {"name": "softmax"}, "weight": 0.5},
        },
    }
    return tiny.config(epochs=run).with_settings(SMALL).with_settings(own).with_settings(settings)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("conventions")
    return api.train(config(place, run=20), output=place / "run").folder


@pytest.fixture
def ner(trained: Path) -> NER:
    return api.load(trained, engine="torch")


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from hanlattice.engines.export import export

    folder = tmp_path_factory.mktemp("exported") / "model"
    assert export(trained, folder).difference < 1e-4
    return folder


def labels_in(documents: Sequence[Document]) -> set[str]:
    return {entity.label for document in documents for entity in document.entities}


def answers(ner: NER, texts: Sequence[str] = TEXTS, convention: str | None = None) -> list[list[tuple[Any, ...]]]:
    with ner.using(convention=convention):
        return [[(e.start, e.end, e.label) for e in document.entities] for document in ner.pipe(texts)]


def scored(ner: NER, convention: str) -> dict[tuple[int, int, int, str], float]:
    """The score of each entity of all texts."""
    with ner.using(convention=convention):
        return {
            (i, e.start, e.end, e.label): e.score or 0.0
            for i, document in enumerate(ner.pipe(TEXTS))
            for e in document.entities
        }


def agree(ner: NER, other: NER, convention: str) -> bool:
    """Whether two engines find the same entities with the same scores, but for ties that rounding decides."""
    found = scored(ner, convention), scored(other, convention)
    sure = {entity for own in found for entity, score in own.items() if score > 0.55}
    assert len(sure) > 3
    return all(
        entity in found[0] and entity in found[1] and abs(found[0][entity] - found[1][entity]) < 1e-3
        for entity in sure
    )


class TestAnswers:
    def test_each_convention_has_its_own_labels(self, ner: NER) -> None:
        assert ner.conventions == ("open", "names", "word-s")
        assert ner.active_convention == "open"
        assert ner.labels == ("LOC", "ORG", "PER")
        with ner.using(convention="names"):
            assert [ner.active_convention, *ner.labels] == ["names", "name", "place"]
        assert labels_in(list(ner.pipe(TEXTS))) <= {"LOC", "ORG", "PER"}

    def test_each_is_learnt(self, ner: NER) -> None:
        assert api.evaluate(ner, tiny.documents()).micro.f1 > 0.9
        with ner.using(convention="names"):
            report = api.evaluate(ner, tiny.other_documents())
        assert report.micro.f1 > 0.9
        assert "reachable" not in report.forms
        with ner.using(convention="word-s"):
            assert api.evaluate(ner, words()).micro.f1 > 0.5

    @pytest.mark.parametrize("convention", ["open", "names", "word-s"])
    def test_a_batch_is_read_as_one_by_one(self, ner: NER, convention: str) -> None:
        assert answers(ner, convention=convention) == [answers(ner, [t], convention)[0] for t in TEXTS]

    def test_a_model_may_be_loaded_with_one(self, trained: Path, ner: NER) -> None:
        loaded = api.load(trained, engine="torch", convention="names")
        assert loaded.labels == ("name", "place")
        assert answers(loaded) == answers(ner, convention="names")
        assert answers(loaded, convention="open") == answers(ner)
        assert loaded.conventions == ner.conventions

    def test_each_trims_entities_by_its_own_settings(self, ner: NER) -> None:
        class Told:
            nested = False

            def is_nested(self, convention: str = "") -> bool:
                return False

            def eval(self) -> None:
                pass

            def find(self, sentences: Sentences, convention: str = "", *, batch_size: int = 0) -> list[list[Any]]:
                from hanlattice.spans import ScoredSpan

                label = "name" if convention else "PER"
                return [[ScoredSpan(0, len(s), label, 0.5)] for s in sentences]

        told = NER(Told(), ner.vocabulary, ner.lexicon, ner.config)
        assert trimmed("“李明", 0, 3, "punctuation") == (1, 3)
        assert answers(told, ["“李明"]) == [[(0, 3, "PER")]]
        assert answers(told, ["“李明"], "names") == [[(1, 3, "name")]]

    def test_forced_labels_are_those_of_the_active_one(self, ner: NER) -> None:
        with ner.using(convention="names", force={"工作": "place"}):
            assert (6, 8, "place") not in answers(ner, ["李明在北京工作。"])[0]
            assert (5, 7, "place") in answers(ner, ["李明在北京工作。"])[0]
        with (
            pytest.raises(HanlatticeError, match=r"'ORG', which convention 'names' lacks; it has name, place"),
            ner.using(convention="names", force={"工作": "ORG"}),
        ):
            pass
        with ner.using(force={"工作": "ORG"}):
            assert (5, 7, "ORG") in answers(ner, ["李明在北京工作。"])[0]
            with (
                pytest.raises(HanlatticeError, match=r"'工作' has the label 'ORG', which convention 'names' lacks"),
                ner.using(convention="names"),
            ):
                pass
            with ner.using(convention="names", force={}):
                assert (5, 7, "ORG") not in answers(ner, ["李明在北京工作。"])[0]

    def test_user_words_count_by_the_labels_of_the_active_one(self, ner: NER) -> None:
        ner.lexicon.add("花果山", "place")
        kinds = ner.vocabulary.word_kinds
        for labels, kind in ((ner.vocabulary.labels, "<user>"), (("name", "place"), "<user> place")):
            (read,) = ner.reader.read(["花果山"], ner.lexicon, labels)
            assert [kinds[row - 1] for row in read.word_labels.tolist()] == [kind]

    def test_an_unknown_one_is_one_clear_line(self, trained: Path, ner: NER) -> None:
        expected = r"^the model has no convention 'nowhere'; it has open, names, word-s$"
        with pytest.raises(UnknownConvention, match=expected):
            api.load(trained, convention="nowhere")
        with pytest.raises(UnknownConvention, match=expected), ner.using(convention="nowhere"):
            pass
        assert ner.active_convention == "open"


class TestUsing:
    def test_inner_blocks_add_to_outer_ones(self, ner: NER) -> None:
        own, names = answers(ner), answers(ner, convention="names")
        assert own != names
        with ner.using(convention="names"):
            with ner.using(threshold=0.0):
                assert answers(ner) == names
            with ner.using(convention="open"):
                assert answers(ner) == own
            assert answers(ner) == names
        assert answers(ner) == own

    def test_a_stream_keeps_what_held_when_it_was_made(self, ner: NER) -> None:
        with ner.using(convention="names"):
            stream = ner.pipe(TEXTS)
        assert labels_in(list(stream)) <= {"name", "place"}

    def test_threads_and_tasks_do_not_see_each_other(self, ner: NER) -> None:
        expected = {name: answers(ner, convention=name) for name in ner.conventions}
        together, found = threading.Barrier(3, timeout=60), dict[str, list[Any]]()

        def work(name: str) -> None:
            with ner.using(convention=name):
                together.wait()
                found[name] = [answers(ner) for _ in range(5)]

        threads = [threading.Thread(target=work, args=[name]) for name in ner.conventions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {name: [rows] * 5 for name, rows in expected.items()}

        async def task(name: str) -> bool:
            with ner.using(convention=name):
                await asyncio.sleep(0)
                return answers(ner) == expected[name]

        async def tasks() -> list[bool]:
            return await asyncio.gather(*map(task, [*ner.conventions] * 3))

        assert all(asyncio.run(tasks()))


class TestEngines:
    CONVENTIONS = ("open", "names", "word-s")

    def test_onnx_answers_as_torch(self, ner: NER, exported: Path) -> None:
        other = api.load(exported, engine="onnx")
        assert other.conventions == self.CONVENTIONS
        for convention in self.CONVENTIONS:
            assert agree(ner, other, convention)
        assert api.load(exported, engine="onnx", convention="names").labels == ("name", "place")

    @pytest.mark.skipif(not library.levels(), reason="no C compiler, or no processor with AVX2 or NEON")
    def test_the_kernels_answer_as_torch(self, ner: NER, trained: Path) -> None:
        other = api.load(trained, engine="native", threads=2)
        for convention in self.CONVENTIONS:
            assert agree(ner, other, convention)

    @pytest.mark.skipif(not library.levels(), reason="no C compiler, or no processor with AVX2 or NEON")
    @pytest.mark.parametrize("int8", [False, True])
    def test_emissions_of_the_kernels_with_large_shifts(
        self, ner: NER, tmp_path: Path, trained: Path, int8: bool
    ) -> None:
        """User words of all kinds, and shifts that would hide behind nothing."""
        if int8 and not any(level for level in library.levels() if library.opened(level).int8_step()):
            pytest.skip("no int8 instructions on this processor")
        folder = shutil.copytree(trained, tmp_path / "model")
        tagger = ner.tagger
        for head in tagger.conventions.values():
            torch.nn.init.normal_(cast(Head, head).shift, std=2.0, generator=torch.Generator().manual_seed(0))
        from hanlattice.model.weights import save_weights

        save_weights(tagger.state_dict(), folder / WEIGHTS)
        kernels = NativeTagger(ModelFolder.open(folder), threads=1, int8=int8)
        ner.lexicon.update(["孙悟空", ("花果山", "LOC", None), ("和花果山", "place", None)])
        sentences = ner.reader.read([t for t in TEXTS if 0 < len(t) <= 64], ner.lexicon)
        assert max(s.word_labels.max(initial=0) for s in sentences) > len(ner.vocabulary.word_labels)
        batch = collate(sentences)
        for convention in ("", "names", "word-s"):
            found = kernels.flat.read(sentences, convention)
            with torch.inference_mode():
                expected = tagger(batch, convention)[batch.mask].numpy()
            found = found[:, : expected.shape[1]]
            if int8:
                assert np.abs(found - expected).mean() < 0.1 * np.abs(expected).mean()
            else:
                np.testing.assert_allclose(found, expected, atol=2e-4, rtol=1e-3)


class TestTheTagger:
    def test_a_shift_has_an_effect(self, ner: NER) -> None:
        tagger = ner.tagger
        batch = collate(ner.reader.read(["李明在北京工作。"], ner.lexicon))
        head = tagger.head("names")
        assert head is not None
        assert head.shift.any(), "nothing was learnt"
        with torch.inference_mode():
            own, before = tagger(batch), tagger(batch, "names")
            head.shift.mul_(-3)
            assert not torch.allclose(tagger(batch, "names"), before)
            assert torch.equal(tagger(batch), own)

    def test_the_default_one_is_untouched_by_another_head(self, ner: NER) -> None:
        before = answers(ner)
        head = ner.tagger.head("names")
        assert head is not None
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.normal_()
        assert answers(ner) == before
        assert answers(ner, convention="names") != before

    def test_a_gradient_reaches_the_shift_and_the_decoder_of_its_convention(self, tmp_path: Path) -> None:
        run = prepare(config(tmp_path), "cpu", Silent())
        _, names, word_s = run.tasks
        tagger = run.ner.tagger.train()
        batch = collate([e.encoded for e in names.examples])
        tagger.loss(batch, [e.spans for e in names.examples], names.head).backward()
        assert names.head is not None
        assert word_s.head is not None
        assert names.labels == ("name", "place")
        for name, p in names.head.named_parameters():
            assert p.grad is not None, name
            assert p.grad.any(), name
        assert all(p.grad is None for part in (tagger.decoder, word_s.head) for p in part.parameters())
        assert all(p.grad is not None for p in tagger.encoder.parameters())
        tagger.loss(batch, [[Span(0, 1, "PER")] for _ in names.examples]).backward()
        assert all(p.grad is not None for p in tagger.decoder.parameters())

    def test_every_head_is_built_and_the_shift_begins_at_zero(self, tmp_path: Path) -> None:
        run = prepare(config(tmp_path), "cpu", Silent())
        heads = {name: cast(Head, head) for name, head in run.ner.tagger.conventions.items()}
        assert list(heads) == ["names", "word-s"]
        assert [task.head for task in run.tasks] == [None, *heads.values()]
        assert all(not head.shift.any() for head in heads.values())
        assert heads["word-s"].decoder.labels == ("w2", "w3", "w4")
        assert with_heads(run.ner.tagger, run.tasks) is run.ner.tagger, "every weight that is learnt is saved"

    def test_the_table_of_kinds_has_rows_for_labels_of_all(self, ner: NER) -> None:
        (composition,) = (m for m in ner.tagger.modules() if isinstance(m, Composition))
        assert len(composition.label.weight) == ner.vocabulary.n_word_kinds == 2 * (1 + 3 + 2 + 3)
        assert set(ner.vocabulary.word_labels) == ner.vocabulary.all_labels

    def test_a_decoder_of_nested_entities_is_asked_by_its_convention(self, tmp_path: Path) -> None:
        deep = Document("重庆大学", (Entity("重庆", "place", 0, 2), Entity("重庆大学", "name", 0, 4)))
        corpus.write([deep] * 6, tmp_path / "deep.jsonl", "jsonl")
        table = {"corpus": str(tmp_path / "deep.jsonl"), "decoder": {"name": "global_pointer", "d_head": 8}}
        run = api.train(
            tiny.config(epochs=20).with_settings({"conventions": {"deep": table}}), output=tmp_path / "run"
        )
        ner = api.load(run.folder, convention="deep")
        assert ner.tagger.is_nested("deep")
        assert not ner.tagger.is_nested()
        assert ner(deep.text).spans == deep.spans
        assert api.evaluate(ner, [deep]).forms["nested"].recall == 1.0
        with ner.using(convention="default"):
            spans = ner(deep.text).spans
            assert len({s.start for s in spans}) == len(spans)


class TestFolders:
    def test_settings_are_written_and_read_again(self, tmp_path: Path) -> None:
        given = config(
            tmp_path,
            conventions={"names": {"labels": {"NR": "name"}, "share": 0.5, "epochs": 3, "corpus": ["a", "b"]}},
        )
        save_config(given, tmp_path / "config.toml")
        assert load_config(tmp_path / "config.toml") == given
        changed = load_config(tmp_path / "config.toml", {"conventions.names.share": "0.25"})
        assert changed.conventions["names"].share == 0.25
        assert changed.conventions["names"].decoder == given.conventions["names"].decoder
        assert given.conventions["names"].corpus == ("a", "b")
        with (tmp_path / "config.toml").open("rb") as stream:
            assert set(tomllib.load(stream)["conventions"]) == {"names", "word-s"}

    def test_a_saved_model_is_the_same_after_loading(self, trained: Path, ner: NER, tmp_path: Path) -> None:
        from hanlattice.model.weights import save_model

        save_model(tmp_path / "again", ner.tagger, ner.vocabulary, ner.lexicon, ner.config)
        again = api.load(tmp_path / "again", engine="torch")
        for convention in ner.conventions:
            assert answers(again, convention=convention) == answers(ner, convention=convention)

    def test_settings_without_a_convention_of_the_vocabulary_are_refused(self, ner: NER) -> None:
        from hanlattice.embeddings.initial_weights import Tables

        tables = Tables.empty(ner.vocabulary, {"chars": 8, "bigrams": 8, "words": 8})
        with pytest.raises(ConfigError, match=r"there are no settings conventions.others"):
            build(ner.config, tables, ner.vocabulary.labels, {"others": ("A",)})

    def test_a_model_of_one_convention_is_as_ever(self) -> None:
        ner = tiny.ner()
        assert ner.conventions == ("default",)
        assert not len(api.load(tiny.trained(), engine="torch").tagger.conventions)
        assert not [name for name in load_weights(tiny.trained() / WEIGHTS) if "convention" in name]


class TestTraining:
    def test_auxiliary_corpora_leave_nothing_behind(self, tmp_path: Path) -> None:
        given = config(tmp_path, auxiliary={"more": {"corpus": str(tmp_path / "words.jsonl")}})
        run = api.train(given, output=tmp_path / "run")
        weights = load_weights(run.folder / WEIGHTS)
        assert not [name for name in weights if "more" in name or "auxiliary" in name]
        assert {name.split(".")[1] for name in weights if name.startswith("conventions.")} == {"names", "word-s"}
        ner = api.load(run.folder)
        assert ner.conventions == ("open", "names", "word-s")

    @pytest.mark.parametrize("average", [0.0, 0.9])
    def test_a_run_that_was_stopped_goes_on_to_the_same_result(self, tmp_path: Path, average: float) -> None:
        extra = {
            "data": {"noise": 0.3, "unpunctuated": 0.2},
            "training": {"average": average},
            "conventions": {"names": {"share": 0.5}},
            "auxiliary": {"more": {"corpus": str(tmp_path / "words.jsonl"), "share": 0.7, "epochs": 3}},
        }
        given = config(tmp_path, run=4, **extra)
        whole = api.train(given, output=tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            api.train(given, output=tmp_path / "stopped", watcher=Memory(stop_after=2))
        again = api.train(given, output=tmp_path / "stopped", resume=True)
        expected, found = load_weights(whole.folder / WEIGHTS), load_weights(again.folder / WEIGHTS)
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)

    def test_what_is_said_names_every_corpus(self, tmp_path: Path) -> None:
        memory = Memory()
        api.train(config(tmp_path, run=1), output=tmp_path / "run", watcher=memory)
        said = "\n".join(memory.said)
        assert "also 30 documents of 'names' in 30 windows, 40 spans of 2 labels" in said
        assert "also 3 documents of 'word-s' in 3 windows" in said

    def test_a_corpus_of_the_same_convention_teaches_its_head(self, tmp_path: Path) -> None:
        table = {"corpus": str(tmp_path / "more.jsonl"), "same_convention": True, "weight": 0.3, "share": 0.5}
        given = config(tmp_path, auxiliary={"more": table})
        corpus.write(
            [Document("孙悟空在花果山", (Entity("孙悟空", "PER", 0, 3),))] * 4, tmp_path / "more.jsonl", "jsonl"
        )
        run = prepare(given, "cpu", Silent())
        more = run.tasks[-1]
        assert (more.head, more.labels, more.weight, len(more)) == (None, ("PER",), 0.3, 2)
        assert with_heads(run.ner.tagger, run.tasks) is run.ner.tagger
        assert run.ner.labels == ("LOC", "ORG", "PER")
        trained = api.train(given, output=tmp_path / "run")
        assert api.load(trained.folder).conventions == ("open", "names", "word-s")

    def test_labels_are_renamed(self, tmp_path: Path) -> None:
        given = config(tmp_path, conventions={"names": {"labels": {"place": "LOC", "nothing": "X"}}})
        memory = Memory()
        assert prepare(given, "cpu", memory).ner.vocabulary.conventions["names"] == ("LOC", "name")
        assert "conventions.names.labels renames nothing, which its corpus does not have" in memory.said

    def test_of_two_corpora_that_contradict_each_other_the_first_counts(self, tmp_path: Path) -> None:
        given = config(tmp_path)
        text = tiny.documents()[0].text
        corpus.write(
            [Document("新的句子在此", (Entity("新", "name", 0, 1),)), Document(text, ())],
            tmp_path / "b.jsonl",
            "jsonl",
        )
        both = [str(tmp_path / "names.jsonl"), str(tmp_path / "b.jsonl")]
        given = given.with_settings({"conventions": {"names": {"corpus": both}}})
        memory = Memory()
        run = prepare(given, "cpu", memory)
        assert len(run.tasks[1].examples) == 31
        said = "\n".join(memory.said)
        assert "; 1 texts left out that an earlier file of their convention annotates differently" in said
        assert (
            f"left out: {tmp_path / 'b.jsonl'}:2: an earlier file has this text with other entities: {text}" in said
        )

    def test_conventions_do_not_contradict_one_another(self, tmp_path: Path) -> None:
        assert load_corpora(config(tmp_path)).contradictions == []

    def test_consistent_keeps_repeated_texts_that_agree(self) -> None:
        (one, other), (again, _) = (
            [replace(d, meta={"@file": file}) for d in tiny.documents()[:2]] for file in "ab"
        )
        changed = replace(again, entities=())
        assert consistent([one, other, again, changed, again]) == ([one, other, again, again], [changed])

    def test_annotations_of_one_file_do_not_contradict_each_other(self) -> None:
        one, changed = (
            replace(tiny.documents()[0], entities=e, meta={"@file": "a"})
            for e in (tiny.documents()[0].entities, ())
        )
        later, third = (replace(one, entities=e, meta={"@file": "b"}) for e in ((), one.entities[:1]))
        assert consistent([one, changed, later, third, third]) == ([one, changed, later], [third, third])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"conventions": {"names": {"corpus": []}}},
            r"^conventions\.names\.corpus is empty: name a file, or remove 'names'$",
        ),
        ({"conventions": {"open": {"corpus": "x"}}}, r"^'open' names two conventions or auxiliary corpora; rename"),
        ({"auxiliary": {"names": {"corpus": "x"}}}, r"^'names' names two conventions or auxiliary corpora; rename"),
        (
            {"conventions": {"items": {"corpus": "x"}}},
            r"^conventions\.items: 'items' means something else inside a",
        ),
        (
            {"conventions": {"names": {"decoder": {"name": "cfr"}}}},
            r"^there is no conventions\.names\.decoder 'cfr'; did you mean 'crf'",
        ),
    ],
)
def test_settings_that_cannot_be_are_one_clear_line(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    given = config(tmp_path)
    with pytest.raises(ConfigError, match=message) as caught:
        api.train(given.with_settings(settings), output=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["a.b", "1998", "", "a b", "名"])
def test_names_have_a_few_characters_only(name: str) -> None:
    with pytest.raises(ConfigError, match=r"a name has ASCII letters, digits, - and _, a letter first"):
        tiny.config().with_settings({"conventions": {name: {"corpus": "x"}}})


@pytest.mark.parametrize("values", [{"share": 0.0}, {"share": 1.5}, {"weight": -1.0}, {"epochs": -1}])
def test_numbers_have_limits(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        tiny.config().with_settings({"conventions": {"names": values}})


def test_a_corpus_that_is_missing_or_says_nothing_is_named(tmp_path: Path) -> None:
    given = config(tmp_path, conventions={"names": {"corpus": str(tmp_path / "nowhere.jsonl")}})
    with pytest.raises(DataError, match=r"nowhere\.jsonl: cannot be read"):
        api.train(given, output=tmp_path / "run")
    corpus.write([Document("今天天气很好", ())], tmp_path / "plain.jsonl", "jsonl")
    for kind in ("conventions", "auxiliary"):
        table = {kind: {"plain": {"corpus": str(tmp_path / "plain.jsonl")}}}
        with pytest.raises(DataError, match=r"plain\.jsonl: 'plain' is left with no entity to learn from"):
            api.train(tiny.config().with_settings(table), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_dev_holds_is_left_out_of_other_conventions(tmp_path: Path) -> None:
    long = "重庆人和药店昨天在渝中区开业了很多人都去看了热闹"
    corpus.write([Document(long, (Entity("重庆", "LOC", 0, 2),))], tmp_path / "dev.jsonl", "jsonl")
    given = config(tmp_path, data={"dev": str(tmp_path / "dev.jsonl")})
    corpus.write(
        [*tiny.other_documents(), Document(f"听说{long}。", (Entity("重庆", "place", 2, 4),))],
        tmp_path / "names.jsonl",
        "jsonl",
    )
    assert len(load_corpora(given).further["names"]) == 30


def test_the_packaged_recipe_names_conventions_that_can_be_built() -> None:
    recipe = Path(hanlattice.__file__).parent / "papers" / "hanlattice" / "open.toml"
    from hanlattice.build import check

    given = load_config(recipe)
    check(given)
    assert given.data.convention not in given.conventions
    assert set(given.conventions) >= {"msra", "weibo", "resume"}

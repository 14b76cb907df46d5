"""Training that begins with another model."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import tiny
from hanlattice import api, corpus
from hanlattice.cli import main
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config, save_config, to_dict
from hanlattice.config.settings import Config
from hanlattice.decoders.tagging import CRF, Softmax
from hanlattice.document import Document, Entity
from hanlattice.embeddings.characters import Characters
from hanlattice.errors import ConfigError
from hanlattice.lexicon.edits import save_edits
from hanlattice.model.folder import CONFIG, EDITS, LEXICON
from hanlattice.pipeline import NER
from hanlattice.tagger import Head
from hanlattice.training import Silent
from hanlattice.training.fine_tuning import LEAST_STEPS, _copy_tags, copy_weights, settings_for_fine_tuning
from hanlattice.training.vocabularies import load_lexicon
from hanlattice.vectors import default_vectors


def further(place: Path) -> Path:
    """Sentences with characters and words that the small world lacks, and the same types."""
    texts = [
        ("李明在杭州市工作", (0, 2, "PER"), (3, 6, "LOC")),
        ("光明集团在杭州市开业", (0, 4, "ORG"), (5, 8, "LOC")),
    ] * 3
    path = place / "further.jsonl"
    corpus.write(
        [Document(t, tuple(Entity(t[s:e], x, s, e) for s, e, x in found)) for t, *found in texts], path, "jsonl"
    )
    return path


def going_on(place: Path, **settings: object) -> Config:
    path = str(further(place))
    config = settings_for_fine_tuning(str(tiny.trained()))
    training = {"epochs": 1, "least_steps": 0, **settings}
    return config.with_settings({"data": {"train": path, "dev": path}, "training": training})


def test_corpora_and_word_lists_of_the_start_are_not_read(tmp_path: Path) -> None:
    """They may be missing on the machine of the user, or their variables may not be set."""
    folder, path = tmp_path / "start", "$NOT_SET/file"
    shutil.copytree(tiny.trained(), folder)
    settings = {
        "data": {"train": [path], "dev": path, "test": path, "exclude": [path], "names_from": "lexicon"},
        "auxiliary": {"words": {"corpus": path}},
        "lexicon": {"files": [path]},
        "training": {"seed": 7},
    }
    save_config(load_config(folder / CONFIG).with_settings(settings), folder / CONFIG)
    config = settings_for_fine_tuning(str(folder))
    assert path not in json.dumps(to_dict(config))
    assert config.lexicon.files == (str(folder / LEXICON),)
    assert config.training.start == str(folder)
    assert config.training.seed == 7
    assert config.data.names_from == "lexicon"


def test_the_command_needs_only_the_corpora_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Although the start was trained on others, by paths with variables that are not set here."""
    monkeypatch.delenv("NOT_SET", raising=False)
    start = tmp_path / "start"
    shutil.copytree(tiny.trained(), start)
    settings = {
        "data": {"train": ["$NOT_SET/a"], "dev": "$NOT_SET/b", "test": "$NOT_SET/c"},
        "auxiliary": {"words": {"corpus": "$NOT_SET/d"}},
        "lexicon": {"files": ["$NOT_SET/e"]},
    }
    save_config(load_config(start / CONFIG).with_settings(settings), start / CONFIG)
    corpora = str(further(tmp_path))
    command = ["train", "--start", str(start), "--train", corpora, "--dev", corpora]
    vectors = ["--vectors", str(tiny.folder() / "vectors.safetensors")]
    few = ["--training.epochs", "1", "--training.least_steps", "0"]
    with pytest.raises(SystemExit) as left:
        main([*command, *vectors, *few, "--output", str(tmp_path / "model")])
    assert not left.value.code, capsys.readouterr().err
    assert api.load(tmp_path / "model")("李明在杭州市工作").text


def test_rare_bigrams_of_the_new_corpus_are_read_as_they_are(tmp_path: Path) -> None:
    """The start read those that were rare in its own, large corpus as unknown."""
    folder = tmp_path / "start"
    shutil.copytree(tiny.trained(), folder)
    settings = {"vectors": {"bigram_frequency": 12}}
    save_config(load_config(folder / CONFIG).with_settings(settings), folder / CONFIG)
    assert settings_for_fine_tuning(str(folder)).vectors.bigram_frequency == 1


@pytest.mark.parametrize(
    ("start", "optimiser", "rate", "expected"),
    [
        ("", "adamw", 0.25, 0.125),
        ("another", "adamw", 0.25, 0.25),  # its own rate was that of fine-tuning
        ("", "adamw", 1e-3, 1e-3),
        ("another", "adamw", 1e-4, 1e-3),
        ("", "sgd", 1e-3, 5e-4),
    ],
)
def test_the_learning_rate_follows_that_of_the_start(
    start: str, optimiser: str, rate: float, expected: float, tmp_path: Path
) -> None:
    folder = tmp_path / "start"
    shutil.copytree(tiny.trained(), folder)
    training = {"training": {"start": start, "optimiser": optimiser, "learning_rate": rate}}
    save_config(load_config(folder / CONFIG).with_settings(training), folder / CONFIG)
    assert settings_for_fine_tuning(str(folder)).training.learning_rate == expected


def test_the_initial_model_predicts_like_its_start(tmp_path: Path) -> None:
    config = going_on(tmp_path, learning_rate=1e-12, schedule="constant")
    run = api.train(config, output=tmp_path / "model")
    first, second = api.load(tiny.trained()), api.load(run.folder)
    texts = [d.text for d in tiny.documents()]
    assert [d.spans for d in second(texts)] == [d.spans for d in first(texts)]
    scores = [[e.score for d in ner(texts) for e in d.entities] for ner in (first, second)]
    assert scores[1] == pytest.approx(scores[0], abs=1e-4)
    assert len(second.vocabulary.chars) > len(first.vocabulary.chars)


def test_new_entities_are_learned_and_old_ones_kept(tmp_path: Path) -> None:
    config = going_on(tmp_path, epochs=100, evaluate_from=100)
    run = api.train(config, output=tmp_path / "model")
    assert run.dev.micro.f1 == 1.0
    assert api.evaluate(api.load(run.folder), tiny.documents()).micro.f1 > 0.9


def test_a_small_corpus_is_read_more_often_for_enough_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert settings_for_fine_tuning(str(tiny.trained())).training.least_steps == LEAST_STEPS
    config = going_on(tmp_path, epochs=2, batch_size=3, least_steps=7)
    lines = TrainingLines(config.training.epochs)
    progress = api.train(config, output=tmp_path / "model", watcher=lines).progress
    assert (progress.epoch, progress.step) == (4, 8)  # an epoch of the six sentences has two steps
    assert re.findall(r"^epoch (\d)/(\d)", capsys.readouterr().err, re.MULTILINE) == [(n, "4") for n in "1234"]


def test_edits_of_the_lexicon_belong_to_the_start(tmp_path: Path) -> None:
    shutil.copytree(tiny.trained(), tmp_path / "start")
    ner = api.load(tmp_path / "start")
    removed = next(iter(ner.lexicon))
    ner.lexicon.add("云鲜网")
    ner.lexicon.remove(removed)
    save_edits(ner.lexicon, ner.base, tmp_path / "start" / EDITS)
    config = settings_for_fine_tuning(str(tmp_path / "start"))
    lexicon = load_lexicon(config, default_vectors(), ner.normaliser)
    assert {*lexicon} == {*api.load(tiny.trained()).lexicon, "云鲜网"} - {removed}


def test_other_labels_get_a_new_decoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [Document("李明在北京", (Entity("李明", "名", 0, 2),))] * 4
    corpus.write(texts, tmp_path / "names.jsonl", "jsonl")
    data = {"train": str(tmp_path / "names.jsonl"), "dev": str(tmp_path / "names.jsonl")}
    training = {"epochs": 100, "least_steps": 0, "evaluate_from": 100}
    config = settings_for_fine_tuning(str(tiny.trained())).with_settings({"data": data, "training": training})

    class Listening(Silent):
        said: list[str] = []  # noqa: RUF012

        def say(self, message: str) -> None:
            self.said.append(message)

    run = api.train(config, output=tmp_path / "model", watcher=Listening())
    assert any(
        message.endswith(
            f"learns 名 from scratch, as {tiny.trained()} does not have them in its convention 'default'"
        )
        for message in Listening.said
    )
    assert [e.label for e in api.load(run.folder)("李明在北京").entities] == ["名"]


def char_vectors(ner: NER) -> torch.Tensor:
    assert isinstance(ner.tagger.embedding, Characters)
    return ner.tagger.embedding.chars.weight


def test_table_rows_are_copied_by_name(tmp_path: Path) -> None:
    start, other = tiny.ner(), tiny.ner()
    vocabulary = replace(other.vocabulary, chars=tuple(reversed(other.vocabulary.chars)))
    before = char_vectors(start).clone()
    assert copy_weights(start, other.tagger, vocabulary) == vocabulary.labels
    assert torch.equal(char_vectors(other)[2:], before[2:].flip(0))
    assert torch.equal(char_vectors(other)[:2], before[:2])


def test_scores_of_tags_are_copied_within_a_scheme_only() -> None:
    """B of BIO begins every name, B of BMES only names of several characters."""
    given = CRF(4, ("PER", "LOC"), scheme="BIO")
    other, same = CRF(4, ("PER", "ORG"), scheme="BMES"), CRF(4, ("PER", "ORG"), scheme="BIO")
    before = {name: weight.clone() for name, weight in other.state_dict().items()}
    assert _copy_tags(given, other) == ()
    assert all(torch.equal(weight, before[name]) for name, weight in other.state_dict().items())
    assert _copy_tags(given, same) == ("PER",)
    assert torch.equal(same.emission.weight[1:3], given.emission.weight[1:3])


@pytest.mark.parametrize("decoder", [{"name": "global_pointer"}, {"name": "softmax"}, {"scheme": "BIO"}])
def test_another_decoder_for_the_same_labels_is_new(tmp_path: Path, decoder: dict[str, str]) -> None:
    config = going_on(tmp_path, epochs=1, least_steps=0)
    labels = api.load(tiny.trained()).labels
    every = [d for d in tiny.documents() if {e.label for e in d.entities} <= {*labels}]
    corpus.write(every, tmp_path / "every.jsonl", "jsonl")
    files = {"train": str(tmp_path / "every.jsonl"), "dev": str(tmp_path / "every.jsonl")}
    run = api.train(config.with_settings({"decoder": decoder, "data": files}), output=tmp_path / "model")
    assert set(api.load(run.folder).labels) == {*labels}


def test_a_model_of_another_size_is_refused(tmp_path: Path) -> None:
    config = going_on(tmp_path).with_settings({"encoder": {"d_model": 24}})
    with pytest.raises(ConfigError, match=r"training.start: 'encoder\.\S+' has the shape .* use its settings"):
        api.train(config, output=tmp_path / "model")
    assert not (tmp_path / "model").exists()


class TestConventions:
    """The head of a further annotation convention is copied if both models have one of the same kind."""

    def is_copied(self, labels: tuple[str, ...], head: Head | None = None) -> bool:
        start, other = (api.load(tiny.two_conventions(), engine="torch") for _ in range(2))
        if head is not None:
            other.tagger.conventions["names"] = head
        ours, given = other.tagger.conventions["names"].state_dict(), start.tagger.conventions["names"].state_dict()
        for weight in ours.values():
            weight.fill_(7.0)
        copy_weights(start, other.tagger, replace(other.vocabulary, conventions={"names": labels}))
        return all(torch.equal(weight, given[name]) for name, weight in ours.items() if name in given)

    def test_with_the_same_labels(self) -> None:
        assert self.is_copied(("name", "place"))

    def test_with_other_labels(self) -> None:
        assert not self.is_copied(("place", "name"))

    def test_with_a_head_of_another_kind(self) -> None:
        tagger = api.load(tiny.two_conventions(), engine="torch").tagger
        d_in = len(tagger.conventions["names"].state_dict()["shift"])
        assert not self.is_copied(("name", "place"), Head(d_in, CRF(32, ("name", "place"), scheme="BIO")))
        assert not self.is_copied(("name", "place"), Head(d_in, Softmax(32, ("name", "place"))))

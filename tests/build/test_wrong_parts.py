"""Settings of parts that do not fit together: one line each, and what fits is built."""

from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from hanlattice.build import check, own_parts
from hanlattice.build.embeddings import latin, own, pretrained, queried
from hanlattice.build.encoders import ENCODERS, _random_rows, augmented
from hanlattice.build.settings import construct, setting_types
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config
from hanlattice.embeddings.initial_weights import Rows, Tables
from hanlattice.errors import ConfigError
from hanlattice.inputs.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    chars=("重", "庆"), bigrams=("重庆",), words=("重庆",), word_labels=(), labels=("PER", "LOC")
)


def tables(files: Path | None = None) -> Tables:
    return Tables.empty(VOCABULARY, {"chars": 4, "bigrams": 4, "words": 4}, files)


@pytest.mark.parametrize(
    ("build", "settings", "message"),
    [
        (own, {}, "set path to the folder of a pretrained body: hanlattice pretrain makes one"),
        (pretrained, {}, "set path to the folder of a Hugging Face language model"),
        (queried, {"queries": {"ORG": "x"}}, "there is no label 'ORG' to query; there are PER, LOC"),
        (queried, {"queries": {"LOC": " "}}, "the query of 'LOC' is empty: write one, or leave it out"),
        (latin, {"d_letter": 9}, r"d_letter \(9\) must be a multiple of 6, for three heads of even width"),
    ],
)
def test_settings_of_an_embedding(build: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(tables(), **settings)


def test_embeddings_that_fit() -> None:
    for letters, width in (("transformer", 12), ("convolution", 9)):
        assert latin(tables(), letters=letters, d_letter=width).d_out == width  # type: ignore[arg-type]
    beside = own(tables(), path=str(tiny.body()))
    assert (beside.d_out, beside.language_model.shape.width) == (8 + 4 + 4, 8)
    assert own(tables(), path=str(tiny.body()), bigrams=False).d_out == 8


def test_weights_are_read_from_the_path_and_not_from_a_saved_model() -> None:
    first = own(tables(), path=str(tiny.body())).language_model.state_dict()
    again = own(tables(), path=str(tiny.body())).language_model.state_dict()
    assert all(torch.equal(tensor, first[name]) for name, tensor in again.items())
    saved = own(tables(tiny.body())).language_model
    assert not torch.equal(saved.embedding.weight, first["embedding.weight"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inner": Part("lr_cnn_")}, "there is no encoder.inner 'lr_cnn_'; did you mean 'lr_cnn'"),
        ({"inner": Part("word_bilstm")}, "gives one vector per word, but one per character is needed"),
        ({"vectors": "a.txt"}, "vectors are for neighbours that are words: set of = 'words'"),
        ({"of": "words"}, "set vectors to the file by which words are found"),
    ],
)
def test_settings_of_neighbours(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, ConfigError), match=message):
        augmented(4, tables(), **settings)


def test_random_rows_are_uniform_and_further_ones_change_no_later_numbers() -> None:
    like = Rows(torch.zeros(900, 7), 500)
    torch.manual_seed(0)
    rows = _random_rows(like, 12)
    after = torch.rand(1)
    torch.manual_seed(0)
    shorter = _random_rows(Rows(torch.zeros(500, 7), 500), 12)
    assert torch.equal(after, torch.rand(1))
    assert torch.equal(rows.values[:500], shorter.values)
    assert (rows.values.shape, rows.n_trained) == ((900, 12), 500)
    for part in (rows.trained, rows.further):
        assert float(part.abs().max()) == pytest.approx(0.5, rel=0.01)
        assert float(part.std()) == pytest.approx(0.5 / 3**0.5, rel=0.03)


def test_a_transformer_refuses_settings_of_another_position() -> None:
    with pytest.raises(ConfigError, match="the position 'sinusoidal' has no setting 'span'"):
        construct("encoder", Part("transformer", {"span": 3}), ENCODERS, 4, tables())
    with pytest.raises(ConfigError, match="encoder 'transformer' has no setting 'spam'"):
        construct("encoder", Part("transformer", {"spam": 3}), ENCODERS, 4, tables())


def test_parts_are_checked_without_building() -> None:
    for settings, message in (
        ({"embedding": {"name": "character"}}, "there is no embedding 'character'; did you mean 'characters'"),
        ({"encoder": {"headz": 1}}, "encoder 'flat' has no setting 'headz'"),
        ({"decoder": {"name": "crff"}}, "there is no decoder 'crff'"),
        ({"conventions": {"a": {"decoder": {"name": "crff"}}}}, "there is no conventions.a.decoder 'crff'"),
        ({"conventions": {"keys": {}}}, "conventions.keys: 'keys' means something else inside a model"),
        ({"auxiliary": {"a": {"decoder": {"name": "crff"}}}}, "there is no auxiliary.a.decoder 'crff'"),
        ({"encoder": {"name": "augmented", "inner": 3}}, "encoder.inner has a name and settings of its own"),
        ({"embedding": {"name": "stack", "parts": 3}}, "embedding.parts must be a table of parts"),
        ({"embedding": {"name": "stack", "parts": {"a": {"nam": 3}}}}, "'characters' has no setting 'nam'"),
        ({"encoder": {"name": "a b:C"}}, "encoder 'a b:C' is neither the name of a part nor package.module:Class"),
        ({"encoder": {"name": "nowhere_at_all:C"}}, "encoder: cannot import 'nowhere_at_all:C'"),
        ({"encoder": {"name": "json:Nothing"}}, "encoder: cannot import 'json:Nothing'"),
    ):
        with pytest.raises(ConfigError) as error:
            check(Config().with_settings(settings))
        assert message in str(error.value)
    check(Config().with_settings({"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}}))
    check(Config().with_settings({"embedding": {"name": "stack", "parts": {"a": {}, "b": {"name": "latin"}}}}))


def test_own_parts_within_other_parts_are_found() -> None:
    config = Config().with_settings(
        {
            "embedding": {"name": "stack", "parts": {"x": {"name": "mine:A"}, "y": {"name": "latin"}}},
            "encoder": {"name": "augmented", "inner": {"name": "mine:B"}},
            "decoder": {"name": "hanlattice.decoders.tagging:CRF"},
            "conventions": {"a": {"decoder": {"name": "mine:C"}}},
        }
    )
    assert own_parts(config) == {"mine:A", "mine:B", "mine:C"}
    assert own_parts(Config()) == set()


def test_settings_without_a_type_are_passed_on_as_they_are() -> None:
    given: list[Any] = []

    def builder(d_in: int, *, plain=3, typed: float = 1.0) -> None:  # type: ignore[no-untyped-def]
        given.append((d_in, plain, typed))

    assert setting_types(builder) == {"plain": None, "typed": float}
    construct("encoder", Part("x", {"plain": "text", "typed": 2}), {"x": builder}, 5)
    construct("encoder", Part("x"), {"x": builder}, 5)
    assert given == [(5, "text", 2.0), (5, 3, 1.0)]
    assert isinstance(given[0][2], float)

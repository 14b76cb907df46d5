"""Techniques that change the loss: their values, their gradients, and runs with all of them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import tiny
from hanlattice import api
from hanlattice.config.settings import Config, TrainingConfig
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.table import Table
from hanlattice.errors import ConfigError
from hanlattice.inputs.batch import Batch, collate
from hanlattice.layers.dropout import Dropout
from hanlattice.spans import Span
from hanlattice.tagger import Tagger
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare
from hanlattice.training.techniques.adversarial import perturbation
from hanlattice.training.techniques.multi_sample_dropout import MultiSampleDropout
from hanlattice.training.techniques.objective import losses_of

Gold = list[tuple[Span, ...]]
QUIET: dict[str, Any] = {
    "embedding": {"dropout": 0.0, "unknown_rate": 0.0},
    "encoder": {
        **dict.fromkeys(("word_dropout", "output_dropout", "feed_forward_dropout", "forget", "drop"), 0.0),
    },
}
ALL: dict[str, Any] = {"fgm": 0.5, "r_drop": 1.0, "dropout_samples": 2, "sample_dropout": 0.2, "curriculum": 1}


def world(settings: Mapping[str, Any] = QUIET, n: int = 3) -> tuple[Tagger, Batch, Gold]:
    torch.manual_seed(0)
    run = prepare(tiny.config().with_settings(settings), "cpu", Silent())
    chosen = run.tasks[0].examples[:n]
    return run.ner.tagger.train(), collate([e.encoded for e in chosen]), [e.spans for e in chosen]


def gradients(tagger: Tagger, losses: Iterable[Tensor]) -> dict[str, Tensor]:
    """The sum of the gradients of the losses, by parameter."""
    tagger.zero_grad()
    for loss in losses:
        loss.backward()
    return {
        name: p.grad.to_dense() if p.grad.is_sparse else p.grad
        for name, p in tagger.named_parameters()
        if p.grad is not None
    }


class Moved(nn.Module):
    """An embedding whose vectors are moved."""

    def __init__(self, inner: nn.Module, move: Tensor):
        super().__init__()
        self.inner, self.move = inner, move

    def forward(self, batch: Batch) -> Tensor:
        return self.inner(batch) + self.move


class TestAdversarial:
    def test_a_perturbation_has_the_norm_and_the_direction_of_the_gradient(self) -> None:
        gradient = torch.randn(4, 5, 6) * torch.tensor([1.0, 1e-30, 1e30, 0.0]).view(4, 1, 1)
        found = perturbation(gradient, 0.7)
        assert_close(found.flatten(1).norm(dim=1), torch.tensor([0.7, 0.7, 0.7, 0.0]))
        assert_close(found[0] / found[0].norm(), gradient[0] / gradient[0].norm())

    @pytest.mark.parametrize("shape", [(3, 0), (3, 0, 5), (0, 2, 5)])
    def test_sentences_without_words_have_nothing_to_perturb(self, shape: tuple[int, ...]) -> None:
        assert perturbation(torch.zeros(shape), 0.7).shape == shape

    @pytest.mark.parametrize("mode", ["frozen", "trained"])
    def test_the_gradient_is_that_of_both_losses(self, mode: str) -> None:
        """The second one on an embedding that is moved by hand; also where no table of the embedding is trained."""
        tagger, batch, gold = world()
        embedding = tagger.embedding
        embedding.requires_grad_(mode == "trained")
        found = gradients(tagger, losses_of(tagger, tagger, TrainingConfig(fgm=0.5))(batch, gold, None))
        x = embedding(batch).detach().requires_grad_()
        tagger.embedding = Moved(embedding, x - x.detach())
        (g,) = torch.autograd.grad(tagger.loss(batch, gold), x)
        move = 0.5 * g / g.flatten(1).norm(dim=1).view(-1, 1, 1)
        tagger.embedding = embedding
        first = tagger.loss(batch, gold)
        tagger.embedding = Moved(embedding, move)
        second = tagger.loss(batch, gold)
        tagger.embedding = embedding
        assert second > first
        expected = gradients(tagger, [first, second])
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            assert_close(found[name], gradient)

    @pytest.mark.parametrize("sparse", [True, False])
    def test_rows_of_tables_are_moved(self, sparse: bool) -> None:
        """In a sentence where every row is looked up once, that is the same as moving the rows of the tables."""
        settings = {part: {**QUIET[part], "sparse": sparse} for part in QUIET}
        tagger, batch, gold = world(settings, n=1)
        tables = {name: m for name, m in tagger.named_modules() if isinstance(m, Table)}
        assert {name.rpartition(".")[2] for name in tables} == {"chars", "bigrams", "table"}, "and those of words"
        ids = [batch.chars, batch.bigrams, batch.words.ids]
        assert all(len(set(row[0].tolist())) == row.shape[1] for row in ids)
        config = TrainingConfig(fgm=0.5, fgm_on="tables")
        found = gradients(tagger, losses_of(tagger, tagger, config)(batch, gold, None))
        first = gradients(tagger, [tagger.loss(batch, gold)])
        before = {name: table.weight.detach().clone() for name, table in tables.items()}
        for name, table in tables.items():
            g = first[f"{name}.weight"]
            table.weight.data += 0.5 * g / g.norm()
        second = gradients(tagger, [tagger.loss(batch, gold)])
        for name, gradient in second.items():
            assert_close(found[name], first[name] + gradient)
        assert any((table.weight - before[name]).norm() > 0.4 for name, table in tables.items())

    def test_a_sentence_does_not_depend_on_those_beside_it(self) -> None:
        """So that accumulated parts and several processes give the gradient of one batch."""
        tagger, batch, gold = world()
        losses = losses_of(tagger, tagger, TrainingConfig(fgm=0.5))
        together = gradients(tagger, losses(batch, gold, None))
        run = prepare(tiny.config().with_settings(QUIET), "cpu", Silent())
        alone: dict[str, Tensor] = {}
        for example in run.tasks[0].examples[:3]:
            for name, g in gradients(tagger, losses(collate([example.encoded]), [example.spans], None)).items():
                alone[name] = alone.get(name, torch.zeros(())) + g / 3
        for name, gradient in together.items():
            assert_close(gradient, alone[name], rtol=1e-3, atol=1e-5)

    def test_a_model_without_tables_is_refused(self) -> None:
        tagger, *_ = world({**QUIET, "encoder": {"name": "bilstm", "d_hidden": 4}})
        for name, child in list(tagger.embedding.named_children()):
            if isinstance(child, Table):
                setattr(tagger.embedding, name, nn.Identity())
        with pytest.raises(ConfigError, match=r'training\.fgm_on = "tables": this model has no tables'):
            losses_of(tagger, tagger, TrainingConfig(fgm=1.0, fgm_on="tables"))


class TestRDrop:
    def test_the_value_is_that_of_two_passes(self) -> None:
        tagger, batch, gold = world({"embedding": {"dropout": 0.3}})
        torch.manual_seed(5)
        (found,) = losses_of(tagger, tagger, TrainingConfig(r_drop=2.5))(batch, gold, None)
        torch.manual_seed(5)
        passes = [tagger.encoder(tagger.embedding(batch), batch) for _ in range(2)]
        decoder = tagger.decoder
        assert isinstance(decoder, CRF)
        scores = [decoder.scores(h) for h in passes]
        losses = [decoder.loss(s, batch.mask, gold) for s in scores]
        apart = decoder.divergence(scores[0], scores[1], batch.mask, gold)
        assert apart > 0.01
        assert_close(found, (losses[0] + losses[1]) / 2 + 2.5 * apart)

    def test_it_is_the_ordinary_loss_without_dropout(self) -> None:
        tagger, batch, gold = world()
        (found,) = losses_of(tagger, tagger, TrainingConfig(r_drop=2.5))(batch, gold, None)
        assert torch.equal(found, tagger.loss(batch, gold))

    def test_every_output_of_an_encoder_counts(self) -> None:
        """An iterated IDCNN has a loss for each iteration."""
        idcnn = {"name": "idcnn", "d_hidden": 8, "repeats": 3, "loss": "mean"}
        tagger, batch, gold = world({"encoder": idcnn, "embedding": {"dropout": 0.3}})
        first, second = (tagger.training_pass(batch, gold) for _ in range(2))
        assert len(first.scores) == 3
        rows = zip(first.scores, second.scores, strict=True)
        parts = [w * tagger.decoder.divergence(a, b, batch.mask, gold) for (w, a), (_, b) in rows]
        assert_close(first.divergence(second), torch.stack(parts).sum())

    def test_a_decoder_without_a_divergence_is_refused(self) -> None:
        class Mine(CRF):
            divergence = Decoder.divergence

        tagger, *_ = world()
        tagger.decoder = Mine(20, ("PER",))
        with pytest.raises(ConfigError, match=r"training\.r_drop needs Mine\.divergence"):
            losses_of(tagger, tagger, TrainingConfig(r_drop=1.0))


class TestMultiSampleDropout:
    def test_the_loss_is_the_mean_over_samples(self) -> None:
        tagger, batch, gold = world()
        torch.manual_seed(5)
        config = TrainingConfig(dropout_samples=3, sample_dropout=0.4)
        (found,) = losses_of(tagger, tagger, config)(batch, gold, None)
        torch.manual_seed(5)
        h, drop = tagger.encoder(tagger.embedding(batch), batch), Dropout(0.4)
        samples = [drop(h) for _ in range(3)]
        losses = [tagger.decoder.loss(tagger.decoder.scores(one), batch.mask, gold) for one in samples]
        assert len({loss.item() for loss in losses}) == 3
        assert_close(found, torch.stack(losses).mean())

    def test_the_samples_share_the_weight_of_an_output(self) -> None:
        found = MultiSampleDropout(4, 0.0)([(0.5, torch.ones(1)), (2.0, torch.zeros(1))])
        assert [weight for weight, _ in found] == [0.125] * 4 + [0.5] * 4
        assert [int(h) for _, h in found] == [1] * 4 + [0] * 4


def test_techniques_combine() -> None:
    """FGM perturbs both passes of R-Drop, and each pass has samples of its own."""
    tagger, batch, gold = world({"embedding": {"dropout": 0.3}})
    lookups = []
    handle = tagger.embedding.register_forward_hook(lambda _, __, x: lookups.append(x.detach()))
    losses = []
    for loss in losses_of(tagger, tagger, TrainingConfig(**ALL))(batch, gold, None):
        loss.backward()
        losses.append(loss.item())
    handle.remove()
    assert len(losses) == 2
    assert len(lookups) == 4
    assert losses[0] != losses[1]
    assert all(p.grad is not None for p in tagger.parameters() if p.requires_grad)


class Memory(Silent):
    def __init__(self, stop_after: int):
        self.stop_after = stop_after

    def epoch(self, row: dict[str, Any]) -> None:
        if row["epoch"] == self.stop_after:
            raise KeyboardInterrupt


def everything(**training: Any) -> Config:
    data = {"joined": 0.5, "joined_length": 30, "joined_with": "random", "replaced_names": 0.5, "from_epoch": 2}
    beside = {"again": {"corpus": str(tiny.folder() / "corpus.bmes"), "weight": 0.1, "share": 0.5, "epochs": 2}}
    return tiny.config(**{"epochs": 3, **ALL, **training}).with_settings({"data": data, "auxiliary": beside})


def test_a_run_with_everything_resumes_to_the_same_weights(tmp_path: Path) -> None:
    """In mixed precision, with steps in two parts."""
    config = everything(precision="bfloat16", accumulate=2, batch_size=15)
    whole = api.train(config, output=tmp_path / "whole").folder
    with pytest.raises(KeyboardInterrupt):
        api.train(config, output=tmp_path / "stopped", watcher=Memory(2))
    again = api.train(config, output=tmp_path / "stopped", resume=True).folder
    assert (again / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        *({"training": {name: value}} for name, value in ALL.items() if name != "sample_dropout"),
        {"data": {"joined": 0.5}},
        {"data": {"replaced_names": 0.5}},
    ],
    ids=str,
)
def test_each_setting_changes_the_weights(changes: dict[str, Any]) -> None:
    """By one epoch from the same random weights; the number of steps stays the same."""

    def trained(settings: Mapping[str, Any]) -> tuple[Tensor, int]:
        torch.manual_seed(0)
        config = tiny.config(epochs=1).with_settings(settings)
        loop = prepare(config, "cpu", Silent()).loop(config.training)
        loop.epoch()
        return loop.tagger.decoder.state_dict()["emission.weight"].clone(), loop.progress.step

    (weights, steps), (others, other_steps) = trained({}), trained(changes)
    assert not torch.equal(weights, others)
    assert steps == other_steps

"""Optimisers, learning-rate schedules, gradient clipping and averaging, for dense and sparse gradients."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import cos, pi
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adamax, AdamW, Optimizer, SparseAdam

from hanlattice.config.settings import TrainingConfig
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.own import Own
from hanlattice.embeddings.pretrained import Pretrained
from hanlattice.embeddings.table import Table
from hanlattice.encoders.base import Encoder
from hanlattice.errors import ConfigError
from hanlattice.tagger import Tagger

# What users name inside the name of a parameter: a convention, or a part of a stack.
CHOSEN_NAME = re.compile(r"(?<=\bconventions\.)[^.]+|(?<=\bparts\.)[^.]+")


def optimisers(learner: nn.Module, config: TrainingConfig) -> list[Optimizer]:
    """One optimiser, and a second one if there are tables with sparse gradients.

    Their learning rates are placeholders: :func:`set_learning_rate` sets them before each step, from the ``rate``
    of each parameter group. (SparseAdam refuses a learning rate of 0.)

    Raises:
        ConfigError: the optimiser is unknown, or does not support sparse gradients.
    """
    groups, sparse_tables = _parameter_groups(learner, config)
    moments: Any = {"betas": (0.9, config.beta2), "eps": config.epsilon}
    if config.optimiser == "adamw":
        dense: Optimizer = AdamW(groups, lr=0.0, fused=True, **moments)
        sparse = [{"params": sparse_tables, "rate": config.learning_rate * config.table_rate}]
        return [dense, SparseAdam(sparse, lr=1e-9, **moments)] if sparse_tables else [dense]
    if config.optimiser not in ("sgd", "adamax"):
        raise ConfigError(f"training.optimiser must be 'sgd', 'adamw' or 'adamax', not {config.optimiser!r}")
    if sparse_tables:
        raise ConfigError(
            f"training.optimiser {config.optimiser!r} does not support sparse gradients: set sparse = false in"
            " [embedding] and [encoder], or use 'adamw'"
        )
    if config.optimiser == "adamax":
        return [Adamax(groups, lr=0.0, **moments)]
    sgd = SGD(groups, lr=0.0, momentum=config.momentum, fused=True)
    if config.momentum:
        # A fused step needs the buffers of all parameters or of none, but parameters that belong to another task
        # have no gradient in the first step.
        for parameter in (p for group in sgd.param_groups for p in group["params"]):
            sgd.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return [sgd]


def _parameter_groups(
    learner: nn.Module, config: TrainingConfig
) -> tuple[list[dict[str, Any]], list[nn.Parameter]]:
    """Groups of dense parameters with their learning rate and weight decay, and tables with sparse gradients.

    Tables, CRF transitions and the vectors of a language model (biases and norms) have no weight decay. The
    learning rate of a language model falls with the distance of a layer from the last one.
    """
    tables = {id(m.weight): m for m in learner.modules() if isinstance(m, Table)}
    depths = {id(p): depth for m in learner.modules() if isinstance(m, Pretrained | Own) for p, depth in m.depths()}
    chain = {id(p) for m in learner.modules() if isinstance(m, CRF) for p in (m.transitions, m.start, m.end)}
    plain: list[nn.Parameter] = []
    pretrained: defaultdict[tuple[int, bool], list[nn.Parameter]] = defaultdict(list)
    crf: list[nn.Parameter] = []
    dense_tables: list[nn.Parameter] = []
    sparse_tables: list[nn.Parameter] = []
    for parameter in learner.parameters():
        if not parameter.requires_grad:
            continue
        table = tables.get(id(parameter))
        if table is not None:
            (sparse_tables if table.sparse else dense_tables).append(parameter)
        elif id(parameter) in depths:
            pretrained[depths[id(parameter)], parameter.dim() > 1].append(parameter)
        else:
            (crf if id(parameter) in chain else plain).append(parameter)
    groups = [
        {"params": plain, "rate": config.learning_rate, "weight_decay": config.weight_decay},
        {"params": crf, "rate": config.learning_rate * config.crf_rate, "weight_decay": 0.0},
        {"params": dense_tables, "rate": config.learning_rate * config.table_rate, "weight_decay": 0.0},
        *(
            {
                "params": parameters,
                "rate": config.learning_rate * config.pretrained_rate * config.layer_decay**depth,
                "weight_decay": config.weight_decay if is_matrix else 0.0,
            }
            for (depth, is_matrix), parameters in sorted(pretrained.items())
        ),
    ]
    return [group for group in groups if group["params"]], sparse_tables


def learning_rate_factor(config: TrainingConfig, progress: float, epoch: int = 0) -> float:
    """The factor of the learning rate: linear warm-up, then the schedule.

    ``exponential`` and ``inverse`` fall at the end of every epoch, also during warm-up, so the factor of an epoch
    does not depend on the number of epochs. The other schedules change with every step.

    Args:
        config: the settings.
        progress: the finished share of all steps, from 0 to 1.
        epoch: the number of finished epochs.

    Raises:
        ConfigError: the schedule is unknown.
    """
    warm_up = min(progress / config.warmup, 1.0) if config.warmup else 1.0
    rest = max(progress - config.warmup, 0.0) / (1 - config.warmup) if config.warmup < 1 else 0.0
    match config.schedule:
        case "constant":
            return warm_up
        case "linear":
            return warm_up * (1.0 - rest)
        case "cosine":
            return warm_up * (1.0 + cos(pi * rest)) / 2
        case "exponential":
            return warm_up * (1.0 - config.decay) ** epoch
        case "inverse":
            return warm_up / (1.0 + config.decay * epoch)
    known = "'constant', 'linear', 'cosine', 'exponential' or 'inverse'"
    raise ConfigError(f"training.schedule must be {known}, not {config.schedule!r}")


def freeze_pretrained(tagger: Tagger, config: TrainingConfig, epoch: int) -> None:
    """Freeze language models in epochs before ``training.pretrained_from``; ``epoch`` counts from 1."""
    for part in tagger.modules():
        if isinstance(part, Pretrained | Own):
            part.held = epoch < config.pretrained_from


def set_learning_rate(chosen: Iterable[Optimizer], factor: float) -> None:
    """Set the rate of every parameter group to ``factor`` times its own full rate."""
    for optimiser in chosen:
        for group in optimiser.param_groups:
            group["lr"] = group["rate"] * factor


def clip_gradients(parameters: Sequence[nn.Parameter], config: TrainingConfig) -> None:
    """Clip every gradient component to ``clip_value``, then the norm of all to ``clip_norm``; 0 does not clip."""
    for p in parameters:
        if p.grad is not None and p.grad.is_sparse:
            p.grad = p.grad.coalesce()
    values = [g.values() if g.is_sparse else g for p in parameters if (g := p.grad) is not None]
    if config.clip_value:
        for g in values:
            g.clamp_(-config.clip_value, config.clip_value)
    if config.clip_norm:
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in values]))
        share = (config.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        for g in values:
            g.mul_(share)


def initialise(part: nn.Module, how: str) -> None:
    """Initialise the weights of a tagger or a head.

    ``xavier`` draws every matrix from the uniform Xavier distribution, as TENER and FLAT do. These keep their
    initial weights: tables, CRF transitions, language models, the vectors of distances, lengths and labels, and
    encoders with ``keeps_initialisation``, and what a decoder names in ``own_initialisation``. ``default`` changes
    nothing.

    Raises:
        ConfigError: ``how`` is neither ``xavier`` nor ``default``.
    """
    if how not in ("xavier", "default"):
        raise ConfigError(f"training.initialisation must be 'xavier' or 'default', not {how!r}")
    if how == "default":
        return
    encoders = [m for m in part.modules() if isinstance(m, Encoder) and m.keeps_initialisation]
    own = {id(parameter) for encoder in encoders for parameter in encoder.parameters()}
    own |= {id(m.weight) for m in part.modules() if isinstance(m, Table)}
    decoders = [m for m in part.modules() if isinstance(m, Decoder)]
    own |= {id(p) for m in decoders for name, p in m.named_parameters() if name in m.own_initialisation}
    kept = ("table", "transitions", "distances", "length", "label", "language_model")  # in names of parameters
    for name, parameter in part.named_parameters():
        general = CHOSEN_NAME.sub("", name)
        if parameter.dim() > 1 and id(parameter) not in own and not any(word in general for word in kept):
            nn.init.xavier_uniform_(parameter)


class MovingAverage:
    """A moving average of the weights; during the first steps ``decay`` is smaller, so that early weights fade.

    Tables with sparse gradients are left out: averaging all their rows would cost the time that sparsity saves.
    """

    def __init__(self, tagger: Tagger, decay: float):
        self.decay, self.steps = decay, 0
        sparse = {id(m.weight) for m in tagger.modules() if isinstance(m, Table) and m.sparse}
        self.weights = {
            name: parameter.detach().clone()
            for name, parameter in tagger.named_parameters()
            if parameter.requires_grad and id(parameter) not in sparse
        }

    @torch.no_grad()
    def update(self, tagger: Tagger) -> None:
        """Add the current weights, after a step."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for name, parameter in tagger.named_parameters():
            if name in self.weights:
                self.weights[name].lerp_(parameter, 1 - decay)

    def swap(self, tagger: Tagger) -> None:
        """Exchange the averaged and the current weights."""
        with torch.no_grad():
            for name, parameter in tagger.named_parameters():
                if name in self.weights:
                    current = parameter.detach().clone()
                    parameter.copy_(self.weights[name])
                    self.weights[name] = current

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps."""
        return {**self.weights, "steps": torch.tensor(self.steps)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore a :meth:`state`, on the device of the weights."""
        self.steps = int(state["steps"])
        self.weights = {name: state[name].to(old.device, copy=True) for name, old in self.weights.items()}

"""Checkpoints: everything that a stopped run needs to reach the result it would have had."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from hanlattice.atomic import atomic_write
from hanlattice.errors import ModelError
from hanlattice.training.optimiser import MovingAverage
from hanlattice.training.progress import Progress


def save_checkpoint(
    path: Path,
    learner: nn.Module,
    optimisers: Sequence[Optimizer],
    average: MovingAverage | None,
    scaler: GradScaler,
    run: Mapping[str, Any],
    progress: Progress,
) -> None:
    """Write weights, optimiser states, average, random state and the state of the gradient scaler.

    The file appears complete or not at all.

    The random state is that of the CPU, and of the CUDA device on which ``learner`` is. ``run`` identifies the run:
    see :func:`hanlattice.training.resume.identity_of`.
    """
    tensors = {f"model/{name}": tensor for name, tensor in learner.state_dict().items()}
    for i, optimiser in enumerate(optimisers):
        tensors |= {f"optimiser/{i}/{name}": tensor for name, tensor in state_of(optimiser).items()}
    if average is not None:
        tensors |= {f"average/{name}": tensor for name, tensor in average.state().items()}
    tensors["random"] = torch.get_rng_state()
    if (device := _device(learner)).type == "cuda":
        tensors["random_cuda"] = torch.cuda.get_rng_state(device)
    meta = {"progress": asdict(progress), "scaler": scaler.state_dict(), "run": run}
    write(path, tensors, {name: json.dumps(value, sort_keys=True) for name, value in meta.items()})


def read_progress(path: Path) -> Progress:
    """The progress of the run in a checkpoint.

    Raises:
        ModelError: the file is broken.
    """
    try:
        with safe_open(path, "pt") as file:
            return Progress(**json.loads(file.metadata()["progress"]))
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelError(f"{path}: cannot be resumed from ({error}); train into another folder") from None


def read_identity(path: Path) -> dict[str, Any] | None:
    """What identifies the run of a checkpoint; None in a file of an earlier version, or one that is broken."""
    try:
        with safe_open(path, "pt") as file:
            found = json.loads(file.metadata()["run"])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def load_checkpoint(
    path: Path,
    learner: nn.Module,
    optimisers: Sequence[Optimizer],
    average: MovingAverage | None,
    scaler: GradScaler,
) -> Progress:
    """Restore weights, optimisers, average, random state and gradient scaler; the progress of the run.

    A checkpoint of an earlier version has no state of the scaler; then the scaler starts from its initial state.

    Raises:
        ModelError: the file is broken, or from a run with other settings.
    """
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            meta = file.metadata()
        progress = Progress(**json.loads(meta["progress"]))
        learner.load_state_dict(under("model/", tensors))
        for i, optimiser in enumerate(optimisers):
            restore(optimiser, under(f"optimiser/{i}/", tensors))
        if average is not None:
            average.load(under("average/", tensors))
        if state := json.loads(meta.get("scaler", "{}")):  # empty if the run does not use it
            scaler.load_state_dict(state)
        torch.set_rng_state(tensors["random"])
        if "random_cuda" in tensors and (device := _device(learner)).type == "cuda":
            torch.cuda.set_rng_state(tensors["random_cuda"], device)
        return progress
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(
            f"{path}: cannot be resumed from ({reason}); were the settings changed? Train into another folder"
        ) from None


def _device(learner: nn.Module) -> torch.device:
    return next(learner.parameters()).device


def write(path: Path, tensors: Mapping[str, Tensor], meta: dict[str, str]) -> None:
    """Write tensors as safetensors; the file appears complete or not at all.

    Raises:
        DataError: the file cannot be written.
    """
    owned = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    with atomic_write(path, "wb") as stream:
        stream.write(save(owned, meta))


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def state_of(optimiser: Optimizer) -> dict[str, Tensor]:
    """The state of an optimiser: tensors by ``INDEX/KEY``, where the index is that of the parameter."""
    return {
        f"{index}/{key}": torch.as_tensor(value)
        for index, state in optimiser.state_dict()["state"].items()
        for key, value in state.items()
        if value is not None
    }


def restore(optimiser: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser the state that :func:`state_of` returned."""
    states: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        index, key = name.split("/")
        is_number = key == "step" and isinstance(optimiser, torch.optim.SparseAdam)
        states.setdefault(int(index), {})[key] = int(tensor) if is_number else tensor
    optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})

"""Checkpoints of pretraining. A run that resumes from one reaches the same weights as a run without a stop."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import nn
from torch.optim import Optimizer

from hanlattice.errors import ModelError
from hanlattice.training import checkpoint


@dataclass
class State:
    """How far a run is.

    Attributes:
        step: steps so far.
        seconds: time so far.
        decay_from: the step from which the learning rate falls; -1 until that is known.
        end: the last step, at which the learning rate is zero; -1 until that is known.
    """

    step: int = 0
    seconds: float = 0.0
    decay_from: int = -1
    end: int = -1


def save_checkpoint(
    path: Path, learner: nn.Module, optimiser: Optimizer, state: State, run: Mapping[str, Any]
) -> None:
    """Write weights and optimiser to one file, completely or not at all. ``run`` identifies the run.

    Raises:
        DataError: the file cannot be written.
    """
    tensors = {f"model/{name}": tensor for name, tensor in learner.state_dict().items()}
    tensors |= {f"optimiser/{name}": tensor for name, tensor in checkpoint.state_of(optimiser).items()}
    meta = {"state": json.dumps(asdict(state)), "run": json.dumps(dict(run), sort_keys=True)}
    checkpoint.write(path, tensors, meta)


def load_checkpoint(path: Path, learner: nn.Module, optimiser: Optimizer, run: Mapping[str, Any]) -> State:
    """Restore weights and optimiser from a checkpoint.

    Raises:
        ModelError: the file is broken, or belongs to another run.
    """
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            meta = file.metadata() or {}
        stored, state = json.loads(meta["run"]), State(**json.loads(meta["state"]))
        others = [name for name, value in run.items() if stored.get(name) != value]
        if others:
            raise ModelError(
                f"{path}: is of another run, which differs in {', '.join(others)}; give each run its own folder"
            )
        learner.load_state_dict(checkpoint.under("model/", tensors))
        checkpoint.restore(optimiser, checkpoint.under("optimiser/", tensors))
        return state
    except ModelError:
        raise
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(f"{path}: cannot be resumed from ({reason}); start again in another folder") from None


def load_learner(path: Path, learner: nn.Module) -> State:
    """Load only the weights of a checkpoint.

    Raises:
        ModelError: the file is broken, or has weights of other names or shapes.
    """
    try:
        with safe_open(path, "pt") as file:
            names = [name for name in file.keys() if name.startswith("model/")]  # noqa: SIM118
            learner.load_state_dict({name.removeprefix("model/"): file.get_tensor(name) for name in names})
            return State(**json.loads((file.metadata() or {})["state"]))
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(f"{path}: broken, or of another run ({reason})") from None


def state_of(path: Path) -> State | None:
    """The state in a checkpoint; None if there is no checkpoint, or it cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            return State(**json.loads((file.metadata() or {})["state"]))
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return None

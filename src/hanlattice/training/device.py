"""The device to train on, and the precision of the computation there."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from hanlattice.config.settings import TrainingConfig
from hanlattice.errors import ConfigError
from hanlattice.training.distributed import local_gpu

HALF_PRECISION = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def device_of(config: TrainingConfig) -> str:
    """The device to train on.

    Raises:
        ConfigError: it is not available.
    """
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        device = local_gpu()
    check_device(device, "training.device", "'auto' or 'cpu'")
    return device


def check_device(device: str, setting: str, others: str) -> None:
    """Check that torch can use a device.

    Args:
        device: its name, such as ``cuda:1``.
        setting: the name of the setting or option, for the error message.
        others: devices to try instead.

    Raises:
        ConfigError: torch cannot use it.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{setting} {device!r} cannot be used here ({reason}); try {others}") from None


def autocast(config: TrainingConfig, device: torch.device) -> AbstractContextManager[None]:
    """The context in which the loss is computed in ``training.precision``.

    Raises:
        ConfigError: the precision is unknown.
    """
    if config.precision == "float32":
        return nullcontext()
    if config.precision not in HALF_PRECISION:
        raise ConfigError(
            f"training.precision must be 'float32', 'bfloat16' or 'float16', not {config.precision!r}"
        )
    return torch.autocast(device.type, HALF_PRECISION[config.precision])


def check_precision(learner: nn.Module, config: TrainingConfig, device: torch.device) -> None:
    """Check that the modules of ``learner`` can compute in ``training.precision`` on the device.

    Raises:
        ConfigError: a recurrent layer cannot run in this precision on this processor.
    """
    recurrent = any(isinstance(module, nn.RNNBase) for module in learner.modules())
    if config.precision not in HALF_PRECISION or device.type != "cpu" or not recurrent:
        return
    try:
        with autocast(config, device):
            nn.LSTM(8, 8)(torch.zeros(2, 1, 8))
    except RuntimeError:
        raise ConfigError(
            f"training.precision {config.precision!r} has no LSTM on this processor; use 'float32', or a GPU"
        ) from None

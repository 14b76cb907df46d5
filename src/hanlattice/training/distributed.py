"""Distributed training: several processes, started by ``torchrun``, train one model.

Each process reads its share of the sentences of every step. Gradients are summed over all processes before they are
clipped, so every process takes the step that a single one would take. Sparse gradients are sent as their rows.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from hanlattice.errors import ConfigError, HanlatticeError

T = TypeVar("T")

TIMEOUT = timedelta(hours=4)  # the other processes wait while the first one evaluates on dev
DENSE, SPARSE = 1, 2


@dataclass(frozen=True)
class Group:
    """The ``size`` processes of a run; this one has the number ``rank``."""

    rank: int = 0
    size: int = 1

    @property
    def is_writer(self) -> bool:
        """Whether this process evaluates, reports progress and writes files."""
        return self.rank == 0

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """The sentences of a step that this process reads; every ``size``-th one, as they are sorted by length."""
        return items[self.rank :: self.size]

    def broadcast(self, value: T | None) -> T:
        """The ``value`` of the first process, in all of them; they wait for it."""
        box: list[Any] = [value]
        if self.size > 1:
            dist.broadcast_object_list(box)
        return box[0]

    def first(self, action: Callable[[], T]) -> T:
        """What an action of the first process returns, in all of them; its error is theirs too.

        Raises:
            HanlatticeError: the action failed.
        """
        value, failure = None, None
        if self.is_writer:
            try:
                value = action()
            except HanlatticeError as error:
                failure = error
        message = self.broadcast(None if failure is None else str(failure))
        if failure is not None:
            raise failure
        if message is not None:
            raise HanlatticeError(message)
        return self.broadcast(value)

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def seed(self, seed: int, epoch: int) -> None:
        """Give the other processes a random state of their own, the same if the epoch is repeated after a crash."""
        if not self.is_writer:
            torch.manual_seed(hash((seed, self.rank, epoch)))

    @torch.no_grad()
    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum the gradients over all processes; a parameter without a gradient in any of them keeps none."""
        if self.size == 1 or not parameters:
            return
        kinds = torch.tensor([_kind(p) for p in parameters], device=parameters[0].device)
        dist.all_reduce(kinds, dist.ReduceOp.MAX)
        rows = list(zip(parameters, kinds.tolist(), strict=True))
        self._sum_dense([p for p, kind in rows if kind == DENSE])
        for p in [p for p, kind in rows if kind == SPARSE]:
            self._sum_sparse(p)

    def _sum_dense(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum all dense gradients as one flat tensor."""
        if not parameters:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        offset = 0
        for p in parameters:
            p.grad = flat[offset : offset + p.numel()].view_as(p)
            offset += p.numel()

    def _sum_sparse(self, p: nn.Parameter) -> None:
        """Sum a sparse gradient: all processes send their rows, padded to the largest number of rows."""
        if p.grad is None:
            p.grad = torch.sparse_coo_tensor(
                torch.empty(1, 0, dtype=torch.long, device=p.device), p.new_empty(0, *p.shape[1:]), p.shape
            )
        own = p.grad.coalesce()
        counts = [torch.zeros(1, dtype=torch.long, device=p.device) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([own._nnz()], device=p.device))
        most = max(int(count) for count in counts)
        indices = self._gathered(own.indices()[0], most)
        values = self._gathered(own.values(), most)
        kept = [slice(int(count)) for count in counts]
        p.grad = torch.sparse_coo_tensor(
            torch.cat([rows[chosen] for rows, chosen in zip(indices, kept, strict=True)])[None],
            torch.cat([rows[chosen] for rows, chosen in zip(values, kept, strict=True)]),
            p.shape,
        ).coalesce()

    def _gathered(self, rows: Tensor, most: int) -> list[Tensor]:
        padded = rows.new_zeros(most, *rows.shape[1:])
        padded[: len(rows)] = rows
        gathered = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(gathered, padded)
        return gathered


ALONE = Group()


@contextmanager
def join_group() -> Iterator[Group]:
    """The group that ``torchrun`` started this process in, or this process alone.

    Raises:
        ConfigError: the other processes cannot be reached.
    """
    size = _size()
    if size == 1:
        yield ALONE
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local < torch.cuda.device_count():
        torch.cuda.set_device(local)
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"the other processes cannot be reached ({reason}); start them with torchrun") from None
    try:
        yield Group(dist.get_rank(), size)
        dist.barrier()  # the first process to leave would close the connection of the others
    finally:
        dist.destroy_process_group()
        gc.collect()  # threads of gloo that outlive the group must end before the interpreter does


def is_first_process() -> bool:
    """Whether this process is the only one, or the first one that ``torchrun`` started."""
    return os.environ.get("RANK", "0") == "0"


def exit_process() -> None:
    """End this process at once, if it is one of several.

    A thread of gloo or autograd that frees a tensor while the interpreter shuts down would abort it
    (https://github.com/pytorch/pytorch/issues/190489). A single process returns.
    """
    if _size() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def local_gpu() -> str:
    """The GPU of this process: each process that ``torchrun`` starts on a machine has its own."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if "LOCAL_RANK" in os.environ else "cuda"


def _size() -> int:
    """The number of processes that ``torchrun`` started."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def _kind(p: nn.Parameter) -> int:
    return 0 if p.grad is None else SPARSE if p.grad.is_sparse else DENSE

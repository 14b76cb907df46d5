"""Several processes that train one model, as ``torchrun`` starts them.

Each reads its share of the sentences of every step, and gradients are summed over all processes before anything is
done with them, so that every process takes the step that one alone would. Sparse gradients travel as their rows.
"""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from hanlattice.errors import ConfigError

T = TypeVar("T")

PATIENCE = timedelta(hours=4)  # while the writer scores the dev corpus, the others wait
DENSE, SPARSE = 1, 2


@dataclass(frozen=True)
class Group:
    """The processes of a run, of which this is the one with the number ``rank``."""

    rank: int = 0
    size: int = 1

    @property
    def is_writer(self) -> bool:
        """Whether it is this process that scores, tells and writes."""
        return self.rank == 0

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """What this process reads of the sentences of a step; in a row by length, so all have as much to do."""
        return items[self.rank :: self.size]

    def told(self, what: T | None) -> T:
        """What the writer says, which everybody waits for."""
        box: list[Any] = [what]
        if self.size > 1:
            dist.broadcast_object_list(box)
        return box[0]

    def summed(self, value: Tensor) -> Tensor:
        """Over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def seed(self, seed: int, epoch: int) -> None:
        """Have the others draw what they forget by themselves, and anew in an epoch that is done again."""
        if not self.is_writer:
            torch.manual_seed(hash((seed, self.rank, epoch)))

    @torch.no_grad()
    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Each parameter's gradient over all processes; none, where none of them has one."""
        if self.size == 1 or not parameters:
            return
        kinds = torch.tensor([_kind(p) for p in parameters], device=parameters[0].device)
        dist.all_reduce(kinds, dist.ReduceOp.MAX)
        rows = list(zip(parameters, kinds.tolist(), strict=True))
        self._sum_dense([p for p, kind in rows if kind == DENSE])
        for p in [p for p, kind in rows if kind == SPARSE]:
            self._sum_sparse(p)

    def _sum_dense(self, parameters: Sequence[nn.Parameter]) -> None:
        """In one go."""
        if not parameters:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        place = 0
        for p in parameters:
            p.grad = flat[place : place + p.numel()].view_as(p)
            place += p.numel()

    def _sum_sparse(self, p: nn.Parameter) -> None:
        """The rows of all, padded to the most of one."""
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
def joined() -> Iterator[Group]:
    """The group that ``torchrun`` started this process in, or this process alone.

    Raises:
        ConfigError: the others cannot be reached.
    """
    size = _size()
    if size == 1:
        yield ALONE
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local < torch.cuda.device_count():
        torch.cuda.set_device(local)
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"the other processes cannot be reached ({reason}); start them with torchrun") from None
    try:
        yield Group(dist.get_rank(), size)
        dist.barrier()  # whoever leaves first would pull the connection from under the others
    finally:
        dist.destroy_process_group()
        gc.collect()  # threads of gloo that outlive the group must not meet an interpreter that is going down


def is_first() -> bool:
    """Whether this process is alone, or the first of those that ``torchrun`` started."""
    return os.environ.get("RANK", "0") == "0"


def leave() -> None:
    """End a process of several whose work is done, at once.

    A thread of gloo or autograd that lets go of a tensor while the interpreter is going down would abort it
    (https://github.com/pytorch/pytorch/issues/190489). A process that is alone goes on.
    """
    if _size() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def own_gpu() -> str:
    """The GPU of this process among those that ``torchrun`` started on this machine."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if "LOCAL_RANK" in os.environ else "cuda"


def _size() -> int:
    """Of the group that this process was started in."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def _kind(p: nn.Parameter) -> int:
    return 0 if p.grad is None else SPARSE if p.grad.is_sparse else DENSE

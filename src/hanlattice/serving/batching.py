"""Dynamic batching: items that arrive at the same time are processed together, by one thread."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from time import perf_counter
from types import TracebackType
from typing import Generic, Self, TypeVar

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

_SMOOTHING = 0.2  # weight of the latest batch in the average time per item


class QueueFull(Exception):
    """The queue is full; it should have space after ``retry_after`` seconds."""

    def __init__(self, retry_after: int):
        super().__init__(f"the queue is full; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass(slots=True)
class _Job(Generic[Key, Item, Answer]):
    key: Key
    item: Item
    weight: int
    since: float
    answer: "asyncio.Future[Answer]"


class Batcher(Generic[Key, Item, Answer]):
    """Processes items in batches of up to ``max_batch``; the first item waits at most ``max_wait`` seconds.

    ``work(key, items) -> answers`` runs in a separate thread, one batch at a time, while more items arrive. All
    items of a batch have the same key and together weigh at most ``max_weight``; a heavier item is processed alone.
    Each batch starts with the oldest item, so no item waits forever. If ``work`` fails, each item of the batch is
    processed alone, so that only the items that cause the error fail. Items whose callers have left are skipped.

    Use it as ``async with Batcher(...) as batcher``; on exit, waiting items are still processed.

    Args:
        max_queue: number of items that may wait; beyond it, ``submit`` raises :class:`QueueFull`.
        weigh: the weight of an item with its key, at least 0.
        observe: called after each batch with the number of items and the seconds.
        observe_queue: called with the number of waiting items when items arrive or are taken.
    """

    def __init__(
        self,
        work: Callable[[Key, list[Item]], Sequence[Answer]],
        *,
        max_batch: int,
        max_wait: float,
        max_queue: int,
        weigh: Callable[[Key, Item], int] = lambda key, item: 0,
        max_weight: int = 0,
        observe: Callable[[int, float], None] = lambda size, seconds: None,
        observe_queue: Callable[[int], None] = lambda waiting: None,
    ):
        self._work, self._weigh, self._observe, self._observe_queue = work, weigh, observe, observe_queue
        self._max_batch, self._max_wait, self._max_queue = max_batch, max_wait, max_queue
        self._max_weight = max_weight
        self._jobs: deque[_Job[Key, Item, Answer]] = deque()
        self._came = asyncio.Event()
        self._closing = False
        self._pace = 0.0  # average seconds per item

    async def __aenter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batcher")
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._came.set()
        await self._task
        self._thread.shutdown()

    async def submit(self, key: Key, items: Sequence[Item]) -> list[Answer]:
        """The answers to all items, in their order.

        Raises:
            QueueFull: the queue has no space for all items; none is accepted.
            Exception: what ``work`` raised for one of them.
        """
        if len(self._jobs) + len(items) > self._max_queue:  # callers that have left keep no place
            self._jobs = deque(job for job in self._jobs if not job.answer.cancelled())
        if self._closing or len(self._jobs) + len(items) > self._max_queue:
            raise QueueFull(max(1, ceil(len(self._jobs) * self._pace)))
        loop = asyncio.get_running_loop()
        jobs = [_Job(key, item, self._weigh(key, item), loop.time(), loop.create_future()) for item in items]
        self._jobs.extend(jobs)
        self._came.set()
        _observed(self._observe_queue, len(self._jobs))
        if len(jobs) == 1:
            return [await jobs[0].answer]
        return list(await asyncio.gather(*(job.answer for job in jobs)))

    async def _run(self) -> None:
        while await self._ready():
            jobs = self._take()
            _observed(self._observe_queue, len(self._jobs))
            if jobs:
                start = perf_counter()
                await self._answer(jobs)
                seconds = perf_counter() - start
                self._pace += _SMOOTHING * (seconds / len(jobs) - self._pace)
                _observed(self._observe, len(jobs), seconds)

    async def _ready(self) -> bool:
        """Wait for items, and then a little for more of them; False when the batcher is closed and empty."""
        while not self._jobs:
            if self._closing:
                return False
            self._came.clear()
            await self._came.wait()
        until = self._jobs[0].since + self._max_wait
        try:
            async with asyncio.timeout_at(until):
                while len(self._jobs) < self._max_batch and not self._closing:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            pass
        return True

    def _take(self) -> list[_Job[Key, Item, Answer]]:
        """Take the oldest job whose caller still waits, and later jobs that can share its batch."""
        taken: list[_Job[Key, Item, Answer]] = []
        left: deque[_Job[Key, Item, Answer]] = deque()
        weight = 0
        while self._jobs and len(taken) < self._max_batch:
            job = self._jobs.popleft()
            if job.answer.cancelled():
                continue
            fits = not taken or (job.key == taken[0].key and weight + job.weight <= self._max_weight)
            if fits:
                taken.append(job)
                weight += job.weight
            else:
                left.append(job)
        left.extend(self._jobs)
        self._jobs = left
        return taken

    async def _answer(self, jobs: Sequence[_Job[Key, Item, Answer]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            items = [job.item for job in jobs]
            answers = await loop.run_in_executor(self._thread, self._work, jobs[0].key, items)
        except Exception as error:
            if len(jobs) == 1:
                if not jobs[0].answer.cancelled():
                    jobs[0].answer.set_exception(error)
                return
            for job in jobs:
                if not job.answer.cancelled():
                    await self._answer([job])
            return
        for job, answer in zip(jobs, answers, strict=True):
            if not job.answer.cancelled():
                job.answer.set_result(answer)


def _observed(observe: Callable[..., None], *figures: float) -> None:
    """Pass figures to an observer. If it fails, as metrics on a full disk do, requests still get their answers."""
    try:
        observe(*figures)
    except Exception:
        logger.exception("a batch could not be counted")

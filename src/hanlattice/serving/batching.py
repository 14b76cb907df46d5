"""Requests that come at the same time are worked on together: one queue, one thread that works."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from time import perf_counter
from types import TracebackType
from typing import Generic, Self, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")

_SLOWLY = 0.2  # how much the latest batch changes what is thought of the pace


class Full(Exception):
    """The queue has no room; it should have some ``retry_after`` seconds later."""

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
    """Collects items until there are ``max_batch`` or the first has waited ``max_wait`` seconds, and works on them.

    ``work(key, items) -> answers`` runs in a thread of its own, one batch at a time, while more items gather; all
    items of a batch have one key and together at most ``max_weight`` (a heavier one goes alone). The first that
    came always leads, so nobody is passed over. If ``work`` fails, each item of the batch is tried alone, so that
    only those that are to blame fail. Items whose callers have gone are not worked on.

    Use it as ``async with Batcher(...) as batcher``; leaving answers those that still wait.

    Args:
        max_queue: items that may wait; ``submit`` raises :class:`Full` beyond.
        weigh: an item under its key, at least 0.
        observe: told the items, the seconds and what is still waiting after each batch.
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
        observe: Callable[[int, float, int], None] = lambda size, seconds, waiting: None,
    ):
        self._work, self._weigh, self._observe = work, weigh, observe
        self._max_batch, self._max_wait, self._max_queue = max_batch, max_wait, max_queue
        self._max_weight = max_weight
        self._jobs: deque[_Job[Key, Item, Answer]] = deque()
        self._came = asyncio.Event()
        self._closing = False
        self._pace = 0.0  # seconds an item takes

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

    @property
    def waiting(self) -> int:
        """Items that nobody works on yet."""
        return len(self._jobs)

    async def submit(self, key: Key, items: Sequence[Item]) -> list[Answer]:
        """The answers to all items, in their order.

        Raises:
            Full: there is no room for all of them, and none is taken.
            Exception: what ``work`` raised for one of them.
        """
        if self._closing or len(self._jobs) + len(items) > self._max_queue:
            raise Full(max(1, ceil(len(self._jobs) * self._pace)))
        loop = asyncio.get_running_loop()
        jobs = [_Job(key, item, self._weigh(key, item), loop.time(), loop.create_future()) for item in items]
        self._jobs.extend(jobs)
        self._came.set()
        if len(jobs) == 1:
            return [await jobs[0].answer]
        return list(await asyncio.gather(*(job.answer for job in jobs)))

    async def _run(self) -> None:
        while await self._ready():
            jobs = self._take()
            if jobs:
                began = perf_counter()
                await self._answer(jobs)
                seconds = perf_counter() - began
                self._pace += _SLOWLY * (seconds / len(jobs) - self._pace)
                self._observe(len(jobs), seconds, len(self._jobs))

    async def _ready(self) -> bool:
        """Waits until there is something to do, and a little for more; False when there will be nothing more."""
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
        """The first job that somebody still waits for, and those behind it that can go with it."""
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
                await self._answer([job])
            return
        for job, answer in zip(jobs, answers, strict=True):
            if not job.answer.cancelled():
                job.answer.set_result(answer)

"""The micro-batcher alone: what goes together, in which order, and what happens to those that fail or leave."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.serving.batching import Batcher, QueueFull


class Work:
    """Says ``key:item``; remembers its batches, waits at the gate, and cannot stand the item ``bad``."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[str]]] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, key: str, items: list[str]) -> list[str]:
        assert self.gate.wait(10)
        self.batches.append((key, items))
        if "bad" in items:
            raise ValueError("bad")
        return [f"{key}:{item}" for item in items]


def batcher(work: Work, **options: Any) -> Batcher[str, str, str]:
    return Batcher(work, **{"max_batch": 4, "max_wait": 0.05, "max_queue": 100, **options})


async def together(*asked: Coroutine[Any, Any, Any]) -> list[Any]:
    return await asyncio.gather(*asked, return_exceptions=True)


def test_simultaneous_items_form_one_batch() -> None:
    async def run() -> None:
        work = Work()
        async with batcher(work) as b:
            answers = await together(*(b.submit("k", [str(i)]) for i in range(6)))
        assert answers == [[f"k:{i}"] for i in range(6)]
        assert work.batches == [("k", ["0", "1", "2", "3"]), ("k", ["4", "5"])]

    asyncio.run(run())


def test_a_single_item_waits_at_most_max_wait() -> None:
    async def run(**options: Any) -> float:
        async with batcher(Work(), **options) as b:
            began = asyncio.get_running_loop().time()
            assert await b.submit("k", ["a"]) == ["k:a"]
            return asyncio.get_running_loop().time() - began

    assert asyncio.run(run(max_wait=0.3)) >= 0.3
    assert asyncio.run(run(max_wait=30.0, max_batch=1)) < 10


def test_a_batch_has_the_key_of_the_oldest_item() -> None:
    async def run() -> None:
        work = Work()
        work.gate.clear()
        waiting: list[int] = []
        async with batcher(work, max_wait=0.0, observe_queue=waiting.append) as b:
            first = asyncio.create_task(b.submit("k", ["0"]))
            await asyncio.sleep(0.05)  # it is at the gate, and the others gather behind it
            rest = [asyncio.create_task(b.submit(key, [key + str(i)])) for i, key in enumerate("xyxzy")]
            await asyncio.sleep(0.05)
            assert waiting == [1, 0, 1, 2, 3, 4, 5]
            work.gate.set()
            await asyncio.gather(first, *rest)
        assert waiting[7:] == [3, 1, 0]
        assert work.batches[1:] == [("x", ["x0", "x2"]), ("y", ["y1", "y4"]), ("z", ["z3"])]

    asyncio.run(run())


def test_heavy_items_get_their_own_batch() -> None:
    async def run() -> None:
        work = Work()
        async with batcher(work, weigh=lambda key, item: len(item), max_weight=3) as b:
            await b.submit("k", ["a", "bb", "c", "dddddd", "e"])
        assert [items for _, items in work.batches] == [["a", "bb"], ["c", "e"], ["dddddd"]]

    asyncio.run(run())


def test_a_full_queue_refuses_items_with_retry_after() -> None:
    async def run() -> None:
        work = Work()
        work.gate.clear()
        waiting: list[int] = []
        async with batcher(work, max_queue=3, max_wait=0.0, observe_queue=waiting.append) as b:
            first = asyncio.create_task(b.submit("k", ["0"]))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(b.submit("k", ["1", "2"]))
            await asyncio.sleep(0.05)
            with pytest.raises(QueueFull) as full:
                await b.submit("k", ["3", "4"])
            assert full.value.retry_after >= 1
            assert waiting[-1] == 2
            third = asyncio.create_task(b.submit("k", ["5"]))
            await asyncio.sleep(0)
            work.gate.set()
            assert [await first, await second, await third] == [["k:0"], ["k:1", "k:2"], ["k:5"]]

    asyncio.run(run())


def test_only_faulty_items_fail_and_later_ones_are_answered() -> None:
    async def run() -> None:
        async with batcher(Work()) as b:
            answers = await together(*(b.submit("k", [item]) for item in ("a", "bad", "c")))
            assert answers[0] == ["k:a"]
            assert isinstance(answers[1], ValueError)
            assert answers[2] == ["k:c"]
            with pytest.raises(ValueError, match="bad"):
                await b.submit("k", ["a", "bad", "bad"])
            assert await b.submit("k", ["d"]) == ["k:d"]
            assert await b.submit("k", []) == []

    asyncio.run(run())


def test_cancelled_items_are_not_processed() -> None:
    async def run() -> None:
        work = Work()
        work.gate.clear()
        async with batcher(work, max_wait=0.0) as b:
            stays = asyncio.create_task(b.submit("k", ["0"]))
            await asyncio.sleep(0.05)
            leaves = asyncio.create_task(b.submit("k", ["1", "2"]))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await leaves
            work.gate.set()
            assert await stays == ["k:0"]
            assert await b.submit("k", ["3"]) == ["k:3"]
        assert [items for _, items in work.batches] == [["0"], ["3"]]

    asyncio.run(run())


def test_callers_that_left_keep_no_place_in_the_queue() -> None:
    async def run() -> None:
        work = Work()
        work.gate.clear()
        async with batcher(work, max_wait=0.0, max_queue=3) as b:
            busy = asyncio.create_task(b.submit("k", ["0"]))
            await asyncio.sleep(0.05)
            stays = asyncio.create_task(b.submit("k", ["1"]))
            leaves = asyncio.create_task(b.submit("k", ["2", "3"]))
            await asyncio.sleep(0)
            with pytest.raises(QueueFull):
                await b.submit("k", ["4"])
            leaves.cancel()
            await asyncio.sleep(0)
            comes = asyncio.create_task(b.submit("k", ["4", "5"]))
            await asyncio.sleep(0)
            with pytest.raises(QueueFull):
                await b.submit("k", ["6"])
            work.gate.set()
            assert [await busy, await stays, await comes] == [["k:0"], ["k:1"], ["k:4", "k:5"]]

    asyncio.run(run())


def test_items_of_a_failed_batch_whose_callers_left_are_not_repeated() -> None:
    async def run() -> None:
        seen: list[list[str]] = []
        gate = threading.Event()

        def work(key: str, items: list[str]) -> list[str]:
            seen.append(items)
            gate.wait(5)
            if len(items) > 1:
                raise ValueError(items)
            return items

        async with Batcher(work, max_batch=2, max_wait=0.05, max_queue=9) as b:
            stays = asyncio.create_task(b.submit("k", ["0"]))
            leaves = asyncio.create_task(b.submit("k", ["1"]))
            await asyncio.sleep(0.2)
            leaves.cancel()
            await asyncio.sleep(0)
            gate.set()
            assert await stays == ["0"]
        assert seen == [["0", "1"], ["0"]]

    asyncio.run(run())


def test_an_error_of_the_observer_does_not_stop_the_answers() -> None:
    def observe(*_: object) -> None:
        raise OSError("No space left on device")

    def work(key: str, items: list[str]) -> list[str]:
        return items

    async def run() -> None:
        async with Batcher(
            work, max_batch=2, max_wait=0.0, max_queue=9, observe=observe, observe_queue=observe
        ) as b:
            for item in "ab":
                async with asyncio.timeout(5):
                    assert await b.submit("k", [item]) == [item]

    asyncio.run(run())


def test_closing_answers_waiting_items() -> None:
    async def run() -> None:
        work = Work()
        async with batcher(work, max_wait=30.0) as b:
            waiting = asyncio.create_task(b.submit("k", ["a", "b"]))
            await asyncio.sleep(0.05)
        assert await waiting == ["k:a", "k:b"]
        with pytest.raises(QueueFull):
            await b.submit("k", ["c"])

    asyncio.run(run())


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=5)), max_size=8
    ),
    st.integers(1, 5),
    st.integers(0, 4),
)
def test_results_equal_those_of_single_items(asked: list[tuple[str, list[str]]], most: int, weight: int) -> None:
    async def run() -> None:
        work = Work()
        options = {"max_batch": most, "weigh": lambda key, item: len(item), "max_weight": weight, "max_wait": 0.0}
        async with batcher(work, **options) as b:
            answers = await asyncio.gather(*(b.submit(key, items) for key, items in asked))
        assert answers == [[f"{key}:{item}" for item in items] for key, items in asked]
        assert all(len(items) <= most for _, items in work.batches)
        assert all(len(items) == 1 or sum(map(len, items)) <= weight for _, items in work.batches)

    asyncio.run(run())

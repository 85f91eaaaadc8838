"""Large bodies are analysed in threads, and hold no thread while they wait."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from qwed.api.server.offload import MAX_INLINE_BYTES, run_decision
from qwed.fair_executor import FairExecutor
from qwed.futures import Future, LoopRunner, completed, notify
from qwed.kernel.analysis.content_scan import LARGE

MANY = 100
"""More than there are threads."""


def request_of(size: int) -> Any:
    app = SimpleNamespace(large_body_pool=FairExecutor(2, "large"), medium_body_pool=FairExecutor(2, "medium"))
    shared = {"app": app, "is_fast_path": False, "caller": SimpleNamespace(organisation_id="org_1")}
    return SimpleNamespace(body=bytes(size), driver=LoopRunner(asyncio.get_running_loop(), 5), **shared)


async def added(*futures: Future[int]) -> int:
    return sum([await future for future in futures])


@pytest.mark.parametrize("size", [0, MAX_INLINE_BYTES + 1, LARGE + 1])
def test_many_may_wait_and_threads_are_free_meanwhile(size: int) -> None:
    async def run() -> list[int]:
        futures: list[Future[int]] = [Future() for _ in range(MANY)]
        request = request_of(size)
        runs = [asyncio.ensure_future(run_decision(request, added(completed(1), future))) for future in futures]
        for _ in range(3):
            assert await asyncio.wait_for(request.app.large_body_pool.run("another", lambda: 7), 5) == 7
        for future in futures:
            future.set_result(2)
        notify(futures)
        return await asyncio.gather(*runs)

    assert asyncio.run(run()) == [3] * MANY


@pytest.mark.parametrize("size", [0, MAX_INLINE_BYTES + 1, LARGE + 1])
def test_a_failure_is_raised_inside_the_coroutine(size: int) -> None:
    async def caught(future: Future[int]) -> str:
        try:
            await future
        except LookupError:
            return "caught"
        return "not at all"

    async def run() -> str:
        future: Future[int] = Future()
        run_task = asyncio.ensure_future(run_decision(request_of(size), caught(future)))
        await asyncio.sleep(0)
        future.set_exception(LookupError())
        notify([future])
        return await run_task

    assert asyncio.run(run()) == "caught"


@pytest.mark.parametrize("size", [0, MAX_INLINE_BYTES + 1, LARGE + 1])
def test_a_timeout_is_raised_inside_the_coroutine(size: int) -> None:
    async def caught() -> str:
        try:
            await Future[int]()
        except TimeoutError:
            return "late"
        return "not at all"

    async def run() -> str:
        return await run_decision(request_of(size), caught(), 0.01)

    assert asyncio.run(run()) == "late"


@pytest.mark.parametrize("size", [0, MAX_INLINE_BYTES + 1, LARGE + 1])
def test_who_is_sent_away_lets_go(size: int) -> None:
    released: list[bool] = []
    future: Future[int] = Future()

    async def holding() -> None:
        try:
            await future
        finally:
            released.append(True)

    async def run() -> None:
        run_task = asyncio.ensure_future(run_decision(request_of(size), holding()))
        while future._waiter is None:  # noqa: ASYNC110 - a future has no event for its waiter
            await asyncio.sleep(0)
        run_task.cancel()
        await asyncio.gather(run_task, return_exceptions=True)

    asyncio.run(run())
    assert released == [True]


@pytest.mark.parametrize(
    ("size", "thread"),
    [(MAX_INLINE_BYTES, "Main"), (MAX_INLINE_BYTES + 1, "medium"), (LARGE, "medium"), (LARGE + 1, "large")],
)
def test_the_longer_a_body_the_further_it_is_from_the_loop(size: int, thread: str) -> None:
    async def thread_name() -> str:
        return threading.current_thread().name

    async def run() -> str:
        return await run_decision(request_of(size), thread_name())

    assert asyncio.run(run()).startswith(thread)

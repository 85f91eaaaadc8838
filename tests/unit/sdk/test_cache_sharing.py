"""One cache in several threads and in forked processes."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from qwed_sdk.cache import CacheContext, VerificationCache

HERE = CacheContext("openai", "gpt-4o", "v1")


def hammer(cache: VerificationCache, name: int, count: int = 150) -> int:
    """Return the number of wrong results."""
    wrong = 0
    for number in range(count):
        context = CacheContext("openai", f"model {(name + number) % 3}", "v1")
        query = f"query {number % 20}"
        result = cache.get(query, context)
        wrong += result is not None and result != {"query": query, "model": context.model}
        cache.set(query, {"query": query, "model": context.model}, context)
    return wrong


@pytest.mark.parametrize("shared", [True, False], ids=["one cache", "a cache each"])
def test_threads_share_a_cache(tmp_path: Path, shared: bool) -> None:
    one = VerificationCache(tmp_path / "cache")
    caches = [one if shared else VerificationCache(tmp_path / "cache") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(hammer, caches, range(4))) == [0] * 4
    counts = one.get_stats()
    for cache in (one, *caches):
        cache.close()
    assert counts.total_entries == 60
    assert one.get_stats().hits + one.get_stats().misses == 600


def _in_child(cache: VerificationCache, answers: Any) -> None:
    before = cache.get("before", HERE)
    cache.set("from the child", {"pid": os.getpid()}, HERE)
    answers.put((before, hammer(cache, 1), cache.get_stats().misses >= 0))
    cache.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_uses_a_connection_of_its_own_and_a_lock_that_nobody_else_holds(tmp_path: Path) -> None:
    forking = multiprocessing.get_context("fork")
    with VerificationCache(tmp_path / "cache") as cache:
        cache.set("before", {"n": 1}, HERE)
        stop, answers = threading.Event(), forking.SimpleQueue()
        busy = [threading.Thread(target=_until, args=(stop, cache, name)) for name in range(2)]
        for thread in busy:
            thread.start()
        children = [forking.Process(target=_in_child, args=(cache, answers)) for _ in range(4)]
        for child in children:
            child.start()
        got = [answers.get() for _ in children]
        for child in children:
            child.join()
        stop.set()
        for thread in busy:
            thread.join()
        assert got == [({"n": 1}, 0, True)] * 4
        assert [child.exitcode for child in children] == [0] * 4
        result = cache.get("from the child", HERE)
        assert result is not None
        assert result["pid"] in {child.pid for child in children}


def _until(stop: threading.Event, cache: VerificationCache, name: int) -> None:
    while not stop.is_set():
        assert hammer(cache, name, 5) == 0


def test_a_child_does_not_count_what_its_parent_counted(tmp_path: Path) -> None:
    forking = multiprocessing.get_context("fork")
    with VerificationCache(tmp_path / "cache") as cache:
        for _ in range(7):
            cache.get("nothing", HERE)
        child = forking.Process(target=cache.close)
        child.start()
        child.join()
        assert cache.get_stats().misses == 7
    with VerificationCache(tmp_path / "cache") as later:
        assert later.get_stats().misses == 7

"""DNS lookups: a name that never resolves delays only its own callers."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from qwed.http_client.dns import NameResolver, look_up
from tests.support.webhook_receivers import PATIENCE


class Directory:
    """Resolver whose slow names answer when the test lets them."""

    def __init__(self) -> None:
        self.lookups: list[str] = []
        self.answer = threading.Event()

    def __call__(self, host: str, port: int) -> Sequence[str]:
        assert port == 443
        self.lookups.append(host)
        if host.startswith("slow"):
            assert self.answer.wait(PATIENCE)
        if host.endswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        if host.endswith("odd"):
            raise UnicodeError("label too long")
        return [f"1.1.1.{len(host)}"]


@pytest.fixture
def directory() -> Any:
    created = Directory()
    yield created
    created.answer.set()


def test_a_name_leads_to_its_addresses(directory):
    assert asyncio.run(NameResolver(directory)("abc", 443)) == ["1.1.1.3"]


@pytest.mark.parametrize(("name", "failure"), [("unknown", OSError), ("odd", UnicodeError)])
def test_what_the_lookup_raises_is_raised(directory, name, failure):
    with pytest.raises(failure):
        asyncio.run(NameResolver(directory)(name, 443))


def test_a_name_that_hangs_does_not_hold_up_another(directory):
    async def both() -> None:
        names = NameResolver(directory)
        hanging = asyncio.create_task(names("slow", 443))
        await asyncio.sleep(0)
        assert await names("quick", 443) == ["1.1.1.5"]
        assert not hanging.done()
        directory.answer.set()
        assert await hanging == ["1.1.1.4"]

    asyncio.run(both())


def test_concurrent_lookups_of_a_name_share_one_answer(directory):
    async def many() -> None:
        names = NameResolver(directory)
        tasks = [asyncio.create_task(names("slow", 443)) for _ in range(100)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        directory.answer.set()
        assert await asyncio.gather(*tasks[1:]) == [["1.1.1.4"]] * 99

    asyncio.run(many())
    assert directory.lookups == ["slow"]


def test_an_answer_is_not_kept_for_the_next_question(directory):
    async def twice() -> None:
        names = NameResolver(directory)
        await names("abc", 443)
        await names("abc", 443)

    asyncio.run(twice())
    assert directory.lookups == ["abc", "abc"]


def test_there_is_a_most_and_what_is_above_it_fails_at_once(directory):
    async def too_many() -> None:
        names = NameResolver(directory, max_lookups=3)
        hanging = [asyncio.create_task(names(f"slow{number}", 443)) for number in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="too many names"):
            await names("quick", 443)
        directory.answer.set()
        await asyncio.gather(*hanging)
        assert await names("quick", 443) == ["1.1.1.5"]

    asyncio.run(too_many())


@pytest.mark.parametrize("name", ["slow", "slow unknown"])
def test_an_answer_that_comes_when_everyone_has_given_up_is_no_error(directory, caplog, name):
    async def late() -> None:
        names = NameResolver(directory)
        tasks = asyncio.create_task(names(name, 443))
        await asyncio.sleep(0)
        tasks.cancel()
        directory.answer.set()
        await names("quick", 443)

    asyncio.run(late())
    assert caplog.records == []


def test_an_answer_that_comes_when_the_loop_is_gone_is_no_error(directory):
    before = set(threading.enumerate())

    async def left_behind() -> None:
        tasks = asyncio.create_task(NameResolver(directory)("slow", 443))
        await asyncio.sleep(0)
        tasks.cancel()

    asyncio.run(left_behind())
    [thread] = set(threading.enumerate()) - before
    assert thread.daemon
    directory.answer.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_the_system_is_asked_by_default():
    """An address is used, so that no query leaves the machine."""
    assert look_up("127.0.0.1", 443) == ["127.0.0.1"]
    assert look_up("::1", 443) == ["::1"]
    assert asyncio.run(NameResolver()("127.0.0.1", 443)) == ["127.0.0.1"]


def test_a_name_that_cannot_be_written_down_is_not_found():
    with pytest.raises((OSError, UnicodeError)):
        look_up("a" * 64 + ".example.com", 443)

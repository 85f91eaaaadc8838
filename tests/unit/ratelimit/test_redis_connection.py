"""A Redis that is down, hung, slow or sends invalid replies: requests are refused in time, and it recovers."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from qwed.model.ids import new_id
from qwed.ratelimit.limit_status import LimiterError
from qwed.ratelimit.redis_limiter import RedisSlidingWindow
from qwed.ratelimit.redis_url import REPLY_TIMEOUT_SECONDS, create_connection
from tests.support.case_tables import each, rows
from tests.support.redis_manual_clock import long_reply_timeout, run
from tests.support.redis_relays import RedisRelay, create_self_signed
from tests.support.redis_server import RedisServer

PASSWORD = "hunter2"
LATE, GONE = "no answer within 0.4 seconds", "no connection"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that a test may end."""
    with RedisServer(tmp_path) as running:
        yield running


@pytest.fixture
def client(server: RedisServer) -> Iterator["redis.Redis"]:
    """Administrative client of the Redis."""
    created = redis.Redis.from_url(server.url)
    yield created
    created.close()


@pytest.fixture
def relay(server: RedisServer) -> Iterator[RedisRelay]:
    with RedisRelay(server.port) as standing:
        yield standing


@asynccontextmanager
async def limiter_at(url: str, limit: int = 1_000) -> AsyncIterator[RedisSlidingWindow]:
    created = RedisSlidingWindow(limit, url, new_id("org"))
    try:
        yield created
    finally:
        await created.connection.close()


async def refusal(limiter: RedisSlidingWindow) -> str:
    with pytest.raises(LimiterError) as caught:
        await limiter.hit("a")
    return str(caught.value)


async def until(holds: Callable[[], bool]) -> None:
    """Wait up to some seconds for the condition."""
    for _ in range(3_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def back(limiter: RedisSlidingWindow) -> None:
    """It counts, now or within seconds."""
    for _ in range(3_000):
        with suppress(LimiterError):
            assert (await limiter.hit("a")).allowed
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come back")


def _said(row: dict[str, Any]) -> bytes:
    message: str = row["says"] + row.get("repeats", "") * row.get("times", 0) + row.get("ends", "")
    return message.encode("latin-1")


@each("row", rows("redis_rubbish.jsonl"), ids=lambda row: row["name"], at_once=10)
def test_whatever_a_redis_says_that_is_no_answer_is_a_refusal(row: dict[str, Any]) -> None:
    says = _said(row)

    async def babble(reader: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        with closing(answers.transport):
            while await reader.read(65_536):
                answers.write(says)

    async def act() -> None:
        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        async with server, limiter_at(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}") as limiter:
            assert await refusal(limiter) == row["trouble"]
            assert not limiter.connection.up
            # The next caller fails at once.
            assert await refusal(limiter) == row["trouble"]

    with long_reply_timeout(REPLY_TIMEOUT_SECONDS if row["trouble"] == LATE else 30.0):
        run(act())


def test_a_redis_that_is_not_there_refuses_until_it_is(own_server: RedisServer) -> None:
    own_server.kill()

    async def act() -> None:
        async with limiter_at(own_server.url) as limiter:
            assert [await refusal(limiter) for _ in range(3)] == [GONE] * 3
            own_server.start()
            await back(limiter)

    with long_reply_timeout():
        run(act())


def test_a_hung_redis_costs_no_more_than_its_timeout_and_no_connections(own_server: RedisServer) -> None:
    async def act() -> None:
        async with limiter_at(own_server.url) as limiter:
            await back(limiter)
            own_server.hang()
            heard = await asyncio.gather(*(limiter.hit("a") for _ in range(500)), return_exceptions=True)
            assert {str(error) for error in heard} == {LATE}
            loop = asyncio.get_running_loop()
            turns, again = loop.time(), await asyncio.gather(*(refusal(limiter) for _ in range(500)))
            assert set(again) == {LATE}
            # The next attempt is half a second away: no caller waited for it.
            assert limiter.connection.up_since < turns
            own_server.go_on()
            await back(limiter)
            with redis.Redis.from_url(own_server.url) as client:
                await until(lambda: len(client.client_list()) == 2)

    run(act())


def test_that_it_hangs_is_known_before_anybody_asks(own_server: RedisServer) -> None:
    async def act() -> None:
        async with limiter_at(own_server.url) as limiter:
            await back(limiter)
            own_server.hang()
            await until(lambda: not limiter.connection.up)
            assert await refusal(limiter) == LATE
            own_server.go_on()
            await back(limiter)

    run(act())


def test_a_redis_that_is_killed_under_a_request_refuses_it_and_begins_empty(own_server: RedisServer) -> None:
    async def act() -> None:
        async with limiter_at(own_server.url, limit=2) as limiter:
            assert (await limiter.hit("a")).remaining == 1
            own_server.hang()
            under_way = asyncio.ensure_future(refusal(limiter))
            await asyncio.sleep(0)
            own_server.kill()
            assert await under_way == GONE
            own_server.start()
            await until(lambda: limiter.connection.up)
            assert (await limiter.hit("a")).remaining == 1

    with long_reply_timeout():
        run(act())


def test_a_connection_that_is_cut_is_made_anew_before_anybody_is_refused(relay: RedisRelay) -> None:
    async def act() -> None:
        async with limiter_at(relay.url) as limiter:
            await back(limiter)
            # Pretend that the connection was stable for a while.
            limiter.connection.up_since = 0.0
            relay.cut()
            await until(lambda: relay.connections == 2)
            assert (await limiter.hit("a")).allowed

    with long_reply_timeout():
        run(act())


def test_what_is_slow_counts_while_it_is_in_time_and_refuses_where_it_is_not(relay: RedisRelay) -> None:
    async def act() -> None:
        async with limiter_at(relay.url) as limiter:
            await back(limiter)
            relay.delay = 0.05
            assert (await limiter.hit("a")).allowed
            relay.delay = 2.0
            assert await refusal(limiter) == LATE
            assert await refusal(limiter) == LATE
            relay.delay = 0.0
            await back(limiter)

    with long_reply_timeout(1.5):
        run(act())


def test_an_answer_that_comes_byte_by_byte_is_late_however_busy_the_line_is(relay: RedisRelay) -> None:
    async def act() -> None:
        async with limiter_at(relay.url) as limiter:
            await back(limiter)
            relay.delay, relay.piece = 0.05, 1
            assert await refusal(limiter) == LATE
            relay.delay = 0.0
            await back(limiter)

    run(act())


@pytest.mark.parametrize(
    "message", [b"$15\r\n7 1 999 61 0 0 1\r\n", b"+OK\r\n:1\r\n", b"$8\r\n1 1 5 61\r\n", b"$11\r\n2 1 5000 61\r\n"]
)
def test_an_answer_to_another_question_is_none(relay: RedisRelay, message: bytes) -> None:
    async def act() -> None:
        async with limiter_at(relay.url) as limiter:
            await back(limiter)
            relay.instead = message
            assert await refusal(limiter) == "it sent an invalid reply"
            relay.instead = None
            await back(limiter)

    with long_reply_timeout():
        run(act())


REAL = [
    (
        "a replica",
        ("REPLICAOF", "127.0.0.1", "9"),
        ("REPLICAOF", "NO", "ONE"),
        "it is a read-only replica",
    ),
    ("full", ("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "it is out of memory"),
    (
        "locked",
        ("CONFIG", "SET", "requirepass", "x"),
        ("CONFIG", "SET", "requirepass", ""),
        "the user name or password is refused",
    ),
    (
        "forbidding",
        ("ACL", "SETUSER", "default", "-evalsha"),
        ("ACL", "SETUSER", "default", "+evalsha"),
        "its user lacks a permission",
    ),
]


@pytest.mark.parametrize(("does", "undoes", "trouble"), [row[1:] for row in REAL], ids=[row[0] for row in REAL])
def test_a_real_redis_that_takes_no_counts_refuses_until_it_does(
    client: "redis.Redis", server: RedisServer, does: Any, undoes: Any, trouble: str
) -> None:
    tell: Any = client.execute_command

    async def act() -> None:
        async with limiter_at(server.url) as limiter:
            await back(limiter)
            tell(*does)
            try:
                # The open connection stays valid; the next one is refused.
                client.client_kill_filter(_type="normal", skipme=True)
                await until(lambda: limiter.connection.last_error == trouble)
                assert await refusal(limiter) == trouble
            finally:
                tell(*undoes)
            await back(limiter)

    with long_reply_timeout():
        run(act())


@pytest.mark.parametrize("user", ["", "somebody"])
def test_a_password_is_in_no_message_and_no_name(
    server: RedisServer, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"redis://{user}:{PASSWORD}@127.0.0.1:{server.port}"

    async def act() -> str:
        async with limiter_at(url) as limiter:
            message = [
                await refusal(limiter),
                repr(limiter),
                repr(limiter.connection),
                repr(limiter.connection._connection),
            ]
            return " ".join(message)

    with long_reply_timeout():
        message = run(act())
    assert PASSWORD not in message + caplog.text
    assert message.startswith("the user name or password is refused")
    assert "the user name or password is refused" in caplog.text


def test_what_a_redis_repeats_of_a_password_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    async def act() -> None:
        async def repeat(reader: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
            with closing(answers.transport):
                while message := await reader.read(65_536):
                    answers.write(b"-ERR unknown command, with args: " + message.replace(b"\r\n", b" ") + b"\r\n")

        server = await asyncio.start_server(repeat, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, limiter_at(f"redis://:{PASSWORD}@127.0.0.1:{port}") as limiter:
            assert await refusal(limiter) == "it replied with an error"

    with long_reply_timeout():
        run(act())
    assert PASSWORD not in caplog.text


def test_an_outage_is_said_once_and_so_is_its_end(own_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    async def act() -> None:
        async with limiter_at(own_server.url) as limiter:
            await back(limiter)
            own_server.kill()
            await until(lambda: not limiter.connection.up)
            for _ in range(100):
                await refusal(limiter)
            own_server.start()
            await back(limiter)

    with long_reply_timeout():
        run(act())
    assert [record.getMessage() for record in caplog.records] == [
        "redis connection failed (rate limits): no connection",
        "redis connection restored (rate limits)",
    ]


def test_a_certificate_is_verified_and_an_authority_may_be_named(server: RedisServer, tmp_path: Path) -> None:
    trusted, other = (tmp_path / name for name in ("trusted.pem", "other.pem"))

    async def refused(url: str) -> None:
        async with limiter_at(url) as limiter:
            assert await refusal(limiter) == "its certificate cannot be verified"

    async def act() -> None:
        await refused(encrypted.url)
        await refused(f"{elsewhere.url}?ssl_ca_certs={other}")
        async with limiter_at(f"{encrypted.url}?ssl_ca_certs={trusted}") as limiter:
            assert (await limiter.hit("a")).allowed

    with (
        RedisRelay(server.port, create_self_signed(trusted)) as encrypted,
        RedisRelay(server.port, create_self_signed(other, "127.0.0.2")) as elsewhere,
        long_reply_timeout(),
    ):
        run(act())
    # Connections that were left open would be reported here.
    gc.collect()


def test_an_address_by_way_of_a_socket_is_one(tmp_path: Path) -> None:
    connection = create_connection(f"unix://:{PASSWORD}@{tmp_path}/redis%20socket")
    assert (connection.path, connection.password) == (f"{tmp_path}/redis socket", PASSWORD)  # type: ignore[attr-defined]


def test_waiters_fail_when_the_server_stops(own_server: RedisServer) -> None:
    async def act() -> None:
        async with limiter_at(own_server.url) as limiter:
            await back(limiter)
            own_server.hang()
            waiting = asyncio.ensure_future(refusal(limiter))
            await asyncio.sleep(0)
            await limiter.connection.close()
            assert await waiting == "the server is stopping"
            assert await refusal(limiter) == "the server is stopping"

    with long_reply_timeout():
        run(act())

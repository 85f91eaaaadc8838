"""`events`: both clients follow the organisation's events across broken connections."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from qwed_sdk import (
    QWEDArgumentError,
    QWEDAsyncClient,
    QWEDAuthError,
    QWEDClient,
    QWEDConnectionError,
    QWEDProtocolError,
    QWEDRequestError,
    QWEDTimeoutError,
)
from tests.conftest import Register
from tests.support.fake_server import Behave, close_connection, fake_server, respond_with, send_bytes
from tests.support.server import Server

Take = Callable[..., list[Any]]
SUM = {"type": "calculate", "query": "6 * 7"}


def _blocking(url: str, key: str, count: int, *arguments: Any, timeout: float = 60.0) -> list[Any]:
    with QWEDClient(key, url, timeout) as client:
        return list(islice(client.events(*arguments), count))


def _awaiting(url: str, key: str, count: int, *arguments: Any, timeout: float = 60.0) -> list[Any]:
    async def taken() -> list[Any]:
        events: list[Any] = []
        async with QWEDAsyncClient(key, url, timeout) as client:
            async for event in client.events(*arguments):
                events.append(event)
                if len(events) == count:
                    break
        return events

    return asyncio.run(taken())


@pytest.fixture(params=[_blocking, _awaiting], ids=["blocking", "awaiting"])
def take(request: pytest.FixtureRequest) -> Take:
    client: Take = request.param
    return client


def stream(*frames: str, ends: bool = True) -> Behave:
    """Answer with an event stream of these frames."""
    head = "HTTP/1.1 200 So\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    data = (head + "".join(frames)).encode()
    return send_bytes(data) if ends else lambda line: _sent_and_silent(line, data)


def _sent_and_silent(line: socket.socket, data: bytes) -> None:
    line.sendall(data)
    line.recv(1)


def frame(index: int, **members: Any) -> str:
    event = {"type": "decision", "index": index, "at": "", "agent_id": None, "activity_id": "a", **members}
    return f"id: {index}\nevent: decision\ndata: {json.dumps(event)}\n\n"


def test_what_happens_is_told_in_its_order(take: Take, server: Server, register: Register) -> None:
    agent = register()
    with QWEDClient(server.owner_key, server.base_url) as client:
        last = client.audit_head()["size"] - 1
        actions = [
            client.verify_action(agent["agent_id"], SUM, {"conversation_id": "c", "step_number": step}).action_id
            for step in (1, 2)
        ]
        client.suspend_agent(agent["agent_id"], "seen enough")
    events = take(server.base_url, server.owner_key, 2, "decision", last)
    assert [(event.activity_id, event.decision) for event in events] == [(action, "APPROVED") for action in actions]
    (stopped,) = take(server.base_url, server.owner_key, 1, ["suspension", "trust"], events[-1].index)
    assert (stopped.event, stopped.agent_id, stopped.level_after) == ("suspended", agent["agent_id"], None)


def test_a_connection_that_breaks_is_made_again_after_the_last_event(take: Take) -> None:
    broken = stream("retry: 1000\nid: 6\n\n", frame(7), ":\n", "id: 8\n\n", frame(9)[:20])
    with fake_server(broken, close_connection, respond_with(503, {}), stream(frame(9), frame(10))) as other:
        events = take(other.url, "k", 3, None, 5, timeout=30.0)
    assert [event.index for event in events] == [7, 9, 10]
    assert [heard.headers["last-event-id"] for heard in other.heard] == ["5", "8", "8", "8"]
    assert {heard.headers["accept"] for heard in other.heard} == {"text/event-stream"}


def test_a_listener_who_named_no_place_goes_on_where_the_stream_began(take: Take) -> None:
    with fake_server(stream("id: 41\n\n"), stream(frame(42))) as other:
        assert take(other.url, "k", 1, timeout=30.0)[0].index == 42
    assert ["last-event-id" in heard.headers for heard in other.heard] == [False, True]


def test_a_server_that_stays_away_is_waited_for_no_longer_than_the_client_waits(take: Take) -> None:
    with fake_server(stream(frame(1)), close_connection) as other, pytest.raises(QWEDConnectionError):
        take(other.url, "k", 2, None, 0, timeout=0.2)
    assert len(other.heard) > 1


def test_a_stream_that_says_nothing_at_all_is_left(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwed_sdk.sync_async.SILENCE_TIMEOUT", 0.1)
    with fake_server(stream(frame(1), ends=False), stream(ends=False)) as other, pytest.raises(QWEDTimeoutError):
        take(other.url, "k", 2, None, 0, timeout=0.2)


REFUSED: list[tuple[Behave, type[Exception]]] = [
    (respond_with(200, {"status": "ok"}), QWEDProtocolError),
    (respond_with(200, raw=b"<html>", content_type="text/html"), QWEDProtocolError),
    (respond_with(302, {}, location="http://127.0.0.1:9/"), QWEDProtocolError),
    (stream("data: [1]\n\n"), QWEDProtocolError),
    (stream("id: 1\ndata: {\n\n"), QWEDProtocolError),
    (stream(frame(1).replace("id: 1", "id: 2")), QWEDProtocolError),
    (stream("id: " + "9" * 30 + "\n\n"), QWEDProtocolError),
    (stream(frame(3), frame(3)), QWEDProtocolError),
    (stream(frame(3), "id: 2\n\n"), QWEDProtocolError),
    (stream("data: " + "x" * (1 << 21)), QWEDProtocolError),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_no_stream_of_events_is_told_as_such(take: Take, number: int) -> None:
    behave, kind = REFUSED[number]
    with fake_server(behave) as other, pytest.raises(kind):
        take(other.url, "k", 2)
    assert len(other.heard) == 1


def test_a_refusal_of_the_server_ends_it(take: Take, server: Server) -> None:
    with pytest.raises(QWEDAuthError):
        take(server.base_url, "qwed_live_x", 1)
    with pytest.raises(QWEDRequestError, match="unknown type `nonsense`"):
        take(server.base_url, server.owner_key, 1, "nonsense")
    with pytest.raises(QWEDRequestError, match="the log ends at"):
        take(server.base_url, server.owner_key, 1, None, 10**9)


@pytest.mark.parametrize("arguments", [(5,), ([""],), (None, -2), (None, True), (None, "1")])
def test_what_cannot_be_asked_for_is_said_at_once(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((QWEDArgumentError, TypeError)):
        QWEDClient("k", "http://127.0.0.1:9").events(*arguments)


def test_other_questions_are_asked_while_somebody_listens(server: Server, register: Register) -> None:
    agent = register()
    with QWEDClient(server.owner_key, server.base_url) as client:
        last = client.audit_head()["size"] - 1
        events: Iterator[Any] = client.events("decision", last)
        for step in (1, 2):
            answer = client.verify_action(agent["agent_id"], SUM, {"conversation_id": "c", "step_number": step})
            assert next(events).activity_id == answer.action_id

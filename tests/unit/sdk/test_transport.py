"""Connections are reused, but never by a child or another loop; invalid credentials and addresses are refused."""

import asyncio
import copy
import os
import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from qwed_sdk import (
    ActionPending,
    QWEDAgentClient,
    QWEDAsyncClient,
    QWEDClient,
    QWEDConnectionError,
    QWEDNotFoundError,
    QWEDProtocolError,
    QWEDRequestError,
    QWEDTimeoutError,
)
from qwed_sdk.http_request import Request
from tests.support.fake_server import fake_server, respond_always, respond_back_to_back, respond_with, tls_fake_server
from tests.support.server import Server

OK = respond_with(200, {"status": "ok"})
OK_ALWAYS = respond_always(200, {"status": "ok"})


def test_a_connection_is_used_again() -> None:
    with fake_server(OK_ALWAYS) as server, QWEDClient("k", server.url) as client:
        for _ in range(5):
            client.health()
        assert server.connections == 1


def test_a_client_that_was_closed_opens_again(server: Server) -> None:
    client = QWEDClient(server.owner_key, server.base_url)
    assert client.health().status == "ok"
    client.close()
    assert client.health().status == "ok"
    client.close()


def test_the_child_of_a_fork_opens_its_own_connections() -> None:
    with fake_server(OK_ALWAYS) as server, QWEDClient("k", server.url) as client:
        assert client.health().status == "ok"
        child = os.fork()
        if child == 0:
            os._exit(0 if client.health().status == "ok" else 1)
        assert os.waitpid(child, 0) == (child, 0)
        assert server.connections == 2
        # The child's connections do not affect ours.
        assert client.health().status == "ok"
        assert server.connections == 2


def test_an_async_client_lives_through_several_loops(server: Server) -> None:
    client = QWEDAsyncClient(server.owner_key, server.base_url)

    async def ask() -> str:
        try:
            return str((await client.health()).status)
        finally:
            await client.aclose()

    assert [asyncio.run(ask()) for _ in range(3)] == ["ok"] * 3


def test_many_threads_share_a_client(server: Server) -> None:
    seen: list[str] = []
    with QWEDClient(server.owner_key, server.base_url) as client:
        threads = [threading.Thread(target=lambda: seen.append(client.health().status)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == ["ok"] * 20


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://x",
        "http://",
        "http://user:secret@host",
        "http://:secret@host",
        "http://host\\@secret.example",
        "http://host#x",
        "http://host/?",
        "http://host\n.example",
        "http://host?x=1",
        "http://host:port",
        "file:///x",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="base_url") as caught:
        QWEDClient("k", url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["qwed_live_\n_injected", "qwed_live_é", "a\x00b"])
def test_a_key_that_is_none_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(ValueError, match="API key") as caught:
        QWEDClient(key, "http://127.0.0.1:9")
    assert "qwed_live" not in str(caught.value)


@pytest.mark.parametrize("key", ["qwed_live_k\n", "  qwed_live_k "])
def test_white_space_around_a_key_is_no_part_of_it(key: str) -> None:
    with fake_server(OK) as other, QWEDClient(key, other.url) as client:
        client.get_webhook()
    assert other.heard[0].headers["x-api-key"] == "qwed_live_k"


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "Https"])
def test_nobody_is_asked_whose_certificate_is_not_known(scheme: str, tmp_path: Path) -> None:
    with tls_fake_server(respond_with(200, {"status": "ok"}), tmp_path) as other:
        url = other.url.replace("http:", f"{scheme}:")
        with pytest.raises(QWEDConnectionError, match="certificate"):
            QWEDClient("qwed_live_k", url, retries=0).get_webhook()
    assert other.heard == []


def test_the_environment_says_where_and_who(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_server(OK) as other:
        monkeypatch.setenv("QWED_BASE_URL", other.url + "/")
        monkeypatch.setenv("QWED_API_KEY", "qwed_live_env")
        with QWEDClient() as client:
            client.get_webhook()
    assert (other.heard[0].path, other.heard[0].headers["x-api-key"]) == ("/webhook", "qwed_live_env")


@pytest.mark.parametrize("agent_id", ["..", ".", ""])
def test_an_id_that_leads_elsewhere_is_none(agent_id: str) -> None:
    with pytest.raises(ValueError, match="is not a valid id"):
        QWEDClient("k", "http://127.0.0.1:9").get_agent(agent_id)


@pytest.mark.parametrize("agent_id", ["../keys", "a/b", "a?b=c", "a#b", "a%2fb", "a b", "ä"])
def test_an_id_is_one_part_of_the_path(agent_id: str) -> None:
    unknown = respond_with(404, {"error": {"code": "QWED-AGENT-001", "message": "none"}})
    with fake_server(unknown) as other, pytest.raises(QWEDNotFoundError, match="none"):
        QWEDClient("k", other.url).get_agent(agent_id)
    assert other.heard[0].path.count("/") == 2
    assert "?" not in other.heard[0].path


def test_what_anybody_may_ask_is_asked_without_a_credential() -> None:
    answers = respond_with(200, {"status": "ok", "ready": True, "keys": []})
    with fake_server(answers) as other, QWEDClient("qwed_live_k", other.url, agent_token="qwed_agent_t") as client:
        client.health()
        client.ready()
        client.get_jwks()
    for heard in other.heard:
        assert not {"x-api-key", "authorization"} & set(heard.headers)


def test_a_redirect_takes_no_key_elsewhere() -> None:
    with fake_server(OK) as elsewhere:
        away = respond_with(307, {}, location=elsewhere.url + "/health")
        with fake_server(away) as other, pytest.raises(QWEDProtocolError, match="307"):
            QWEDClient("qwed_live_k", other.url).get_webhook()
    assert elsewhere.heard == []


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), object(), {1, 2}, "\ud800", {1: 2}, {True: 1}, [{"deep": ({None: 1},)}], {0.5: 1}],
)
def test_what_is_no_json_is_refused_before_it_is_sent(value: Any) -> None:
    with (
        fake_server(OK) as other,
        QWEDClient("k", other.url) as client,
        pytest.raises(QWEDRequestError, match="not valid JSON"),
    ):
        client.verify_action("agent_1", {"type": "calculate", "parameters": {"x": value}}, {})
    assert other.heard == []


def test_a_file_that_cannot_be_read_or_is_too_large(tmp_path: Any) -> None:
    client = QWEDClient("k", "http://127.0.0.1:9")
    with pytest.raises(QWEDRequestError, match="cannot be read"):
        client.verify_stats("rows = 1", tmp_path / "none.csv")
    with pytest.raises(QWEDRequestError, match="bytes"):
        client.verify_image(b"x" * ((10 << 20) + 1), "it is blue")


APPROVED, DENIED = {"decision": "APPROVED", "action_id": "act_1"}, {"decision": "DENIED"}


def test_what_follows_an_answer_is_not_the_answer_to_the_next_question() -> None:
    line = respond_back_to_back(DENIED, APPROVED)
    with fake_server(line, respond_with(200, DENIED)) as other, QWEDClient("k", other.url) as client:
        decisions = [client.verify_action("agent_1", {}, {"step_number": step}).decision for step in (1, 2)]
    assert decisions == ["DENIED", "DENIED"]


def test_what_follows_an_answer_is_not_awaited_either() -> None:
    async def ask(url: str) -> list[str]:
        async with QWEDAsyncClient("k", url) as client:
            answers = [await client.verify_action("agent_1", {}, {"step_number": step}) for step in (1, 2)]
            return [answer.decision for answer in answers]

    with fake_server(respond_back_to_back(DENIED, APPROVED), respond_with(200, DENIED)) as other:
        assert asyncio.run(ask(other.url)) == ["DENIED", "DENIED"]


def test_the_late_answer_to_a_cancelled_question_is_not_the_answer_to_the_next() -> None:
    cancelled = threading.Event()

    def late(line: Any) -> None:
        cancelled.wait(20)
        respond_back_to_back(APPROVED)(line)

    async def ask(url: str) -> str:
        async with QWEDAsyncClient("k", url) as client:
            task = asyncio.create_task(client.verify_action("agent_1", {}, {"step_number": 1}))
            while not other.heard:  # noqa: ASYNC110 - heard in another thread
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            cancelled.set()
            return str((await client.verify_action("agent_1", {}, {"step_number": 2})).decision)

    with fake_server(late, respond_with(200, DENIED)) as other:
        assert asyncio.run(ask(other.url)) == "DENIED"


def test_nothing_of_an_answer_is_told_with_the_next_question() -> None:
    with (
        fake_server(respond_with(200, {"status": "ok"}, set_cookie="a=b; Path=/")) as other,
        QWEDClient("k", other.url) as client,
    ):
        client.health()
        client.health()
    assert "cookie" not in other.heard[1].headers


def test_loops_that_share_an_async_client_have_connections_of_their_own() -> None:
    with fake_server(OK_ALWAYS) as server, ThreadPoolExecutor(3) as threads:
        client, together = QWEDAsyncClient("k", server.url), threading.Barrier(3)

        async def ask() -> None:
            await client.health()
            together.wait(60)
            for _ in range(4):
                await client.health()
            await client.aclose()

        for future in [threads.submit(asyncio.run, ask()) for _ in range(3)]:
            future.result()
        assert server.connections == 3


@pytest.mark.parametrize("proxy", ["foo://proxy", "socks5://127.0.0.1:9", "http://127.0.0.1:9"])
def test_a_proxy_that_is_none_is_a_server_that_cannot_be_asked(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(QWEDConnectionError) as caught:
        QWEDClient("k", "http://qwed.invalid", retries=0).health()
    assert caught.value.sent is False


def test_a_name_that_is_never_found_takes_no_longer_than_the_client_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_named: over.wait(60) and [])
    try:
        with pytest.raises(QWEDTimeoutError) as caught:
            QWEDClient("k", "http://qwed.invalid", timeout=0.1, retries=0).health()
    finally:
        over.set()
    assert caught.value.sent is False


def test_a_host_is_asked_at_any_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 0)) for address in ("127.0.0.9", "127.0.0.1")]
    real = socket.getaddrinfo
    resolve = lambda host, *rest, **named: rows if host == "qwed.invalid" else real(host, *rest, **named)  # noqa: E731
    monkeypatch.setattr("socket.getaddrinfo", resolve)
    with fake_server(OK) as other:
        port = other.url.rpartition(":")[2]
        assert QWEDClient("k", f"http://qwed.invalid:{port}", retries=0).health().status == "ok"
    assert other.heard[0].headers["host"] == f"qwed.invalid:{port}"


def test_a_blank_environment_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QWED_BASE_URL", "QWED_API_KEY"):
        monkeypatch.setenv(name, "  ")
    assert QWEDClient().base_url == "http://127.0.0.1:8000"


@pytest.mark.parametrize("key", ["a\r\nx-api-key: b", "ä", "", " ", 5])
def test_a_key_of_a_request_that_is_none_is_sent_to_nobody(key: Any) -> None:
    with fake_server(OK) as other, pytest.raises(QWEDRequestError, match="idempotency_key"):
        QWEDClient("k", other.url).verify_action("agent_1", {}, {}, idempotency_key=key)
    assert other.heard == []


@pytest.mark.parametrize("token", ["a\r\nx-api-key: b", "ä", "a b", 5])
def test_a_token_that_is_none_is_sent_to_nobody(token: Any) -> None:
    with fake_server(OK) as other, pytest.raises(QWEDRequestError, match="agent token"):
        QWEDClient("k", other.url).get_agent("agent_1", token)
    with pytest.raises(ValueError, match="agent token"):
        QWEDAgentClient("agent_1", token)
    assert other.heard == []


@pytest.mark.parametrize("agent_id", [5, None, "\ud800", ["a"]], ids=repr)
def test_an_id_that_is_no_text_is_none(agent_id: Any) -> None:
    with pytest.raises(QWEDRequestError, match="id"):
        QWEDClient("k", "http://127.0.0.1:9").get_agent(agent_id)


def test_a_client_is_not_written_down_with_its_key() -> None:
    client = QWEDClient("qwed_live_secret", "http://127.0.0.1:9")
    with pytest.raises(TypeError, match="each process"):
        pickle.dumps(client)
    assert copy.deepcopy(client).base_url == client.base_url
    request = Request(method="GET", path="/", agent_token="qwed_agent_secret")
    assert "secret" not in f"{client!r} {vars(client)} {request!r}"


def test_an_error_goes_from_one_process_to_another() -> None:
    for error in (QWEDTimeoutError("late", sent=True), ActionPending("send", "wait", code="c", suggestion="ask")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_who_is_not_reached_is_told_with_what_starts_it() -> None:
    with QWEDClient("qwed_live_x", "http://127.0.0.1:9") as client, pytest.raises(QWEDConnectionError) as caught:
        client.verify("2+2 = 4")
    error = caught.value
    assert str(error) == f"{error.message}: is it running? `qwed serve` starts one"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert error.suggestion is None
    assert str(QWEDConnectionError("it broke off", sent=True)) == "it broke off"

"""Connections: reused, never shared with a child or another loop; credentials and addresses that are none."""

import asyncio
import os
import threading
from typing import Any

import pytest

from qwed_sdk import QWEDAsyncClient, QWEDClient, QWEDNotFoundError, QWEDProtocolError, QWEDRequestError
from tests.support.impostor import impostor, says
from tests.support.server import Server

OK = says(200, {"status": "ok"})


def test_a_connection_is_used_again(server: Server) -> None:
    with QWEDClient(server.owner_key, server.base_url) as client:
        ports = {_port(client) for _ in range(5)}
    assert len(ports) == 1


def _port(client: QWEDClient) -> Any:
    client.health()
    (connection,) = client._transport._pool()._transport._pool.connections  # type: ignore[attr-defined]
    return connection._connection._network_stream.get_extra_info("client_addr")


def test_a_client_that_was_closed_opens_again(server: Server) -> None:
    client = QWEDClient(server.owner_key, server.base_url)
    assert client.health().status == "ok"
    client.close()
    assert client.health().status == "ok"
    client.close()


def test_the_child_of_a_fork_opens_its_own_connections(server: Server) -> None:
    client = QWEDClient(server.owner_key, server.base_url)
    before = client._transport._pool()
    assert client.health().status == "ok"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        fine = client.health().status == "ok" and client._transport._pool() is not before
        os.write(write, b"own" if fine else b"shared")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"own"
    os.close(read)
    os.close(write)
    # What the child did to its copies has not touched ours.
    assert client._transport._pool() is before
    assert client.health().status == "ok"


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


@pytest.mark.parametrize("given", ["qwed_live_k\n", "  qwed_live_k "])
def test_white_space_around_a_key_is_no_part_of_it(given: str) -> None:
    with impostor(OK) as other, QWEDClient(given, other.url) as client:
        client.health()
    assert other.heard[0].headers["x-api-key"] == "qwed_live_k"


def test_the_environment_says_where_and_who(monkeypatch: pytest.MonkeyPatch) -> None:
    with impostor(OK) as other:
        monkeypatch.setenv("QWED_BASE_URL", other.url + "/")
        monkeypatch.setenv("QWED_API_KEY", "qwed_live_env")
        with QWEDClient() as client:
            client.health()
    assert (other.heard[0].path, other.heard[0].headers["x-api-key"]) == ("/health", "qwed_live_env")


@pytest.mark.parametrize("agent_id", ["..", ".", ""])
def test_an_id_that_leads_elsewhere_is_none(agent_id: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        QWEDClient("k", "http://127.0.0.1:9").get_agent(agent_id)


@pytest.mark.parametrize("agent_id", ["../keys", "a/b", "a?b=c", "a#b", "a%2fb", "a b", "ä"])
def test_an_id_is_one_part_of_the_path(agent_id: str) -> None:
    unknown = says(404, {"error": {"code": "QWED-AGENT-001", "message": "none"}})
    with impostor(unknown) as other, pytest.raises(QWEDNotFoundError, match="none"):
        QWEDClient("k", other.url).get_agent(agent_id)
    assert other.heard[0].path.count("/") == 2
    assert "?" not in other.heard[0].path


def test_a_redirect_takes_no_key_elsewhere() -> None:
    with impostor(OK) as elsewhere:
        away = says(307, {}, location=elsewhere.url + "/health")
        with impostor(away) as other, pytest.raises(QWEDProtocolError, match="307"):
            QWEDClient("qwed_live_k", other.url).health()
    assert elsewhere.heard == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, "\ud800"])
def test_what_is_no_json_is_refused_before_it_is_sent(value: Any) -> None:
    with impostor(OK) as other, QWEDClient("k", other.url) as client, pytest.raises(QWEDRequestError, match="no JSON"):
        client.verify_action("agent_1", {"type": "calculate", "parameters": {"x": value}}, {})
    assert other.heard == []


def test_a_file_that_cannot_be_read_or_is_too_large(tmp_path: Any) -> None:
    client = QWEDClient("k", "http://127.0.0.1:9")
    with pytest.raises(QWEDRequestError, match="cannot be read"):
        client.verify_stats("rows = 1", tmp_path / "none.csv")
    with pytest.raises(QWEDRequestError, match="bytes"):
        client.verify_image(b"x" * ((10 << 20) + 1), "it is blue")

"""Identities of the proxy: two agents registered once, and unproven names sent with a key that proves no agent."""

import json
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from qwed.proxies.backend import Identity
from qwed.proxies.state_directory import ensure_state_directory
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.backend import MessageBackend
from qwed_a2a.proxy.identity import open_backend
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from qwed_a2a.verdict import VerificationVerdict
from qwed_sdk.errors import QWEDAuthError, QWEDError, UsageError
from tests.support.a2a_messages import message
from tests.support.fake_server import fake_server, respond_with
from tests.support.server import Server

OPTIONS = A2AProxyOptions(
    name="clerk", upstream="http://127.0.0.1:1", public_url="http://127.0.0.1:2", principal_id="ops", type="autonomous"
)
Send = Callable[..., VerificationVerdict]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("QWED_BASE_URL", "QWED_API_KEY", "QWED_AGENT_ID", "QWED_AGENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@contextmanager
def open_proxy_context(options: A2AProxyOptions = OPTIONS) -> Iterator[tuple[MessageBackend, Send, list[str]]]:
    """Yield the backend of a proxy, a function that sends as a peer, and the printed lines."""
    lines: list[str] = []
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(AsyncExitStack()) as stack:
        backend = portal.call(open_backend, options, ensure_state_directory("a2a", options.name), stack, lines.append)

        def send(sender: Identity, text: str = "hello") -> VerificationVerdict:
            message = AgentMessage(
                sender_agent_id=sender.agent_id,
                receiver_agent_id=backend.upstream.agent_id,
                payload={"text": text},
            )
            return portal.call(backend.intercept, message, sender)

        yield backend, send, lines


@pytest.fixture
def served(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Return a function that sets the server and a key in the environment."""

    def name(key: str | None) -> None:
        monkeypatch.setenv("QWED_BASE_URL", server.base_url)
        if key is None:
            monkeypatch.delenv("QWED_API_KEY", raising=False)
        else:
            monkeypatch.setenv("QWED_API_KEY", key)

    return name


def create_key(api: httpx.Client, role: str) -> str:
    response = api.post("/keys", json={"name": f"a2a {role}", "role": role})
    assert response.status_code == 201, response.text
    return str(response.json()["key"])


def test_both_sides_are_registered_once_in_a_gate_of_its_own_and_kept_where_nobody_else_reads(home: Path) -> None:
    with open_proxy_context() as (first, send, lines):
        assert [line.split("(")[1] for line in lines] == ["`a2a-clerk-client`)", "`a2a-clerk`)"]
        assert first.location == str(home / ".qwed" / "a2a" / "clerk" / "gate")
        assert send(first.client).forwarded
        assert send(first.upstream).forwarded
    directory = home / ".qwed" / "a2a" / "clerk"
    for file in ("client.json", "upstream.json", "member.json"):
        assert stat.S_IMODE((directory / file).stat().st_mode) == 0o600
    fields = json.loads((directory / "upstream.json").read_text())["fields"]
    assert fields["framework"] == "a2a"
    assert fields["permissions"] == {"allowed_tools": ["release_agent_card"]}
    with open_proxy_context() as (again, _, lines):
        assert (again.client, again.upstream) == (first.client, first.upstream)
        assert lines == []


def check_names(send: Send, known: Identity) -> None:
    """Assert the answers to unproven, wrongly proven and unknown names."""
    for token in (None, "", "qwed_agent_wrong"):
        with pytest.raises(QWEDAuthError) as refused:
            send(Identity(known.agent_id, token))
        assert refused.value.code == "QWED-AUTH-002"
    with pytest.raises(QWEDAuthError):
        send(Identity("agent_of_nobody", known.agent_token))
    assert send(Identity("agent_of_nobody")).forwarded


def test_with_a_gate_of_its_own_a_name_alone_proves_nobody() -> None:
    with open_proxy_context() as (backend, send, _):
        check_names(send, backend.client)
        assert not _has_parsing_thread()
        assert send(backend.client, "a long story " * 5_000).forwarded
        assert _has_parsing_thread()


def _has_parsing_thread() -> bool:
    """Return True if a thread parses large messages."""
    return any("a2a-parse" in thread.name for thread in threading.enumerate())


def test_with_a_members_key_the_server_refuses_names_that_are_not_proven(
    api: httpx.Client, served: Callable[[str | None], None], register: Callable[..., dict[str, Any]]
) -> None:
    served(create_key(api, "member"))
    other = register()
    with open_proxy_context() as (backend, send, lines):
        assert len(lines) == 2
        assert send(backend.client).forwarded
        check_names(send, backend.client)
        assert send(Identity(other["agent_id"], other["agent_token"])).forwarded
        with pytest.raises(QWEDAuthError):
            send(Identity(other["agent_id"]))
    frameworks = {agent["agent_id"]: agent["framework"] for agent in api.get("/agents").json()["agents"]}
    assert [frameworks[side.agent_id] for side in (backend.client, backend.upstream)] == ["a2a", "a2a"]


def test_an_owners_key_would_prove_any_name_so_names_alone_are_refused_here(
    server: Server, served: Callable[[str | None], None]
) -> None:
    served(server.owner_key)
    with open_proxy_context() as (backend, send, lines):
        assert "QWED_API_KEY is an owner's key" in lines[-1]
        assert send(backend.client).forwarded
        for name in ("agent_of_nobody", backend.client.agent_id):
            for token in (None, ""):
                with pytest.raises(QWEDAuthError, match="give the proxy a member's key"):
                    send(Identity(name, token))


def test_once_registered_no_key_is_needed_and_names_alone_are_refused(
    server: Server, served: Callable[[str | None], None]
) -> None:
    served(None)
    with pytest.raises(UsageError, match="set QWED_API_KEY to register an agent with"), open_proxy_context():
        pass
    served(server.owner_key)
    with open_proxy_context() as (first, _, _):
        pass
    served(None)
    with open_proxy_context() as (backend, send, lines):
        assert lines == []
        assert backend.client == first.client
        assert send(backend.client).forwarded
        with pytest.raises(QWEDAuthError, match="set QWED_API_KEY to a member's key"):
            send(Identity("agent_of_nobody"))


def test_a_wrong_key_one_agents_papers_and_nobody_there_are_one_sentence_each(
    server: Server, served: Callable[[str | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    served("qwed_live_" + "x" * 32)
    with pytest.raises(UsageError, match="no agent could be registered at http"), open_proxy_context():
        pass
    served(server.owner_key)
    with open_proxy_context():
        pass
    served("qwed_live_" + "x" * 32)
    with pytest.raises(UsageError, match="QWED_API_KEY cannot be used at http"), open_proxy_context():
        pass
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:1")
    with (
        pytest.raises(UsageError, match=r"no agent could be registered at http://127\.0\.0\.1:1"),
        open_proxy_context(),
    ):
        pass
    monkeypatch.setenv("QWED_AGENT_ID", "agent_1")
    with pytest.raises(UsageError, match="a proxy has two"), open_proxy_context():
        pass


def test_a_verdict_that_cannot_be_read_is_no_verdict() -> None:
    from qwed_a2a.proxy.remote_backend import RemoteMessageBackend

    async def verdict(answer: dict[str, Any]) -> Any:
        sender = Identity("agent_1", "token")
        with fake_server(respond_with(200, answer)) as other:
            backend = RemoteMessageBackend(other.url, sender, sender, None)
            try:
                return await backend.intercept(message(), sender)
            finally:
                await backend.close()

    members = {"status": "forwarded", "reason": "r", "audit_trace_id": "a2a_0", "engine_used": "passthrough"}
    for wrong in ({}, {"status": "fine"}, {"engine_used": "none"}, {"verified_at": "later"}, {"verified_at": None}):
        with pytest.raises(QWEDError, match="the server's verdict cannot be read"):
            anyio.run(verdict, members | wrong)

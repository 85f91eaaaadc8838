"""As whom the proxy asks: two agents registered once, and a name alone with a credential that proves nobody."""

import json
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from qwed.proxies.place import directory
from qwed_a2a.message import AgentMessage
from qwed_a2a.proxy.identity import Stand, stand_for
from qwed_a2a.proxy.kernel import Party
from qwed_a2a.proxy.options import Options
from qwed_a2a.verdict import VerificationVerdict
from qwed_sdk.errors import QWEDAuthError, QWEDError
from qwed_sdk.hook.call import Unusable
from tests.support.server import Server

OPTIONS = Options(
    name="clerk", upstream="http://127.0.0.1:1", public_url="http://127.0.0.1:2", principal_id="ops", type="autonomous"
)
Sent = Callable[..., VerificationVerdict]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("QWED_BASE_URL", "QWED_API_KEY", "QWED_AGENT_ID", "QWED_AGENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@contextmanager
def standing(options: Options = OPTIONS) -> Iterator[tuple[Stand, Sent, list[str]]]:
    """Whoever decides for a proxy, a way to send as somebody, and what was said."""
    said: list[str] = []
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(AsyncExitStack()) as stack:
        stand = portal.call(stand_for, options, directory("a2a", options.name), stack, said.append)

        def sent(sender: Party, text: str = "hello") -> VerificationVerdict:
            message = AgentMessage(
                sender_agent_id=sender.agent_id,
                receiver_agent_id=stand.kernel.upstream.agent_id,
                payload={"text": text},
            )
            return portal.call(stand.kernel.intercept, message, sender)

        yield stand, sent, said


@pytest.fixture
def served(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Names the server in the environment, and a key of it."""

    def name(key: str | None) -> None:
        monkeypatch.setenv("QWED_BASE_URL", server.base_url)
        if key is None:
            monkeypatch.delenv("QWED_API_KEY", raising=False)
        else:
            monkeypatch.setenv("QWED_API_KEY", key)

    return name


def key_of(api: httpx.Client, role: str) -> str:
    made = api.post("/keys", json={"name": f"a2a {role}", "role": role})
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


def test_both_sides_are_registered_once_in_a_gate_of_its_own_and_kept_where_nobody_else_reads(home: Path) -> None:
    with standing() as (first, sent, said):
        assert [line.split("(")[1] for line in said] == ["`a2a-clerk-client`)", "`a2a-clerk`)"]
        assert first.kernel.place == str(home / ".qwed" / "a2a" / "clerk" / "gate")
        assert sent(first.kernel.client).forwarded
        assert sent(first.kernel.upstream).forwarded
    place = home / ".qwed" / "a2a" / "clerk"
    for file in ("client.json", "upstream.json", "member.json"):
        assert stat.S_IMODE((place / file).stat().st_mode) == 0o600
    fields = json.loads((place / "upstream.json").read_text())["fields"]
    assert fields["framework"] == "a2a"
    assert fields["permissions"] == {"allowed_tools": ["release_agent_card"]}
    with standing() as (again, _, said):
        assert (again.kernel.client, again.kernel.upstream) == (first.kernel.client, first.kernel.upstream)
        assert said == []


def check_names(sent: Sent, known: Party) -> None:
    """What the kernel says of names that prove nothing, prove something else, or are nobody's."""
    for unproven in (Party(known.agent_id), Party(known.agent_id, ""), Party(known.agent_id, "qwed_agent_wrong")):
        with pytest.raises(QWEDAuthError) as refused:
            sent(unproven)
        assert refused.value.code == "QWED-AUTH-002"
    with pytest.raises(QWEDAuthError):
        sent(Party("agent_of_nobody", known.token))
    assert sent(Party("agent_of_nobody")).forwarded


def test_with_a_gate_of_its_own_a_name_alone_proves_nobody() -> None:
    with standing() as (stand, sent, _):
        check_names(sent, stand.kernel.client)
        assert not _reading()
        assert sent(stand.kernel.client, "a long story " * 5_000).forwarded
        assert _reading()


def _reading() -> bool:
    """Whether there is a thread for what is large, beside the loop on which everybody else is answered."""
    return any("a2a-reading" in each.name for each in threading.enumerate())


def test_with_a_members_key_the_server_refuses_names_that_are_not_proven(
    api: httpx.Client, served: Callable[[str | None], None], register: Callable[..., dict[str, Any]]
) -> None:
    served(key_of(api, "member"))
    other = register()
    with standing() as (stand, sent, said):
        assert len(said) == 2
        assert sent(stand.kernel.client).forwarded
        check_names(sent, stand.kernel.client)
        assert sent(Party(other["agent_id"], other["agent_token"])).forwarded
        with pytest.raises(QWEDAuthError):
            sent(Party(other["agent_id"]))
    frameworks = {agent["agent_id"]: agent["framework"] for agent in api.get("/agents").json()["agents"]}
    assert [frameworks[side.agent_id] for side in (stand.kernel.client, stand.kernel.upstream)] == ["a2a", "a2a"]


def test_an_owners_key_would_prove_any_name_so_names_alone_are_refused_here(
    server: Server, served: Callable[[str | None], None]
) -> None:
    served(server.owner_key)
    with standing() as (stand, sent, said):
        assert "QWED_API_KEY is an owner's key" in said[-1]
        assert sent(stand.kernel.client).forwarded
        for name in ("agent_of_nobody", stand.kernel.client.agent_id):
            for token in (None, ""):
                with pytest.raises(QWEDAuthError, match="give the proxy a member's key"):
                    sent(Party(name, token))


def test_once_registered_no_key_is_needed_and_names_alone_are_refused(
    server: Server, served: Callable[[str | None], None]
) -> None:
    served(None)
    with pytest.raises(Unusable, match="set QWED_API_KEY to register an agent with"), standing():
        pass
    served(server.owner_key)
    with standing() as (first, _, _):
        pass
    served(None)
    with standing() as (stand, sent, said):
        assert said == []
        assert stand.kernel.client == first.kernel.client
        assert sent(stand.kernel.client).forwarded
        with pytest.raises(QWEDAuthError, match="set QWED_API_KEY to a member's key"):
            sent(Party("agent_of_nobody"))


def test_a_wrong_key_one_agents_papers_and_nobody_there_are_one_sentence_each(
    server: Server, served: Callable[[str | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    served("qwed_live_" + "x" * 32)
    with pytest.raises(Unusable, match="no agent could be registered at http"), standing():
        pass
    served(server.owner_key)
    with standing():
        pass
    served("qwed_live_" + "x" * 32)
    with pytest.raises(Unusable, match="QWED_API_KEY cannot be used at http"), standing():
        pass
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:1")
    with pytest.raises(Unusable, match=r"no agent could be registered at http://127\.0\.0\.1:1"), standing():
        pass
    monkeypatch.setenv("QWED_AGENT_ID", "agent_1")
    with pytest.raises(Unusable, match="a proxy has two"), standing():
        pass


def test_a_verdict_that_cannot_be_read_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    from qwed_a2a.proxy.remote import _verdict

    said = {"status": "forwarded", "reason": "r", "audit_trace_id": "a2a_0", "engine_used": "passthrough"}
    for wrong in ({}, {"status": "fine"}, {"engine_used": "none"}, {"verified_at": "later"}, {"verified_at": None}):
        with pytest.raises(QWEDError, match="cannot be read"):
            _verdict(said | wrong)

"""Advice of error codes: the server names HTTP fields, clients and commands their own arguments and options."""

import re

import pytest

from qwed.cli import main
from qwed.model import ErrorCode
from qwed.model.error_advice import CLIENT_ADVICE, client_advice
from qwed_sdk import QWEDAgentClient, QWEDClient, QWEDError
from tests.support.server import Server

OF_HTTP = re.compile(r"[A-Z]{3,} /|X-API-Key|Authorization|Retry-After|Idempotency-Key")


def test_every_code_has_advice_for_whoever_never_sees_a_request() -> None:
    for code in ErrorCode:
        said = client_advice(code.code, code.advice)
        assert said is not None, code
        assert not OF_HTTP.search(said), code


def test_no_advice_is_said_otherwise_without_need() -> None:
    assert client_advice("QWED-X-001", "drop the column `ssn`") == "drop the column `ssn`"
    assert client_advice("QWED-X-001", None) is None
    assert client_advice("QWED-X-001", "use POST /elsewhere") is None
    assert not any(OF_HTTP.search(text) for text in CLIENT_ADVICE.values())


def test_a_client_is_told_what_to_do_in_python(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QWED_API_KEY", raising=False)
    keyed, bare = QWEDClient(server.owner_key, server.base_url), QWEDClient(base_url=server.base_url)
    told = QWEDClient(base_url=server.base_url, agent_token="qwed_agent_x")
    for ask in (
        bare.list_agents,
        QWEDClient("qwed_live_x", server.base_url).list_agents,
        told.list_agents,
        lambda: keyed.get_agent("agent_none"),
        lambda: keyed.get_approval("apr_none"),
        lambda: QWEDAgentClient("agent_none", "x", client=bare).get_budget(),
    ):
        with pytest.raises(QWEDError) as caught:
            ask()
        assert caught.value.suggestion, caught.value
        assert not OF_HTTP.search(f"{caught.value.message} {caught.value.suggestion}")


def test_a_refusal_of_a_halted_organisation_names_no_route(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with QWEDClient(server.owner_key, server.base_url) as owner:
        made = owner.create_organisation("halted for a while")
    with QWEDClient(made["owner_key"], server.base_url) as client:
        agent = QWEDAgentClient.register("stopped", "me", client=client)
        client.suspend_all("to see what is said")
        run = agent.verified(lambda: None, tool="search_web")
        with pytest.raises(QWEDError) as caught:
            run()
        assert "reactivate_all" in str(caught.value)
        assert not OF_HTTP.search(str(caught.value))
        monkeypatch.setenv("QWED_API_KEY", made["owner_key"])
        assert main(["agents", "reactivate", agent.agent_id, "--reason", "x", "--url", server.base_url]) == 2
    assert not OF_HTTP.search(capsys.readouterr().err)

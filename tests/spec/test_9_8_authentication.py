"""Spec 9.8, Timing-Safe Authentication; ruling 4.18, which credential may act for which agent."""

import asyncio
import hmac
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from qwed.api.app import App
from qwed.domain import credentials
from qwed.gate import Gate
from qwed.settings import Settings
from tests.conftest import AgentConversation
from tests.spec.conftest import SpecServer
from tests.spec.requests import SUM, Json, said
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.gate_factory import open_services
from tests.support.server import Server
from tests.support.stored_rows import StoredRows

BODY: Json = {"action": SUM, "context": {"conversation_id": "conv_1", "step_number": 1}}
NOBODY = "agent_" + "0" * 24
WRONG_TOKEN = (401, ("DENIED", "QWED-AGENT-002"))
WRONG_KEY = (401, ("DENIED", "QWED-AUTH-002"))
NO_AGENT = (404, ("DENIED", "QWED-AGENT-001"))


def _verify(
    client: httpx.Client, agent_id: str, body: Json = BODY, headers: dict[str, str] | None = None
) -> tuple[int, tuple[str, str | None]]:
    response = client.post(f"/agents/{agent_id}/verify", json=body, headers=headers)
    return response.status_code, said(response.json())


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@spec("9.8", "guide/Timing-safe token verification")
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_token_in_the_header_is_enough(stranger: httpx.Client, ask: AgentConversation, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {ask.agent['agent_token']}"}
    assert _verify(stranger, ask.agent_id, headers=headers) == (200, ("APPROVED", None))


@spec("9.8")
def test_the_token_in_the_body_is_enough(stranger: httpx.Client, ask: AgentConversation) -> None:
    body = {**BODY, "agent_id": ask.agent_id, "agent_token": ask.agent["agent_token"]}
    assert _verify(stranger, ask.agent_id, body) == (200, ("APPROVED", None))


@spec("9.8")
def test_a_key_of_the_organisation_may_verify_for_its_agent(ask: AgentConversation) -> None:
    assert _verify(ask.api, ask.agent_id) == (200, ("APPROVED", None))


@spec("9.8", "guide/Timing-safe token verification")
def test_tokens_and_keys_are_compared_by_hmac_compare_digest_whether_they_exist_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[int, int]] = []
    really = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return really(one, other)

    opened = open_services(Settings(), in_memory=True)
    with Gate(opened) as gate:
        agent = gate.register_agent(name=unique_name(), principal_id="u")
        token, key = agent["agent_token"], opened.owner_key or ""
        shown = [_bearer(token), _bearer(token[:-1] + "_"), _bearer(f"qwed_agent_{'0' * 52}")]
        shown += [{"X-API-Key": key}, {"X-API-Key": key[:-1] + "_"}, {"X-API-Key": f"qwed_live_{'0' * 52}"}]
        monkeypatch.setattr(hmac, "compare_digest", watched)
        statuses, counts = [], []
        for headers in shown:
            before = len(compared)
            statuses.append(asyncio.run(_asked_in_process(App(gate.services), agent["agent_id"], headers)))
            counts.append(len(compared) - before)
    assert statuses == [200, 401, 401, 200, 401, 401]
    assert min(counts) >= 1
    # Only digests are compared, so not even the length of a credential is revealed.
    assert set(compared) == {(32, 32)}


async def _asked_in_process(app: App, agent_id: str, headers: dict[str, str]) -> int:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://node") as client:
        return (await client.get(f"/agents/{agent_id}", headers=headers)).status_code


def _mangled(token: str) -> list[str]:
    swapped = "0" if token[-1] != "0" else "1"
    return [
        "",
        " ",
        token[:-1],
        token + "0",
        token[:-1] + swapped,
        token.upper(),
        token[:23],
        "qwed_agent_",
        "qwed_agent_" + "0" * 52,
        token.replace("qwed_agent", "qwed_live"),
        "x" * 5000,
        "é" * 40,
    ]


@spec("9.8")
@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("place", ["header", "body"])
def test_a_token_that_is_not_exactly_the_agents_is_refused(
    stranger: httpx.Client, ask: AgentConversation, number: int, place: str
) -> None:
    wrong = _mangled(ask.agent["agent_token"])[number]
    if place == "body":
        assert _verify(stranger, ask.agent_id, {**BODY, "agent_token": wrong}) == WRONG_TOKEN
    else:
        raw = [(b"authorization", (b"Bearer " + wrong.encode()).strip())]
        response = stranger.post(f"/agents/{ask.agent_id}/verify", json=BODY, headers=raw)
        assert (response.status_code, said(response.json())) == WRONG_TOKEN
    assert said(ask(SUM, 1)) == ("APPROVED", None)


@spec("9.8")
def test_no_credential_is_refused(stranger: httpx.Client, ask: AgentConversation) -> None:
    assert _verify(stranger, ask.agent_id) == WRONG_TOKEN
    assert _verify(stranger, NOBODY) == WRONG_TOKEN


@spec("9.8")
def test_a_token_says_nothing_about_other_agents_not_even_whether_they_exist(
    stranger: httpx.Client, asking: Callable[..., AgentConversation]
) -> None:
    mine, other = asking(), asking()
    shown = _bearer(mine.agent["agent_token"])
    refusals = [
        stranger.post(f"/agents/{agent_id}/verify", json=BODY, headers=shown) for agent_id in (other.agent_id, NOBODY)
    ]
    assert {response.status_code for response in refusals} == {401}
    assert refusals[0].content == refusals[1].content


@spec("9.8", "A")
def test_an_unknown_id_is_said_to_be_unknown_only_to_a_valid_key(spec_server: SpecServer) -> None:
    with (
        spec_server.client("owner") as owner,
        spec_server.client() as anyone,
        spec_server.client("qwed_live_" + "0" * 52) as guessing,
    ):
        assert _verify(owner, NOBODY) == NO_AGENT
        assert _verify(anyone, NOBODY) == WRONG_TOKEN
        assert _verify(guessing, NOBODY) == WRONG_KEY


@spec("9.8")
def test_another_organisations_agent_does_not_exist(spec_server: SpecServer) -> None:
    with spec_server.client("owner") as owner, spec_server.client("foreign") as foreign:
        agent = owner.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).json()
        ours = [
            f"/agents/{agent['agent_id']}{rest}" for rest in ("", "/budget", "/activity", "/did.json", "/actions/x")
        ]
        nowhere = [path.replace(agent["agent_id"], NOBODY) for path in ours]
        assert _verify(foreign, agent["agent_id"]) == NO_AGENT
        for path, other in zip(ours, nowhere, strict=True):
            seen, unseen = foreign.get(path), foreign.get(other)
            assert (seen.status_code, seen.content) == (404, unseen.content)
        listed = foreign.get("/agents").json()["agents"]
        assert agent["agent_id"] not in {each["agent_id"] for each in listed}


@spec("9.8")
def test_a_key_of_another_organisation_does_not_help_a_good_token(spec_server: SpecServer) -> None:
    with spec_server.client("owner") as owner, spec_server.client("foreign") as foreign:
        agent = owner.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).json()
        assert _verify(foreign, agent["agent_id"], headers=_bearer(agent["agent_token"])) == NO_AGENT


@spec("9.8")
@pytest.mark.parametrize("key", ["revoked", "qwed_live_" + "f" * 52, "", "nonsense", "k" * 4000])
def test_a_key_that_is_unknown_or_revoked_is_refused_everywhere(spec_server: SpecServer, key: str) -> None:
    with spec_server.client("owner") as owner, spec_server.client(key) as client:
        agent = owner.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).json()
        assert _verify(client, agent["agent_id"]) == WRONG_KEY
        assert _verify(client, agent["agent_id"], headers=_bearer(agent["agent_token"])) == WRONG_KEY
        for path in ("/agents", "/tools", f"/agents/{agent['agent_id']}"):
            response = client.get(path)
            assert (response.status_code, response.json()["error"]["code"]) == (401, "QWED-AUTH-002")


@spec("9.8")
def test_a_good_key_does_not_excuse_a_wrong_token(asking: Callable[..., AgentConversation]) -> None:
    mine, other = asking(), asking()
    assert _verify(mine.api, mine.agent_id, headers=_bearer(other.agent["agent_token"])) == WRONG_TOKEN
    assert _verify(mine.api, mine.agent_id, {**BODY, "agent_token": other.agent["agent_token"]}) == WRONG_TOKEN


@spec("9.8")
def test_header_body_and_path_must_agree(stranger: httpx.Client, asking: Callable[..., AgentConversation]) -> None:
    mine, other = asking(), asking()
    good, wrong = mine.agent["agent_token"], other.agent["agent_token"]
    both = {**BODY, "agent_token": wrong}
    assert _verify(stranger, mine.agent_id, both, headers=_bearer(good)) == WRONG_TOKEN
    assert _verify(stranger, mine.agent_id, {**BODY, "agent_token": good}, headers=_bearer(wrong)) == WRONG_TOKEN
    status, (decision, _code) = _verify(
        stranger, mine.agent_id, {**BODY, "agent_id": other.agent_id}, headers=_bearer(good)
    )
    assert (status, decision) == (400, "DENIED")
    agreeing = {**BODY, "agent_id": mine.agent_id, "agent_token": good}
    assert _verify(stranger, mine.agent_id, agreeing, headers=_bearer(good)) == (200, ("APPROVED", None))


@spec("9.8")
@pytest.mark.parametrize("rest", ["", "/budget", "/activity", "/did.json"])
def test_an_agent_may_look_at_itself_and_at_nobody_else(
    stranger: httpx.Client, asking: Callable[..., AgentConversation], rest: str
) -> None:
    mine, other = asking(), asking()
    shown = _bearer(mine.agent["agent_token"])
    assert stranger.get(f"/agents/{mine.agent_id}{rest}", headers=shown).status_code == 200
    for agent_id in (other.agent_id, NOBODY):
        response = stranger.get(f"/agents/{agent_id}{rest}", headers=shown)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "QWED-AGENT-002")


@spec("9.8")
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/agents/register"), ("GET", "/agents"), ("GET", "/tools"), ("PUT", "/tools/mine")]
)
def test_a_token_on_an_organisation_route_is_forbidden(
    stranger: httpx.Client, ask: AgentConversation, method: str, path: str
) -> None:
    body = {"name": unique_name("b"), "principal_id": "u", "trust_level": 2}
    response = stranger.request(method, path, json=body, headers=_bearer(ask.agent["agent_token"]))
    assert (response.status_code, response.json()["error"]["code"]) == (403, "QWED-AUTH-003")


@spec("9.8")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/agents/register"),
        ("GET", "/agents"),
        ("GET", f"/agents/{NOBODY}"),
        ("GET", f"/agents/{NOBODY}/budget"),
        ("GET", f"/agents/{NOBODY}/activity"),
        ("GET", f"/agents/{NOBODY}/actions/act_1"),
        ("GET", "/tools"),
        ("PUT", "/tools/mine"),
    ],
)
def test_nobody_gets_past_a_route_that_is_not_open(stranger: httpx.Client, method: str, path: str) -> None:
    response = stranger.request(method, path, json={})
    assert (response.status_code, response.json()["error"]["code"]) == (401, "QWED-AUTH-001")


@spec("9.8")
@pytest.mark.parametrize("role", ["member", "approver"])
def test_only_an_owner_edits_tools_or_makes_a_trusted_agent(spec_server: SpecServer, role: str) -> None:
    with spec_server.client(role) as client:
        assert client.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).status_code == 201
        refusals = [
            client.post("/agents/register", json={"name": unique_name(), "principal_id": "u", "type": "trusted"}),
            client.post("/agents/register", json={"name": unique_name(), "principal_id": "u", "trust_level": 3}),
            client.post(
                "/agents/register", json={"name": unique_name(), "principal_id": "u", "trust_level": "trusted"}
            ),
            client.put("/tools/mine", json={"risk_level": "low"}),
        ]
    assert [(each.status_code, each.json()["error"]["code"]) for each in refusals] == [(403, "QWED-AUTH-003")] * 4


@spec("9.8")
def test_a_trusted_type_held_at_a_lower_level_needs_no_owner(spec_server: SpecServer) -> None:
    with spec_server.client("member") as client:
        body = {"name": unique_name(), "principal_id": "u", "type": "trusted", "trust_level": 2}
        response = client.post("/agents/register", json=body)
    assert (response.status_code, response.json().get("trust_level")) == (201, 2)


@spec("9.8")
def test_refusals_of_strangers_leave_no_trace_in_the_log(stranger: httpx.Client, ask: AgentConversation) -> None:
    for token in ("wrong", "qwed_agent_" + "0" * 52):
        _verify(stranger, ask.agent_id, headers=_bearer(token))
    assert ask.activity()["summary"]["total_actions"] == 0
    assert ask.budget()["requests"]["current_hour"] == 0


@spec("9.8")
def test_credentials_are_long_random_and_never_stored(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as api:
        agents = [
            api.post("/agents/register", json={"name": unique_name(), "principal_id": "u"}).json() for _ in range(3)
        ]
        assert "agent_token" not in api.get(f"/agents/{agents[0]['agent_id']}").json()
    tokens = [agent["agent_token"] for agent in agents]
    assert server.stop() == 0
    assert len(set(tokens)) == 3
    # 128 random bits are 32 hex digits.
    assert all(len(token.removeprefix("qwed_agent_")) >= 32 for token in tokens)
    assert (server.data_dir / "owner.key").stat().st_mode & 0o777 == 0o600
    kept = b"".join(file.read_bytes() for file in server.data_dir.iterdir() if file.name != "owner.key")
    for secret in (*tokens, server.owner_key):
        assert secret.encode() not in kept
    digests = [
        bytes(row["token_digest"]) for row in StoredRows(server.data_dir).rows("SELECT token_digest FROM agents")
    ]
    assert sorted(digests) == sorted(map(credentials.digest_of, tokens))

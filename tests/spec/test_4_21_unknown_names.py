"""Ruling 4.21: an unknown name is refused with the list of known ones, and nothing is changed."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from qwed.engines.registry import ENGINE_NAMES
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import SUM, Json
from tests.spec.scenario import STATE, Scene
from tests.spec.sections import spec

ODD = "frobnicate"
SOURCES = ["file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom"]
RISKS = ["low", "medium", "high", "critical"]


def _place() -> Json:
    return {"conversation_id": "c", "step_number": 1}


def _asked(scene: Scene, **fields: Any) -> httpx.Response:
    return scene.sent({"action": SUM, "context": _place(), **fields})


def _registered(scene: Scene, **fields: Any) -> httpx.Response:
    return scene.plain("POST", "/agents/register", {"name": "a", "principal_id": "u", **fields})


def _code(language: str) -> Json:
    return {"type": "execute_code", "code": "1", "parameters": {"language": language}}


def _sql(dialect: str) -> Json:
    return {"type": "execute_sql", "query": "SELECT 1", "parameters": {"dialect": dialect}}


UNKNOWN: dict[str, tuple[list[str], Callable[[Scene], httpx.Response]]] = {
    "action type": (["calculate", "execute_sql", "tool_call"], lambda s: s.verify({"type": ODD})),
    "engine an agent may use": (
        list(ENGINE_NAMES),
        lambda s: _registered(s, permissions={"allowed_engines": [ODD]}),
    ),
    "engine of a tool": (
        ["math", "sql"],
        lambda s: s.plain("PUT", "/tools/mine", {"risk_level": "low", "verification_engine": ODD}),
    ),
    "engine of an item": (
        ["math", "sql"],
        lambda s: s.plain("POST", "/verify/batch", {"items": [{"query": "1", "type": ODD}]}),
    ),
    "dialect": (["postgres", "mysql", "sqlite", "tsql"], lambda s: s.verify(_sql(ODD))),
    "language": (["python", "javascript", "typescript", "bash", "sql"], lambda s: s.verify(_code(ODD))),
    "state source": (SOURCES, lambda s: s.verify(pre_action_state_hash=STATE, state_source=ODD)),
    "option": (["require_attestation", "risk_threshold"], lambda s: _asked(s, options={ODD: 1})),
    "risk threshold": (RISKS, lambda s: _asked(s, options={"risk_threshold": ODD})),
    "option of an engine": (
        ["timeout_ms", "include_attestation"],
        lambda s: s.plain("POST", "/verify/math", {"expression": "1", "options": {ODD: 1}}),
    ),
    "field": (["action", "context"], lambda s: _asked(s, **{ODD: 1})),
    "permission": (["allowed_tools", "max_rows"], lambda s: _registered(s, permissions={ODD: 1})),
    "limit": (["max_daily_cost_usd", "max_requests_per_hour"], lambda s: _registered(s, budget={ODD: 1})),
    "agent type": (["supervised", "autonomous", "trusted"], lambda s: _registered(s, type=ODD)),
    "trust level": (["untrusted", "trusted"], lambda s: _registered(s, trust_level=ODD)),
    "risk of a tool": (RISKS, lambda s: s.plain("PUT", "/tools/mine", {"risk_level": ODD})),
    "role": (["owner", "approver", "member"], lambda s: s.plain("POST", "/keys", {"name": "k", "role": ODD})),
    "event of a webhook": (
        ["pending", "failed", "degraded", "suspended"],
        lambda s: s.plain("PUT", "/webhook", {"url": "https://example.com", "events": [ODD]}),
    ),
    "parameter of a list": (["limit", "cursor"], lambda s: s.plain("GET", f"/agents?{ODD}=1")),
}

UNNAMED = frozenset({"risk threshold", "agent type", "trust level", "risk of a tool", "role", "event of a webhook"})
"""Cases whose message names the field and its permitted values, but not the submitted value."""


@pytest.fixture
def scene(spec_server: SpecServer, keyholders: Keyholders, foreign_agent: Json) -> Scene:
    return Scene(spec_server, keyholders, keyholders.create_agent(trust_level=3), foreign_agent)


@spec("4.1", "A")
@pytest.mark.parametrize("what", UNKNOWN)
def test_what_is_unknown_is_refused_by_name_with_what_is_known(scene: Scene, what: str) -> None:
    known, reach = UNKNOWN[what]
    response = reach(scene)
    error = response.json()["error"]
    told = f"{error['message']} {error['details']}"
    assert response.json().get("decision", "DENIED") == "DENIED"
    assert [name for name in known if name not in told] == []
    assert what in UNNAMED or f"`{ODD}`" in told
    # Nothing was changed: the step is free, and no such agent, key or tool exists.
    assert scene.verify().json()["decision"] == "APPROVED"

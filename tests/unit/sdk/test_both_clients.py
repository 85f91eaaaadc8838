"""Every operation is in both clients, from one definition, and every route has an operation (INTERFACES 5)."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from qwed.api.routes import ROUTES
from qwed_sdk import QWEDAgentClient, QWEDAsyncAgentClient, QWEDAsyncClient, QWEDClient
from qwed_sdk.http_request import Request
from qwed_sdk.operations import a2a, admin, agent_lifecycle, agents, audit, bound_agent, engines, policies
from qwed_sdk.sync_async import ClientMethod

MODULES = (engines, agents, agent_lifecycle, admin, policies, a2a, audit)
PROMISED = """
    health verify verify_math verify_logic verify_code verify_sql verify_fact verify_stats verify_consensus verify_image
    verify_batch get_batch_status get_jwks verify_attestation register_agent get_agent list_agents verify_action
    verify_tool_call wait_for_decision log_execution get_agent_budget get_agent_activity request_trust_change
    suspend_agent list_approvals approve reject compliance_report
"""
PRINTED = {
    "verify": "(query=None)",
    "verify_math": "(expression)",
    "verify_logic": "(query=None)",
    "verify_batch": "(items, options=None)",
    "verify_code": "(code, language='python')",
    "verify_sql": "(query, schema_ddl=None, dialect='sqlite')",
    "verify_fact": "(claim, context)",
    "verify_stats": "(query, file_path)",
    "verify_consensus": "(query, mode='single', min_confidence=0.8)",
    "verify_image": "(image_path, claim)",
    "verify_action": "(agent_id, action, context=None, options=None, agent_token=None, idempotency_key=None)",
    "log_execution": "(agent_id, action_id, success, result=None, attestation=None, agent_token=None)",
}
NO_VERB = {
    "GET /events": "a stream: `events` follows it, over as many requests as it takes",
    "GET /metrics": "read by Prometheus",
    "GET /openapi.json": "read by tools",
    "GET /docs": "read by people",
    "GET /policies/{policy_id}/versions": "`list_policy_versions` asks it for a named policy",
    "GET /agents/{agent_id}/did.json": "resolved by holders of the DID",
}


def verbs_of(kind: type) -> dict[str, Any]:
    members = {name: member for base in kind.__mro__ for name, member in vars(base).items()}
    return {name: getattr(kind, name) for name, member in members.items() if isinstance(member, ClientMethod)}


def written_in(*modules: Any) -> set[str]:
    return {
        name
        for module in modules
        for name, member in vars(module).items()
        if inspect.isgeneratorfunction(member) and not name.startswith("_") and member.__module__ == module.__name__
    }


@pytest.mark.parametrize(
    ("blocking", "awaiting", "written"),
    [
        (QWEDClient, QWEDAsyncClient, written_in(*MODULES)),
        (QWEDAgentClient, QWEDAsyncAgentClient, written_in(bound_agent) - {"request_step"}),
    ],
)
def test_both_clients_have_every_verb_that_is_written(blocking: type, awaiting: type, written: set[str]) -> None:
    assert set(verbs_of(blocking)) == set(verbs_of(awaiting)) == written


@pytest.mark.parametrize("name", sorted(written_in(*MODULES)))
def test_a_verb_takes_the_same_in_both_and_awaits_in_one(name: str) -> None:
    one, other = getattr(QWEDClient, name), getattr(QWEDAsyncClient, name)
    assert inspect.signature(one) == inspect.signature(other)
    assert one.__doc__ == other.__doc__
    assert (inspect.iscoroutinefunction(one), inspect.iscoroutinefunction(other)) == (False, True)


def test_a_verb_says_what_it_takes_and_what_it_gives() -> None:
    signature = inspect.signature(QWEDClient("qwed_live_x").verify_fact)
    assert list(signature.parameters) == ["claim", "context", "options"]
    assert signature.return_annotation.__name__ == "Result"


@pytest.mark.parametrize("name", PROMISED.split())
def test_every_promised_verb_is_there(name: str) -> None:
    assert name in verbs_of(QWEDClient)


@pytest.mark.parametrize("name", PRINTED)
def test_a_verb_takes_its_arguments_in_the_promised_order(name: str) -> None:
    parameters = list(inspect.signature(getattr(QWEDClient, name)).parameters.values())[1:]
    positional = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    texts = (
        f"{parameter.name}={parameter.default!r}" if parameter.default is not parameter.empty else parameter.name
        for parameter in positional
    )
    assert f"({', '.join(texts)})" == PRINTED[name]


def test_registering_takes_the_promised_fields_in_their_order() -> None:
    names = list(inspect.signature(QWEDClient.register_agent).parameters)[1:]
    promised = "name, type, principal_id, permissions, budget, trust_level, description, framework, model"
    assert names[:9] == promised.split(", ")
    assert names[9:] == ["labels", "max_conversation_steps"]


SAMPLES = {
    "action": {"type": "calculate"},
    "documents": {"x": "x"},
    "file_path": b"x",
    "image_path": b"x",
    "items": ["x"],
    "message": {"sender_agent_id": "x"},
}


def first_request(verb: Callable[..., Any]) -> Request:
    needed = [
        parameter for parameter in inspect.signature(verb).parameters.values() if parameter.default is parameter.empty
    ]
    positional = [parameter for parameter in needed if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    arguments = {parameter.name: SAMPLES.get(parameter.name, "x") for parameter in positional}
    request = next(verb(**arguments))
    assert isinstance(request, Request)
    return request


def test_every_route_has_a_verb_and_every_verb_a_route() -> None:
    requests = [first_request(getattr(module, name)) for module in MODULES for name in written_in(module)]
    patterns = {
        f"{route.method} {route.path}": re.compile(f"{route.method} {re.sub('{[^}]*}', '[^/]+', route.path)}")
        for route in ROUTES
    }
    met = {
        min(
            (name for name, pattern in patterns.items() if pattern.fullmatch(f"{request.method} {request.path}")),
            key=_loose,
        )
        for request in requests
    }
    assert set(patterns) - met == set(NO_VERB)


def _loose(route: str) -> int:
    """Return the number of parameters; the matching route with the fewest is the right one."""
    return route.count("{")

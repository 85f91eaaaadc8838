"""The map of the HTTP surface: one row per route, from which both the router and the API document are made."""

from typing import Any, NamedTuple

from qwed.api import agents, node, shapes, tools
from qwed.api.http import Handler
from qwed.kernel.activity import ActivityPage
from qwed.kernel.answer import Answer
from qwed.kernel.tools import Tool
from qwed.kernel.views import ActivityView, AgentView, BudgetView, RegisteredView
from qwed.words import ErrorCode

E = ErrorCode
_KEY = (E.NO_CREDENTIAL, E.UNKNOWN_CREDENTIAL, E.ROLE_NOT_SUFFICIENT)
_AGENT = (*_KEY, E.INVALID_AGENT_TOKEN, E.AGENT_NOT_REGISTERED)
_BODY = (E.MALFORMED, E.MISSING_FIELD, E.TOO_LARGE)
_DECISION = (
    E.AGENT_NOT_REGISTERED,
    E.INVALID_AGENT_TOKEN,
    E.UNKNOWN_CREDENTIAL,
    E.AGENT_SUSPENDED,
    E.MISSING_CONTEXT,
    E.INVALID_STEP,
    E.STATE_INCOMPLETE,
    E.STATE_HASH_INVALID,
    E.STATE_SOURCE_UNKNOWN,
    E.NOT_DETERMINISTIC,
    E.BAD_OPTION,
    E.KEY_REUSED,
    E.COST_EXCEEDED,
    E.RATE_EXCEEDED,
    E.TOKENS_EXCEEDED,
    E.ENGINE_UNAVAILABLE,
    E.DEPENDENCY_DOWN,
)


class Route(NamedTuple):
    """One route: where, what runs, and what the document says of it."""

    method: str
    path: str
    handler: Handler
    summary: str
    response: Any
    request: Any = None
    status: int = 200
    errors: tuple[ErrorCode, ...] = ()
    decides: bool = False
    open: bool = False
    query: tuple[str, ...] = ()


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/agents/register",
        agents.register_agent,
        "Register an agent (spec 3)",
        RegisteredView,
        shapes.RegisterShape,
        201,
        (*_KEY, *_BODY),
    ),
    Route(
        "GET",
        "/agents",
        agents.list_agents,
        "The organisation's agents",
        shapes.AgentsShape,
        errors=(*_KEY, E.BAD_OPTION),
        query=("limit", "cursor"),
    ),
    Route("GET", "/agents/{agent_id}", agents.get_agent, "One agent", AgentView, errors=_AGENT),
    Route(
        "GET",
        "/agents/{agent_id}/did.json",
        agents.get_did,
        "The agent's DID document (spec 3.4)",
        dict[str, Any],
        errors=_AGENT,
    ),
    Route(
        "POST",
        "/agents/{agent_id}/verify",
        agents.verify,
        "May this action happen? (spec 4)",
        Answer,
        shapes.VerifyShape,
        errors=(*_DECISION, *_BODY),
        decides=True,
    ),
    Route(
        "POST",
        "/agents/{agent_id}/tools/{tool}",
        agents.verify_tool,
        "May this tool be called? (spec 5)",
        Answer,
        shapes.VerifyToolShape,
        errors=(*_DECISION, *_BODY),
        decides=True,
    ),
    Route(
        "GET",
        "/agents/{agent_id}/actions/{action_id}",
        agents.get_action,
        "One activity",
        ActivityView,
        errors=(*_AGENT, E.NOT_FOUND),
    ),
    Route(
        "GET",
        "/agents/{agent_id}/activity",
        agents.get_activity,
        "The agent's activity, newest first (spec 7.2)",
        ActivityPage,
        errors=(*_AGENT, E.BAD_OPTION),
        query=("from", "to", "limit", "cursor", "decision"),
    ),
    Route(
        "GET",
        "/agents/{agent_id}/budget",
        agents.get_budget,
        "What the agent may spend and has spent (spec 6.1)",
        BudgetView,
        errors=_AGENT,
    ),
    Route("GET", "/tools", tools.list_tools, "The tool registry (spec 5.3)", shapes.ToolsShape, errors=_KEY),
    Route(
        "PUT",
        "/tools/{name}",
        tools.put_tool,
        "Describe a tool and make it known",
        Tool,
        dict[str, Any],
        errors=(*_KEY, *_BODY),
    ),
    Route("GET", "/.well-known/jwks.json", node.jwks, "The keys that sign attestations", shapes.JwksShape, open=True),
    Route("GET", "/health", node.health, "The process answers", shapes.HealthShape, open=True),
    Route("GET", "/ready", node.ready, "Every part is there", shapes.ReadyShape, open=True),
)

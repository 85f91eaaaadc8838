"""Routes of A2A messages and of the A2A access lists."""

from typing import Any

from qwed.api.handlers import a2a, a2a_lists
from qwed.api.openapi import a2a_schemas as shapes
from qwed.api.routes.route import BODY, KEY, E, Route
from qwed.api.server.endpoint import Handler
from qwed.kernel.a2a.access_lists import ListsView

_CHANGE = (*KEY, *BODY, E.CONFLICT)


def _listed(method: str, path: str, handler: Handler, summary: str, entry: Any, answer: Any) -> Route:
    missing = (E.NOT_FOUND,) if method == "DELETE" else ()
    return Route(method, path, handler, summary, answer, entry, errors=(*_CHANGE, *missing))


_AGENT = (shapes.AgentShape, shapes.AgentListedView)
_PAIR = (shapes.PairShape, shapes.PairListedView)

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/a2a/intercept",
        a2a.intercept,
        "Verify a message between agents",
        shapes.VerdictView,
        shapes.MessageShape,
        errors=(
            E.NO_CREDENTIAL,
            E.UNKNOWN_CREDENTIAL,
            *BODY,
            E.MISSING_CONTEXT,
            E.INVALID_STEP,
            E.NOT_DETERMINISTIC,
            E.ENGINE_UNAVAILABLE,
        ),
        large_message=True,
    ),
    Route(
        "GET",
        "/a2a/health",
        a2a.a2a_health,
        "Check whether messages are verified, and by which guards",
        shapes.MessageHealthView,
        open=True,
    ),
    Route(
        "GET",
        "/a2a/metrics",
        a2a.a2a_metrics,
        "Get message counters since the server started",
        shapes.MessageMetricsView,
        errors=KEY,
    ),
    Route(
        "GET",
        "/a2a/lists",
        a2a_lists.a2a_lists,
        "List blocked agents, blocked pairs and trusted agents",
        ListsView,
        errors=KEY,
    ),
    _listed("PUT", "/a2a/blocks", a2a_lists.block_agent, "Block an agent", *_AGENT),
    _listed("DELETE", "/a2a/blocks", a2a_lists.unblock_agent, "Unblock an agent", *_AGENT),
    _listed("PUT", "/a2a/pairs", a2a_lists.block_pair, "Block an agent from sending to another", *_PAIR),
    _listed("DELETE", "/a2a/pairs", a2a_lists.unblock_pair, "Unblock an agent from sending to another", *_PAIR),
    _listed(
        "PUT",
        "/a2a/trusted",
        a2a_lists.trust_agent,
        "Trust an agent, so that its messages skip verification",
        *_AGENT,
    ),
    _listed(
        "DELETE",
        "/a2a/trusted",
        a2a_lists.revoke_agent,
        "Stop trusting an agent",
        *_AGENT,
    ),
)

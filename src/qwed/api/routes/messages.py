"""Messages between agents, and the lists of who may send to whom."""

from typing import Any

from qwed.api import message_lists, messages
from qwed.api import message_shapes as shapes
from qwed.api.http import Handler
from qwed.api.routes.row import BODY, KEY, E, Route
from qwed.kernel.messages.lists import ListsView

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
        messages.intercept,
        "May this message reach its recipient?",
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
        carries=True,
    ),
    Route(
        "GET",
        "/a2a/health",
        messages.a2a_health,
        "Whether messages are judged here, and by what",
        shapes.MessageHealthView,
        open=True,
    ),
    Route(
        "GET",
        "/a2a/metrics",
        messages.a2a_metrics,
        "What became of the organisation's messages since the server started",
        shapes.MessageMetricsView,
        errors=KEY,
    ),
    Route(
        "GET",
        "/a2a/lists",
        message_lists.a2a_lists,
        "Who is blocked, which pairs are, and who is trusted",
        ListsView,
        errors=KEY,
    ),
    _listed("PUT", "/a2a/blocks", message_lists.block_agent, "Block an agent: it sends and receives nothing", *_AGENT),
    _listed("DELETE", "/a2a/blocks", message_lists.unblock_agent, "Take an agent off the blocklist", *_AGENT),
    _listed("PUT", "/a2a/pairs", message_lists.block_pair, "Block a pair: the one sends nothing to the other", *_PAIR),
    _listed("DELETE", "/a2a/pairs", message_lists.unblock_pair, "Let the one send to the other again", *_PAIR),
    _listed(
        "PUT",
        "/a2a/trusted",
        message_lists.trust_agent,
        "Trust an agent: what it provably sends is forwarded without verification",
        *_AGENT,
    ),
    _listed(
        "DELETE",
        "/a2a/trusted",
        message_lists.revoke_agent,
        "Trust an agent no more: what it sends is verified again",
        *_AGENT,
    ),
)

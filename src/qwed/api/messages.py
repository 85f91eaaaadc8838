"""INTERFACES 6: messages between agents, judged on their way, and the lists of who may send to whom.

`qwed_a2a` is imported with the first message: a server that carries none neither waits for pydantic nor needs it.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

import qwed
from qwed.api import message_shapes as shapes
from qwed.api.access import require_key
from qwed.api.body import parse_json
from qwed.api.http import SENDER_HEADER, Call, Response, ok, refused
from qwed.api.stretches import drive
from qwed.kernel.answer import Problem, problem
from qwed.kernel.case import Credentials
from qwed.kernel.judging.content import LARGE
from qwed.words import ErrorCode
from qwed.words.clock import rfc3339

if TYPE_CHECKING:
    from qwed_a2a.desk import Delivered, Desk
    from qwed_a2a.message import AgentMessage

_GUARDS = ("finance_guard", "logic_guard", "code_guard")
_NEEDED = "pydantic"


async def intercept(call: Call) -> Response:
    """`POST /a2a/intercept`: the verdict on one message, whatever it says."""
    stranger = _refuse_stranger(call)
    if stranger is not None:
        return refused(stranger)
    desk = await desk_of(call)
    if isinstance(desk, Problem):
        return refused(desk)
    message = await _message(call)
    if isinstance(message, Problem):
        return refused(message)
    # Counted here, because only the body says whose token it is.
    call.path = {**call.path, "agent_id": message.sender_agent_id}
    await call.freshen()
    await call.count_token(call.agent_token)
    delivered = await drive(call, desk.intercept(message, _shown(call)))
    if isinstance(delivered, Problem):
        return refused(delivered)
    call.node.metrics.count_message(delivered.verdict.status, delivered.verdict.engine_used)
    return ok(_view(delivered))


def _refuse_stranger(call: Call) -> Problem | None:
    """Why nothing is read of what the caller sends."""
    if call.api_key is None:
        return problem(ErrorCode.NO_CREDENTIAL) if call.agent_token is None else None
    key = require_key(call)
    return key if isinstance(key, Problem) else None


def _shown(call: Call) -> Credentials:
    return Credentials(
        api_key=call.api_key,
        agent_token=call.agent_token,
        proven_key=call.caller.key,
        proven_agent=call.caller.agent,
    )


async def _message(call: Call) -> "AgentMessage | Problem":
    if len(call.body) > LARGE:
        return await call.node.walking.run(call.caller.organisation_id, _read, call)
    return _read(call)


def _read(call: Call) -> "AgentMessage | Problem":
    from qwed_a2a.taking import take_message

    message = take_message(parse_json(call.body))
    stated = call.header(SENDER_HEADER)
    if isinstance(message, Problem) or stated in (None, message.sender_agent_id):
        return message
    return problem(ErrorCode.MALFORMED, "`sender_agent_id` in the body is not the agent in QWED-Agent-Id")


def _view(delivered: "Delivered") -> shapes.VerdictView:
    verdict = delivered.verdict
    return shapes.VerdictView(
        status=str(verdict.status),  # type: ignore[arg-type]  # one of the words that are listed there
        reason=verdict.reason,
        audit_trace_id=verdict.audit_trace_id,
        attestation_jwt=verdict.attestation_jwt,
        engine_used=str(verdict.engine_used),  # type: ignore[arg-type]  # as above
        verified_at=rfc3339(verdict.verified_at.timestamp()),
        details=dict(verdict.details),
        activity_id=delivered.activity_id,
    )


async def desk_of(call: Call) -> "Desk | Problem":
    """Who judges messages here; made, in a thread, for whoever asks first."""
    if call.node.desk is None:
        if not is_installed():
            return problem(
                ErrorCode.DEPENDENCY_DOWN,
                f"this server is installed without `{_NEEDED}`, which messages between agents need",
                suggestion="install it with: pip install 'qwed[server]'",
            )
        desk = await call.look(_new_desk, call)
        # Two may have asked at once; the numbers are those of one desk.
        call.node.desk = call.node.desk or desk
    return call.node.desk


def is_installed() -> bool:
    """Whether what reads messages is there."""
    return find_spec(_NEEDED) is not None


def _new_desk(call: Call) -> "Desk":
    from qwed_a2a.desk import Desk

    return Desk(call.services)


async def a2a_health(_call: Call) -> Response:
    """Whether messages are judged here, and by what."""
    status = "ok" if is_installed() else "unavailable"
    return ok(shapes.MessageHealthView(status=status, version=qwed.__version__, guards=list(_GUARDS)))  # type: ignore[arg-type]  # as above


async def a2a_metrics(call: Call) -> Response:
    """What became of the organisation's messages since the server started."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    desk = await desk_of(call)
    if isinstance(desk, Problem):
        return refused(desk)
    return ok(shapes.MessageMetricsView(**desk.metrics_of(key.organisation_id).snapshot()))

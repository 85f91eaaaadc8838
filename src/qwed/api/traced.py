"""Requests with a trace: an endpoint that times its stages and says of the answer what is nobody's secret."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from qwed.api.body import Receive, Scope
from qwed.api.http import Call, Endpoint, Handler, Node, Response
from qwed.api.metrics import OTHER, OWN_JUDGES, Meter
from qwed.api.pressure import Hold
from qwed.kernel.answer import Answer
from qwed.kernel.services import Services
from qwed.kernel.tools import KNOWN_TYPES, TOOL_CALL
from qwed.tracing.trace import CURRENT, Trace, Value, at_stage, on_ask
from qwed.tracing.tracer import Tracer

_HEADER = b"traceparent"
_CALL = "qwed.call"
"""Where the scope of a request holds its call, once a handler has it."""


def traced(services: Services) -> Services:
    """The services, whose stages and engines tell the request they work for."""
    services.engines.on_ask = on_ask
    before = services.at_stage
    if before is None:
        return replace(services, at_stage=at_stage)

    def both(stage: str) -> None:
        at_stage(stage)
        before(stage)

    return replace(services, at_stage=both)


class TracedEndpoint(Endpoint):
    """An endpoint whose requests are traced."""

    def __init__(self, tracer: Tracer, handler: Handler, node: Callable[[], Node], meter: Meter, **how: Any) -> None:
        super().__init__(_seen(handler), node, meter, **how)
        self._tracer = tracer
        self._known: dict[str, Value] = {"http.request.method": meter.method, "http.route": meter.route}
        self._name = f"{meter.method} {meter.route}"

    async def _answer(self, node: Node, scope: Scope, receive: Receive, hold: Hold | None) -> Response:
        trace = self._tracer.begin(self._name, _traceparent(scope))
        if trace is None:
            return await super()._answer(node, scope, receive, hold)
        response: Response | None = None
        token = CURRENT.set(trace)
        try:
            response = await super()._answer(node, scope, receive, hold)
        finally:
            CURRENT.reset(token)
            self._end(trace, response, scope.get(_CALL))
        return response

    def _end(self, trace: Trace, response: Response | None, call: Call | None) -> None:
        said = self._known if response is None else self._known | _said(response, call)
        failed = response is None or response.status >= 500
        self._tracer.end(trace, said, failed=failed, known=call is not None and bool(call.caller.proven))


def _seen(handler: Handler) -> Handler:
    async def handle(call: Call) -> Response:
        call.scope[_CALL] = call
        return await handler(call)

    return handle


def _traceparent(scope: Scope) -> bytes | None:
    """The header; none, where there is more than one of it."""
    found = [value for name, value in scope["headers"] if name == _HEADER]
    return found[0] if len(found) == 1 else None


def _said(response: Response, call: Call | None) -> dict[str, Value]:
    """What is known of an answer: words of ours, and ids of those who have proven who they are."""
    said: dict[str, Value] = {"http.response.status_code": response.status}
    if response.code:
        said["qwed.error_code"] = response.code
    if response.answer is not None:
        said |= _decided(response.answer, call)
    return said if call is None else said | _asked_by(call, response)


def _asked_by(call: Call, response: Response) -> dict[str, Value]:
    organisation_id, agent_id = call.caller.organisation_id, call.path.get("agent_id")
    said: dict[str, Value] = {"qwed.organisation_id": organisation_id} if organisation_id else {}
    # A path says what its caller likes; the answer shows whether there is such an agent, and whether it is theirs.
    granted = response.status < 400 if response.answer is None else response.answer.action_id is not None
    if organisation_id and granted and agent_id:
        said["qwed.agent_id"] = agent_id
    return said


def _decided(answer: Answer, call: Call | None) -> dict[str, Value]:
    said: dict[str, Value] = {"qwed.decision": answer.decision.value}
    found = answer.verification
    if found is not None:
        known = call is not None and (found.engine in call.services.engines.known() or found.engine in OWN_JUDGES)
        said |= {"qwed.engine": found.engine if known else OTHER, "qwed.risk": found.risk_level}
    if call is not None and answer.action_id is not None:
        said["qwed.action_type"] = _action_type(call)
    return said


class _Action(msgspec.Struct):
    type: str = ""


class _Body(msgspec.Struct):
    action: _Action | None = None


_body = msgspec.json.Decoder(_Body)
_LARGEST = 1 << 20
"""Bytes of a body that is looked through for the type of its action."""


def _action_type(call: Call) -> str:
    """One of ours, whatever else it may have been."""
    if "tool" in call.path:
        return TOOL_CALL
    if len(call.body) > _LARGEST:
        return OTHER
    try:
        action = _body.decode(call.body).action
    except msgspec.MsgspecError:
        return OTHER
    return OTHER if action is None or action.type not in KNOWN_TYPES else action.type

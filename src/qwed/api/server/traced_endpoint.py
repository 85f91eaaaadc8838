"""OpenTelemetry traces of HTTP requests: stages, engines and response attributes without secrets."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from qwed.api.server.admission import AdmissionSlot
from qwed.api.server.body import Receive, Scope
from qwed.api.server.endpoint import AppContext, Endpoint, Handler, RequestContext, Response
from qwed.api.server.metrics import BUILTIN_ANALYZERS, OTHER, Meter
from qwed.kernel.answer import Answer
from qwed.kernel.services import Services
from qwed.kernel.tools import KNOWN_TYPES, TOOL_CALL
from qwed.tracing.trace import CURRENT, Trace, Value, at_stage, on_engine_call

if TYPE_CHECKING:
    from qwed.tracing.tracer import Tracer

_HEADER = b"traceparent"
_CONTEXT_KEY = "qwed.request"
"""Scope key of the request context, set when the handler is called."""


def with_tracing(services: Services) -> Services:
    """Return the services with stages and engines reporting to the current trace."""
    services.engines.on_submit = on_engine_call
    before = services.at_stage
    if before is None:
        return replace(services, at_stage=at_stage)

    def both(stage: str) -> None:
        at_stage(stage)
        before(stage)

    return replace(services, at_stage=both)


class TracedEndpoint(Endpoint):
    """Endpoint whose requests are traced."""

    def __init__(
        self, tracer: "Tracer", handler: Handler, app: Callable[[], AppContext], meter: Meter, **options: Any
    ) -> None:
        super().__init__(_remember_context(handler), app, meter, **options)
        self._tracer = tracer
        self._known: dict[str, Value] = {"http.request.method": meter.method, "http.route": meter.route}
        self._name = f"{meter.method} {meter.route}"

    async def _answer(self, app: AppContext, scope: Scope, receive: Receive, slot: AdmissionSlot | None) -> Response:
        trace = self._tracer.begin(self._name, _traceparent(scope))
        if trace is None:
            return await super()._answer(app, scope, receive, slot)
        response: Response | None = None
        token = CURRENT.set(trace)
        try:
            response = await super()._answer(app, scope, receive, slot)
        finally:
            CURRENT.reset(token)
            self._end(trace, response, scope.get(_CONTEXT_KEY))
        return response

    def _end(self, trace: Trace, response: Response | None, request: RequestContext | None) -> None:
        attributes = self._known if response is None else self._known | _response_attributes(response, request)
        failed = response is None or response.status >= 500
        self._tracer.end(
            trace, attributes, failed=failed, authenticated=request is not None and bool(request.caller.organisation_id)
        )


def _remember_context(handler: Handler) -> Handler:
    async def handle(request: RequestContext) -> Response:
        request.scope[_CONTEXT_KEY] = request
        return await handler(request)

    return handle


def _traceparent(scope: Scope) -> bytes | None:
    """Return the traceparent header, or None if it is missing or repeated."""
    values = [value for name, value in scope["headers"] if name == _HEADER]
    return values[0] if len(values) == 1 else None


def _response_attributes(response: Response, request: RequestContext | None) -> dict[str, Value]:
    """Return span attributes of a response: constants and ids of authenticated callers."""
    attributes: dict[str, Value] = {"http.response.status_code": response.status}
    if response.code:
        attributes["qwed.error_code"] = response.code
    if response.answer is not None:
        attributes |= _decision_attributes(response.answer, request)
    return attributes if request is None else attributes | _caller_attributes(request, response)


def _caller_attributes(request: RequestContext, response: Response) -> dict[str, Value]:
    organisation_id, agent_id = request.caller.organisation_id, request.path.get("agent_id")
    attributes: dict[str, Value] = {"qwed.organisation_id": organisation_id} if organisation_id else {}
    # The path is client input; only the response shows that the agent exists and belongs to the caller.
    granted = response.status < 400 if response.answer is None else response.answer.action_id is not None
    if organisation_id and granted and agent_id:
        attributes["qwed.agent_id"] = agent_id
    return attributes


def _decision_attributes(answer: Answer, request: RequestContext | None) -> dict[str, Value]:
    attributes: dict[str, Value] = {"qwed.decision": answer.decision.value}
    verification = answer.verification
    if verification is not None:
        is_known = request is not None and (
            verification.engine in request.services.engines.known() or verification.engine in BUILTIN_ANALYZERS
        )
        attributes |= {"qwed.engine": verification.engine if is_known else OTHER, "qwed.risk": verification.risk_level}
    if request is not None and answer.action_id is not None:
        attributes["qwed.action_type"] = _action_type(request)
    return attributes


class _Action(msgspec.Struct):
    type: str = ""


class _Body(msgspec.Struct):
    action: _Action | None = None


_body = msgspec.json.Decoder(_Body)
_LARGEST = 1 << 20
"""Largest body that is parsed for its action type."""


def _action_type(request: RequestContext) -> str:
    """Return the action type if it is a built-in one, otherwise `other`."""
    if "tool" in request.path:
        return TOOL_CALL
    if len(request.body) > _LARGEST:
        return OTHER
    try:
        action = _body.decode(request.body).action
    except msgspec.MsgspecError:
        return OTHER
    return OTHER if action is None or action.type not in KNOWN_TYPES else action.type

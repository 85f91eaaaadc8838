"""Clients of 0.3: their requests and answers, turned into those of 1.0 and back by the package itself."""

from typing import Any

import msgspec

from qwed_a2a import strict
from qwed_a2a.proxy import sse
from qwed_a2a.proxy.bindings import Asked, Rpc
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.terms import Event, Request, Task
from qwed_a2a.proxy.verbs import BY_OLD, Verb

_encode = msgspec.json.Encoder().encode
_UNKNOWN_THEN = (Fault.EXTENSION_SUPPORT_REQUIRED, Fault.VERSION_NOT_SUPPORTED)
_REQUESTS = {
    Verb.SEND: ("SendMessageRequest", "to_core_send_message_request"),
    Verb.STREAM: ("SendStreamingMessageRequest", "to_core_send_message_request"),
    Verb.GET: ("GetTaskRequest", "to_core_get_task_request"),
    Verb.CANCEL: ("CancelTaskRequest", "to_core_cancel_task_request"),
    Verb.SUBSCRIBE: ("TaskResubscriptionRequest", "to_core_subscribe_to_task_request"),
    Verb.CARD: ("GetAuthenticatedExtendedCardRequest", "to_core_get_extended_agent_card_request"),
}


class Old(Rpc):
    """JSON-RPC as it was in 0.3."""

    def __init__(self, request_id: str | int | None, verb: Verb | None = None) -> None:
        super().__init__(request_id)
        self._verb = verb

    def result(self, value: Any) -> bytes:
        """The answer."""
        return _encode({"jsonrpc": "2.0", "id": self._id, "result": _as_it_was(value)})

    def refusal(self, refused: Refused) -> tuple[int, bytes]:
        """What is said in place of an answer, and its HTTP status."""
        fault = Fault.INTERNAL_ERROR if refused.fault in _UNKNOWN_THEN else refused.fault
        error = {"code": fault.value.code, "message": refused.message, "data": refused.data}
        return 200, _encode({"jsonrpc": "2.0", "id": self._id, "error": error})

    def last(self, refused: Refused) -> bytes:
        """The event that ends a stream; in 0.3 it had no name."""
        return sse.event(self.refusal(refused)[1])


def old_asked(request: Request) -> Asked:
    """What a request of 0.3 asks."""
    verb = BY_OLD[request.method]
    if verb is Verb.PUSH:
        return Asked(verb, None)
    from a2a.compat.v0_3 import conversions, types
    from google.protobuf.json_format import MessageToDict
    from pydantic import ValidationError

    model, convert = _REQUESTS[verb]
    told = {"jsonrpc": "2.0", "id": request.id, "method": request.method}
    try:
        read = getattr(types, model).model_validate({**told, **_given(request)})
        params = MessageToDict(getattr(conversions, convert)(read))
        return Asked(verb, strict.understood(params, verb.value.takes))
    except (ValidationError, ValueError, TypeError):
        raise Refused(Fault.INVALID_PARAMS, "the parameters are not those of A2A 0.3") from None


def _given(request: Request) -> dict[str, Any]:
    return {} if request.params is msgspec.UNSET else {"params": request.params}


def _as_it_was(value: Any) -> Any:
    """The answer in the words of 0.3; Refused where it has none there."""
    from google.protobuf.json_format import ParseError

    try:
        return _converted(value)
    except (ValueError, TypeError, KeyError, AttributeError, ParseError):
        said = "the answer of the agent has no form in A2A 0.3"
        raise Refused(Fault.INVALID_AGENT_RESPONSE, said, {"source": "upstream"}) from None


def _converted(value: Any) -> Any:
    from a2a.compat.v0_3 import conversions
    from a2a.types import a2a_pb2
    from google.protobuf.json_format import ParseDict

    if isinstance(value, Event):
        core = ParseDict(msgspec.to_builtins(value), a2a_pb2.StreamResponse())
        return _dumped(conversions.to_compat_stream_response(core).result)
    if isinstance(value, Task):
        return _dumped(conversions.to_compat_task(ParseDict(msgspec.to_builtins(value), a2a_pb2.Task())))
    return value


def _dumped(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)

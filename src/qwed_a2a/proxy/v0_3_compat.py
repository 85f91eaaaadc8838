"""Compatibility with clients of A2A 0.3; the official package converts their requests and answers."""

from typing import Any

import msgspec

from qwed_a2a import strict_schema
from qwed_a2a.proxy import sse
from qwed_a2a.proxy.codecs import JsonRpcCodec, MethodCall
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import JsonRpcRequest, StreamResponse, Task
from qwed_a2a.proxy.methods import METHOD_BY_V0_3_NAME, A2AMethod

_encode = msgspec.json.Encoder().encode
_UNKNOWN_IN_V0_3 = (ErrorKind.EXTENSION_SUPPORT_REQUIRED, ErrorKind.VERSION_NOT_SUPPORTED)
_REQUESTS = {
    A2AMethod.SEND: ("SendMessageRequest", "to_core_send_message_request"),
    A2AMethod.STREAM: ("SendStreamingMessageRequest", "to_core_send_message_request"),
    A2AMethod.GET: ("GetTaskRequest", "to_core_get_task_request"),
    A2AMethod.CANCEL: ("CancelTaskRequest", "to_core_cancel_task_request"),
    A2AMethod.SUBSCRIBE: ("TaskResubscriptionRequest", "to_core_subscribe_to_task_request"),
    A2AMethod.CARD: ("GetAuthenticatedExtendedCardRequest", "to_core_get_extended_agent_card_request"),
}


class V03Codec(JsonRpcCodec):
    """JSON-RPC of A2A 0.3."""

    def __init__(self, request_id: str | int | None, method: A2AMethod | None = None) -> None:
        super().__init__(request_id)
        self._method = method

    def encode_result(self, value: Any) -> bytes:
        """Return the encoded answer."""
        return _encode({"jsonrpc": "2.0", "id": self._id, "result": _to_v0_3(value)})

    def error_response(self, refused: CallRefusedError) -> tuple[int, bytes]:
        """Return the HTTP status and body of an error."""
        kind = ErrorKind.INTERNAL_ERROR if refused.error_kind in _UNKNOWN_IN_V0_3 else refused.error_kind
        error = {"code": kind.value.code, "message": refused.message, "data": refused.data}
        return 200, _encode({"jsonrpc": "2.0", "id": self._id, "error": error})

    def error_event(self, refused: CallRefusedError) -> bytes:
        """Return the error event that ends a stream; in 0.3 it has no name."""
        return sse.encode_event(self.error_response(refused)[1])


def parse_v0_3_call(request: JsonRpcRequest) -> MethodCall:
    """Return the call of a request of 0.3."""
    method = METHOD_BY_V0_3_NAME[request.method]
    if method is A2AMethod.PUSH:
        return MethodCall(method, None)
    from a2a.compat.v0_3 import conversions, types
    from google.protobuf.json_format import MessageToDict
    from pydantic import ValidationError

    model, convert = _REQUESTS[method]
    envelope = {"jsonrpc": "2.0", "id": request.id, "method": request.method}
    try:
        parsed = getattr(types, model).model_validate({**envelope, **_params_member(request)})
        params = MessageToDict(getattr(conversions, convert)(parsed))
        return MethodCall(method, strict_schema.convert_strict(params, method.value.params_type))
    except (ValidationError, ValueError, TypeError):
        raise CallRefusedError(ErrorKind.INVALID_PARAMS, "the parameters are not those of A2A 0.3") from None


def _params_member(request: JsonRpcRequest) -> dict[str, Any]:
    return {} if request.params is msgspec.UNSET else {"params": request.params}


def _to_v0_3(value: Any) -> Any:
    """Return the answer in the form of 0.3; raise CallRefusedError if it has none."""
    from google.protobuf.json_format import ParseError

    try:
        return _convert(value)
    except (ValueError, TypeError, KeyError, AttributeError, ParseError):
        message = "the answer of the agent has no form in A2A 0.3"
        raise CallRefusedError(ErrorKind.INVALID_AGENT_RESPONSE, message, {"source": "upstream"}) from None


def _convert(value: Any) -> Any:
    from a2a.compat.v0_3 import conversions
    from a2a.types import a2a_pb2
    from google.protobuf.json_format import ParseDict

    if isinstance(value, StreamResponse):
        core = ParseDict(msgspec.to_builtins(value), a2a_pb2.StreamResponse())
        return _dump(conversions.to_compat_stream_response(core).result)
    if isinstance(value, Task):
        return _dump(conversions.to_compat_task(ParseDict(msgspec.to_builtins(value), a2a_pb2.Task())))
    return value


def _dump(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)

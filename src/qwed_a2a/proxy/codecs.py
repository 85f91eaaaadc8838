"""Codecs for clients of A2A 1.0: JSON-RPC and HTTP+JSON."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import UNSET

from qwed_a2a import strict_schema
from qwed_a2a.proxy import sse
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import JsonRpcRequest, TaskPage
from qwed_a2a.proxy.methods import METHOD_BY_RPC_NAME, A2AMethod

_encode = msgspec.json.Encoder().encode
JSON, A2A_JSON = b"application/json", b"application/a2a+json"


class MethodCall(NamedTuple):
    """Method and parameters of a client's call."""

    method: A2AMethod
    params: Any


class Codec(ABC):
    """Encoding of the answers to one call."""

    media_type: bytes
    """Media type of an answer."""

    @abstractmethod
    def encode_result(self, value: Any) -> bytes:
        """Return the encoded answer."""

    @abstractmethod
    def error_response(self, refused: CallRefusedError) -> tuple[int, bytes]:
        """Return the HTTP status and body of an error."""

    def encode_event(self, value: Any) -> bytes:
        """Return the answer as an event of a stream."""
        return sse.encode_event(self.encode_result(value))

    def error_event(self, refused: CallRefusedError) -> bytes:
        """Return the error event that ends a stream."""
        return sse.encode_event(self.error_response(refused)[1], b"error")


class JsonRpcCodec(Codec):
    """JSON-RPC: errors have HTTP status 200."""

    media_type = JSON

    def __init__(self, request_id: str | int | None = None) -> None:
        self._id = request_id

    def encode_result(self, value: Any) -> bytes:
        """Return the encoded answer."""
        return _encode({"jsonrpc": "2.0", "id": self._id, "result": _encodable(value)})

    def error_response(self, refused: CallRefusedError) -> tuple[int, bytes]:
        """Return the HTTP status and body of an error."""
        error = {"code": refused.error_kind.value.code, "message": refused.message, "data": refused.details()}
        return 200, _encode({"jsonrpc": "2.0", "id": self._id, "error": error})


class RestCodec(Codec):
    """HTTP+JSON: errors have the format of google.rpc."""

    media_type = A2A_JSON

    def encode_result(self, value: Any) -> bytes:
        """Return the encoded answer."""
        return _encode(_encodable(value))

    def error_response(self, refused: CallRefusedError) -> tuple[int, bytes]:
        """Return the HTTP status and body of an error."""
        row = refused.error_kind.value
        status = refused.http or row.http
        error = {"code": status, "status": row.status, "message": refused.message, "details": refused.details()}
        return status, _encode({"error": error})


def parse_envelope(body: bytes) -> JsonRpcRequest:
    """Return the JSON-RPC request in a body; raise CallRefusedError if there is none."""
    try:
        value = strict_schema.parse(body)
    except strict_schema.StrictSchemaError as error:
        raise CallRefusedError(ErrorKind.PARSE_ERROR, str(error)) from None
    if isinstance(value, list):
        raise CallRefusedError(ErrorKind.INVALID_REQUEST, "batches are not supported: send one request at a time")
    try:
        return strict_schema.convert_lenient(value, JsonRpcRequest)
    except strict_schema.StrictSchemaError as error:
        raise CallRefusedError(ErrorKind.INVALID_REQUEST, str(error)) from None


def parse_rpc_call(request: JsonRpcRequest) -> MethodCall:
    """Return the call of a JSON-RPC request."""
    method = METHOD_BY_RPC_NAME.get(request.method)
    if method is None:
        raise CallRefusedError(
            ErrorKind.METHOD_NOT_FOUND, f"no such method: {strict_schema.quote_for_message(request.method)}"
        )
    return MethodCall(method, _parse_params({} if request.params is UNSET else request.params, method))


def parse_rest_call(http_method: str, path: str, query: bytes, body: bytes) -> MethodCall:
    """Return the call of an HTTP+JSON request; raise CallRefusedError if it is not one."""
    method, tenant, task_id = _route(http_method, path)
    members = _rest_members(method, query, body)
    for name, path_value in (("tenant", tenant), ("id", task_id)):
        if path_value and members.setdefault(name, path_value) != path_value:
            raise CallRefusedError(ErrorKind.INVALID_PARAMS, f"`{name}` differs from the one in the path")
    return MethodCall(method, _parse_params(members, method, typed=bool(body)))


def _rest_members(method: A2AMethod, query: bytes, body: bytes) -> dict[str, Any]:
    if method.value.http_method == "POST" and body.strip():
        try:
            value = strict_schema.parse(body)
        except strict_schema.StrictSchemaError as error:
            raise CallRefusedError(ErrorKind.PARSE_ERROR, str(error)) from None
        if not isinstance(value, dict):
            raise CallRefusedError(ErrorKind.INVALID_REQUEST, "the body must be a JSON object")
        return value
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=32)
    except ValueError:
        raise CallRefusedError(ErrorKind.INVALID_PARAMS, "the URL has more parameters than any method") from None
    if len(dict(pairs)) != len(pairs):
        raise CallRefusedError(ErrorKind.INVALID_PARAMS, "a parameter appears twice in the URL")
    return dict(pairs)


def _parse_params(value: Any, method: A2AMethod, *, typed: bool = True) -> Any:
    if method is A2AMethod.PUSH:
        return None
    try:
        return strict_schema.convert_strict(value, method.value.params_type, strict=typed)
    except strict_schema.StrictSchemaError as error:
        raise CallRefusedError(ErrorKind.INVALID_PARAMS, str(error)) from None


_TASKS, _PUSH_CONFIGS = "tasks", "pushNotificationConfigs"
_ROUTES: Mapping[tuple[str, str], A2AMethod] = {
    ("POST", "message:send"): A2AMethod.SEND,
    ("POST", "message:stream"): A2AMethod.STREAM,
    ("GET", _TASKS): A2AMethod.LIST,
    ("GET", "extendedAgentCard"): A2AMethod.CARD,
}
_TASK_ROUTES: Mapping[tuple[str, str], A2AMethod] = {
    ("POST", "cancel"): A2AMethod.CANCEL,
    ("POST", "subscribe"): A2AMethod.SUBSCRIBE,
    ("GET", "subscribe"): A2AMethod.SUBSCRIBE,
}


def _route(http_method: str, path: str) -> tuple[A2AMethod, str, str]:
    """Return the method, the tenant and the task that a path names."""
    segments = [unquote(step) for step in path.strip("/").split("/")]
    for tenant, rest in (("", segments), (segments[0], segments[1:])):
        match = _match_route(http_method, rest)
        if match is not None:
            return match[0], tenant, match[1]
    raise CallRefusedError(ErrorKind.METHOD_NOT_FOUND, "nothing is served at this address", http=404)


def _match_route(http_method: str, segments: list[str]) -> tuple[A2AMethod, str] | None:
    if len(segments) == 1:
        method = _ROUTES.get((http_method, segments[0]))
        return None if method is None else (method, "")
    if len(segments) in (3, 4) and segments[0] == _TASKS and segments[2] == _PUSH_CONFIGS:
        return A2AMethod.PUSH, segments[1]
    if len(segments) != 2 or segments[0] != _TASKS:
        return None
    task_id, _, action = segments[1].rpartition(":")
    method = _TASK_ROUTES.get((http_method, action)) if task_id else None
    if method is not None:
        return method, task_id
    return (A2AMethod.GET, segments[1]) if http_method == "GET" else None


def _encodable(value: Any) -> Any:
    """Return the value, or all members of a page: the protocol requires its empty ones too."""
    if not isinstance(value, TaskPage):
        return value
    page = {"tasks": value.tasks, "nextPageToken": value.next_page_token}
    return {**page, "pageSize": value.page_size, "totalSize": value.total_size}

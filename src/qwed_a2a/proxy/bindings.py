"""How clients spell their calls and are answered: JSON-RPC and HTTP+JSON of A2A 1.0."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import UNSET

from qwed_a2a import strict
from qwed_a2a.proxy import sse
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.terms import Request, TaskPage
from qwed_a2a.proxy.verbs import BY_RPC, Verb

_encode = msgspec.json.Encoder().encode
JSON, A2A_JSON = b"application/json", b"application/a2a+json"


class Spoken(Protocol):
    """How one call is answered."""

    kind: bytes
    """The media type of an answer."""

    def result(self, value: Any) -> bytes:
        """The answer."""

    def event(self, value: Any) -> bytes:
        """One of several answers, as an event."""

    def refusal(self, refused: Refused) -> tuple[int, bytes]:
        """What is said in place of an answer, and its HTTP status."""

    def last(self, refused: Refused) -> bytes:
        """The event that ends a stream."""


class Asked(NamedTuple):
    """What a client asks."""

    verb: Verb
    params: Any


class Rpc:
    """JSON-RPC: an error is an answer like any other."""

    kind = JSON

    def __init__(self, request_id: str | int | None = None) -> None:
        self._id = request_id

    def result(self, value: Any) -> bytes:
        """The answer."""
        return _encode({"jsonrpc": "2.0", "id": self._id, "result": _written(value)})

    def event(self, value: Any) -> bytes:
        """One of several answers, as an event."""
        return sse.event(self.result(value))

    def refusal(self, refused: Refused) -> tuple[int, bytes]:
        """What is said in place of an answer, and its HTTP status."""
        error = {"code": refused.fault.value.code, "message": refused.message, "data": refused.details()}
        return 200, _encode({"jsonrpc": "2.0", "id": self._id, "error": error})

    def last(self, refused: Refused) -> bytes:
        """The event that ends a stream."""
        return sse.event(self.refusal(refused)[1], b"error")


class Rest:
    """HTTP+JSON: an error is google.rpc's."""

    kind = A2A_JSON

    def result(self, value: Any) -> bytes:
        """The answer."""
        return _encode(_written(value))

    def event(self, value: Any) -> bytes:
        """One of several answers, as an event."""
        return sse.event(self.result(value))

    def refusal(self, refused: Refused) -> tuple[int, bytes]:
        """What is said in place of an answer, and its HTTP status."""
        row = refused.fault.value
        status = refused.http or row.http
        error = {"code": status, "status": row.status, "message": refused.message, "details": refused.details()}
        return status, _encode({"error": error})

    def last(self, refused: Refused) -> bytes:
        """The event that ends a stream."""
        return sse.event(self.refusal(refused)[1], b"error")


def envelope(body: bytes) -> Request:
    """A request of JSON-RPC; Refused where it is none."""
    try:
        value = strict.parse(body)
    except strict.Unreadable as error:
        raise Refused(Fault.PARSE_ERROR, str(error)) from None
    if isinstance(value, list):
        raise Refused(Fault.INVALID_REQUEST, "batches are not taken: send one request at a time")
    try:
        return strict.accepted(value, Request)
    except strict.Unreadable as error:
        raise Refused(Fault.INVALID_REQUEST, str(error)) from None


def rpc_asked(request: Request) -> Asked:
    """What a request of JSON-RPC asks."""
    verb = BY_RPC.get(request.method)
    if verb is None:
        raise Refused(Fault.METHOD_NOT_FOUND, f"no such method: {strict.quoted(request.method)}")
    return Asked(verb, _params({} if request.params is UNSET else request.params, verb))


def rest_asked(method: str, path: str, query: bytes, body: bytes) -> Asked:
    """What a request of HTTP+JSON asks; Refused where it asks nothing."""
    verb, tenant, task_id = _route(method, path)
    told = _told(verb, query, body)
    for name, found in (("tenant", tenant), ("id", task_id)):
        if found and told.setdefault(name, found) != found:
            raise Refused(Fault.INVALID_PARAMS, f"`{name}` is another one in the path")
    return Asked(verb, _params(told, verb, typed=bool(body)))


def _told(verb: Verb, query: bytes, body: bytes) -> dict[str, Any]:
    if verb.value.http == "POST" and body.strip():
        try:
            value = strict.parse(body)
        except strict.Unreadable as error:
            raise Refused(Fault.PARSE_ERROR, str(error)) from None
        if not isinstance(value, dict):
            raise Refused(Fault.INVALID_REQUEST, "the body must be a JSON object")
        return value
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=32)
    except ValueError:
        raise Refused(Fault.INVALID_PARAMS, "the address has more parameters than any call") from None
    if len(dict(pairs)) != len(pairs):
        raise Refused(Fault.INVALID_PARAMS, "a parameter stands twice in the address")
    return dict(pairs)


def _params(value: Any, verb: Verb, *, typed: bool = True) -> Any:
    if verb is Verb.PUSH:
        return None
    try:
        return strict.understood(value, verb.value.takes, strict=typed)
    except strict.Unreadable as error:
        raise Refused(Fault.INVALID_PARAMS, str(error)) from None


_TASKS, _PUSH_CONFIGS = "tasks", "pushNotificationConfigs"
_PLAIN: Mapping[tuple[str, str], Verb] = {
    ("POST", "message:send"): Verb.SEND,
    ("POST", "message:stream"): Verb.STREAM,
    ("GET", _TASKS): Verb.LIST,
    ("GET", "extendedAgentCard"): Verb.CARD,
}
_OF_TASK: Mapping[tuple[str, str], Verb] = {
    ("POST", "cancel"): Verb.CANCEL,
    ("POST", "subscribe"): Verb.SUBSCRIBE,
    ("GET", "subscribe"): Verb.SUBSCRIBE,
}


def _route(method: str, path: str) -> tuple[Verb, str, str]:
    """The verb, the tenant and the task that a path names."""
    steps = [unquote(step) for step in path.strip("/").split("/")]
    for tenant, rest in (("", steps), (steps[0], steps[1:])):
        found = _found(method, rest)
        if found is not None:
            return found[0], tenant, found[1]
    raise Refused(Fault.METHOD_NOT_FOUND, "nothing is served at this address", http=404)


def _found(method: str, steps: list[str]) -> tuple[Verb, str] | None:
    if len(steps) == 1:
        verb = _PLAIN.get((method, steps[0]))
        return None if verb is None else (verb, "")
    if len(steps) in (3, 4) and steps[0] == _TASKS and steps[2] == _PUSH_CONFIGS:
        return Verb.PUSH, steps[1]
    if len(steps) != 2 or steps[0] != _TASKS:
        return None
    task_id, _, what = steps[1].rpartition(":")
    verb = _OF_TASK.get((method, what)) if task_id else None
    if verb is not None:
        return verb, task_id
    return (Verb.GET, steps[1]) if method == "GET" else None


def _written(value: Any) -> Any:
    """The protocol wants every member of a page written, and most of nothing else."""
    return _page(value) if isinstance(value, TaskPage) else value


def _page(page: TaskPage) -> dict[str, Any]:
    return {
        "tasks": page.tasks,
        "nextPageToken": page.next_page_token,
        "pageSize": page.page_size,
        "totalSize": page.total_size,
    }

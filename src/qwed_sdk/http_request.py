"""Requests, responses and retries, without any I/O.

An operation is a generator that yields requests and is sent their responses. The sync and the async client run the
same generators, so retries, waiting times and the meaning of an answer are the same in both.
"""

import json
import math
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from qwed.model import Decision, ErrorCode
from qwed.model.endpoints import Endpoint
from qwed.model.error_advice import client_advice
from qwed.model.strict_json import StrictJsonError, parse_strict_json
from qwed_sdk.errors import (
    QWEDArgumentError,
    QWEDConnectionError,
    QWEDError,
    QWEDProtocolError,
    QWEDRequestError,
    QWEDTimeoutError,
    error_class_of,
)

T = TypeVar("T")

MAX_RESPONSE_BYTES = 64 << 20
"""Largest response body that is read."""
FIRST_BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 5.0
MAX_WAIT_SECONDS = 86_400.0
"""Longest time of any timeout or wait; a day."""
_RETRIED_STATUSES = frozenset({502, 503, 504})
_DECISION_TYPES: dict[str, Any] = {
    "action_id": str | None,
    "approval_id": str | None,
    "verified_query": str | None,
    "attestation": str | dict | None,
    "corrected": dict | None,
    "verification": dict | None,
    "error": dict | None,
}
_ERROR_TEXTS = ("code", "message", "suggestion")
# From the standard library: msgspec writes NaN as null, so a value would be verified that the tool does not receive.
_encode_json = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """HTTP request to the server."""

    method: str
    path: str
    body: bytes | None = None
    query: Mapping[str, str] | None = None
    agent_token: str | None = field(default=None, repr=False)
    idempotency_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers."""
    repeatable: bool = False
    """True if the request may be sent twice; otherwise only a request that never left is sent again."""
    public: bool = False
    """True if the request needs no credential; none is sent, because the server may not be ours."""
    patience: float = 0.0
    """Seconds the server may take in addition to the client's timeout, if the request asks it to wait."""
    largest: int = MAX_RESPONSE_BYTES


class Response(NamedTuple):
    """HTTP response, read completely."""

    status: int
    retry_after: str | None
    content: bytes
    media: str = ""
    """Media type of the content, such as `application/json`."""


class Attempt(NamedTuple):
    """Instruction to send the request and wait at most `seconds` for the complete response."""

    request: Request
    seconds: float


class Pause(NamedTuple):
    """Instruction to wait."""

    seconds: float


class StepLock(Protocol):
    """Lock of a conversation, whose steps must reach the server in order."""

    def acquire(self, seconds: float) -> bool:
        """Acquire the lock, blocking; return False after a timeout."""

    def release(self) -> None:
        """Release the lock."""

    async def acquire_async(self, seconds: float) -> bool:
        """Acquire the lock without blocking the event loop; return False after a timeout."""

    def release_async(self) -> None:
        """Release the lock that `acquire_async` acquired."""


class Acquire(NamedTuple):
    """Instruction to acquire the lock; it is released when the operation ends, or earlier with Release."""

    lock: StepLock


class Release(NamedTuple):
    """Instruction to release the lock."""

    lock: StepLock


class RetryPolicy(NamedTuple):
    """Timeout and number of retries of a client."""

    timeout: float
    retries: int

    def checked(self) -> "RetryPolicy":
        """Return the policy with valid values; raise QWEDArgumentError if one is not."""
        whole = isinstance(self.retries, int) and not isinstance(self.retries, bool)
        if not whole or self.retries < 0:
            raise QWEDArgumentError(f"`retries` must be a whole number from 0, not `{self.retries}`")
        timeout = parse_seconds(self.timeout, "timeout")
        if not timeout:
            raise QWEDArgumentError("`timeout` is 0: give a positive number of seconds")
        return RetryPolicy(timeout, self.retries)


def parse_seconds(value: float, name: str) -> float:
    """Return a number of seconds, at most a day; raise QWEDArgumentError if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value < 0:
        raise QWEDArgumentError(f"`{name}` must be a number of seconds from 0, not `{value}`")
    return float(min(value, MAX_WAIT_SECONDS))


Operation = Generator[Request | Pause | Acquire | Release, Any, T]
"""Generator of one API operation: yields requests and instructions, returns the result."""
Step = Attempt | Pause | Acquire | Release
AttemptResult = Response | QWEDError
"""Result of an Attempt. An error is a value, so that the operation decides what it means."""


def run_with_retries(operation: Operation[T], policy: RetryPolicy) -> Generator[Step, Any, T]:
    """Run an operation, repeating its requests by the policy; raise a final failure inside the operation."""
    try:
        instruction = next(operation)
        while True:
            outcome = (
                (yield from _send_with_retries(instruction, policy))
                if isinstance(instruction, Request)
                else (yield instruction)
            )
            instruction = operation.throw(outcome) if isinstance(outcome, QWEDError) else operation.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        operation.close()


def _send_with_retries(request: Request, policy: RetryPolicy) -> Generator[Step, Any, AttemptResult]:
    """Send the request until an attempt is final; return its result. All attempts share the client's timeout."""
    ends = time.monotonic() + policy.timeout + request.patience
    outcome: AttemptResult = QWEDTimeoutError("no time was left to send the request", sent=False)
    for attempt in range(policy.retries + 1):
        outcome = yield Attempt(request, max(ends - time.monotonic(), 0.0))
        pause = _backoff_after(outcome, request, attempt)
        if pause is None or attempt == policy.retries or time.monotonic() + pause >= ends:
            break
        yield Pause(pause)
    return outcome


def _backoff_after(outcome: AttemptResult, request: Request, attempt: int) -> float | None:
    """Return the seconds until the next attempt, or None if a retry is not safe or would not help."""
    longest = min(FIRST_BACKOFF_SECONDS * 2.0 ** min(attempt, 10), MAX_BACKOFF_SECONDS)
    backoff: float = longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
    if isinstance(outcome, QWEDConnectionError):
        return backoff if request.repeatable or not outcome.sent else None
    if isinstance(outcome, QWEDError) or not request.repeatable:
        return None
    if attempt > 0 and outcome.status == ErrorCode.KEY_REUSED.http and request.idempotency_key is not None:
        # Our own first attempt may still be on its way through the server.
        return backoff
    if outcome.status not in _RETRIED_STATUSES:
        return None
    requested = _retry_after_seconds(outcome.retry_after)
    if requested is None:
        return backoff
    return max(requested, backoff) if requested <= MAX_BACKOFF_SECONDS else None


def _retry_after_seconds(header: str | None) -> float | None:
    digits = header or ""
    return float(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def request_to(
    endpoint: Endpoint,
    *ids: str,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    repeatable: bool = False,
    keep_nulls: bool = False,
    **how: Any,
) -> Request:
    """Return the request to an endpoint; `ids` are the parameters of its path, and without `keep_nulls` a member of the
    body that is None is left out."""
    parts = iter(ids)
    return Request(
        method=endpoint.method,
        path="".join(path_of(next(parts)) if part[0] == "{" else f"/{part}" for part in endpoint.path[1:].split("/")),
        body=None if body is None else encode_body(body if keep_nulls else without_none(**body)),
        query=None if query is None else query_params(query),
        repeatable=repeatable or endpoint.method == "GET",
        **how,
    )


def call(
    kind: Callable[[dict[str, Any]], T], endpoint: Endpoint, *ids: str, must_have: str | None = None, **how: Any
) -> Operation[T]:
    """Call an endpoint and return its JSON object as `kind`; raise a typed error for anything that is neither an object
    nor a decision.

    `must_have` names a text member that the answer must have.
    """
    response = yield request_to(endpoint, *ids, **how)
    members = _read_response(response)
    if must_have is not None and (not isinstance(members.get(must_have), str) or not members[must_have]):
        raise QWEDProtocolError(f"the answer has no `{must_have}`: is this a qwed server?", status=response.status)
    return kind(members)


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return the body as JSON bytes; raise QWEDRequestError for a value that is not JSON."""
    try:
        text = _encode_json(body).encode()
        _require_text_keys(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise QWEDRequestError(f"the request is not valid JSON: {error}") from None
    return text


def _require_text_keys(value: Any) -> None:
    # The encoder writes the key 1 as "1", so a value would be verified that the tool does not receive.
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, str):
                raise TypeError(f"an object key is a {type(key).__name__}, but JSON keys are text")
            _require_text_keys(member)
    elif isinstance(value, list | tuple):
        for member in value:
            _require_text_keys(member)


def query_params(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters that have a value, as text."""
    return {name: require_encodable(_query_text(value), name) for name, value in values.items() if value is not None}


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def require_encodable(text: str, name: str) -> str:
    """Return the text; raise QWEDArgumentError if it cannot be encoded in a URL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QWEDArgumentError(f"`{name}` contains an unpaired surrogate") from None
    return text


def _read_response(response: Response) -> dict[str, Any]:
    members = json_object_of(response)
    decision = members.get("decision")
    if decision is not None:
        return _check_decision(members, decision, response)
    if response.status in (200, 201, 202):
        return members
    raise error_of(response)


def json_object_of(response: Response) -> dict[str, Any]:
    """Return the JSON object of a response with any status."""
    try:
        members = parse_strict_json(response.content, "the answer")
    except StrictJsonError:
        # Duplicate members are ambiguous: readers differ in which one they take.
        members = None
    if isinstance(members, dict):
        return members
    if response.status >= 500:
        raise error_class_of(response.status)(
            f"the server answered with status {response.status}", status=response.status
        )
    raise QWEDProtocolError(
        f"status {response.status} without a JSON object: is this a qwed server?", status=response.status
    )


def _check_decision(members: dict[str, Any], decision: Any, response: Response) -> dict[str, Any]:
    """Return a decision; raise QWEDProtocolError if it is malformed, or permits under a status that refuses."""
    is_decision = isinstance(decision, str) and decision in Decision.__members__
    if not is_decision or (response.status >= 300 and Decision(decision).permits):
        raise QWEDProtocolError(
            f"invalid decision `{str(decision)[:40]}` with status {response.status}",
            status=response.status,
        )
    field_name = _invalid_field(members)
    if field_name is not None:
        raise QWEDProtocolError(f"invalid decision: `{field_name}` has the wrong type", status=response.status)
    return members


def _invalid_field(members: Mapping[str, Any]) -> str | None:
    """Return the first member of a decision whose type is wrong, or None (spec 4.2)."""
    wrong = (name for name, kinds in _DECISION_TYPES.items() if not isinstance(members.get(name), kinds))
    error = members.get("error") or {}
    return next(wrong, None) or next(
        (name for name in _ERROR_TEXTS if not isinstance(error.get(name), str | None)), None
    )


def error_of(response: Response) -> Exception:
    """Return the typed error that a response describes."""
    error = json_object_of(response).get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return QWEDProtocolError(
            f"status {response.status} without an error object: is this a qwed server?", status=response.status
        )
    details, suggestion = error.get("details"), error.get("suggestion")
    return error_class_of(response.status)(
        str(error.get("message", "")),
        code=error["code"],
        status=response.status,
        details=details if isinstance(details, dict) else None,
        suggestion=client_advice(error["code"], suggestion if isinstance(suggestion, str) else None),
        retry_after=_retry_after_seconds(response.retry_after),
    )


def path_of(*parts: str) -> str:
    """Return a URL path with each part quoted, so that an id cannot lead to another path."""
    for part in parts:
        if not isinstance(part, str):
            raise QWEDArgumentError(f"an id must be text, not {type(part).__name__}")
        if require_encodable(part, "id") in ("", ".", ".."):
            raise QWEDArgumentError(f"`{part}` is not a valid id")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def without_none(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}

"""What a verb of the client is: a generator that says which request comes next, and is sent its response.

Nothing here opens a connection. The two clients drive the same generators, one blocking and one awaiting, so whatever
is decided here (what is sent again, how long is waited, what an answer means) is the same in both.
"""

import json
import math
import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from qwed.words import Decision, ErrorCode
from qwed.words.advice import spoken
from qwed.words.strict import NotStrict, read_json
from qwed_sdk.errors import (
    QWEDArgumentError,
    QWEDConnectionError,
    QWEDError,
    QWEDProtocolError,
    QWEDRequestError,
    QWEDTimeoutError,
    error_class,
)
from qwed_sdk.shape import misshapen

T = TypeVar("T")

LARGEST = 64 << 20
"""Bytes of an answer that is read whole."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LONGEST = 86_400.0
"""Seconds anybody waits for anything."""
_TRIED_AGAIN = frozenset({502, 503, 504})
# The one of the standard library: msgspec writes NaN as null, and what was verified would not be what is done.
_text_of = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to the server."""

    method: str
    path: str
    body: bytes | None = None
    query: Mapping[str, str] | None = None
    agent_token: str | None = field(default=None, repr=False)
    idempotency_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """What is told beside that."""
    repeatable: bool = False
    """Whether asking twice is the same as asking once; otherwise only what was never sent is sent again."""
    public: bool = False
    """Whether anybody may ask: then no credential is shown, for it may be somebody else's server."""
    patience: float = 0.0
    """Seconds the server may take on top of the client's timeout, where it is asked to wait."""
    largest: int = LARGEST


class Response(NamedTuple):
    """What came back."""

    status: int
    retry_after: str | None
    content: bytes
    media: str = ""
    """What the content is, such as `application/json`."""


class Attempt(NamedTuple):
    """Send the request now; wait so many seconds for all of the answer."""

    request: Request
    seconds: float


class Pause(NamedTuple):
    """Wait before the next step."""

    seconds: float


class Turns(Protocol):
    """What only one call may hold at a time: a conversation, whose steps must arrive in order."""

    def hold(self, seconds: float) -> bool:
        """Take the turn, blocking; whether it came in time."""

    def free(self) -> None:
        """Give it back."""

    async def hold_awaiting(self, seconds: float) -> bool:
        """Take the turn, awaiting; whether it came in time."""

    def free_awaiting(self) -> None:
        """Give it back."""


class Hold(NamedTuple):
    """Take the turn; it is given back when the call ends, or with Free before that."""

    turns: Turns


class Free(NamedTuple):
    """Give the turn back."""

    turns: Turns


class Policy(NamedTuple):
    """How patient a client is."""

    timeout: float
    retries: int

    def checked(self) -> "Policy":
        """The same, where it is one."""
        whole = isinstance(self.retries, int) and not isinstance(self.retries, bool)
        if not whole or self.retries < 0:
            raise QWEDArgumentError(f"`retries` is a whole number from 0, not `{self.retries}`")
        timeout = seconds(self.timeout, "timeout")
        if not timeout:
            raise QWEDArgumentError("with a `timeout` of 0 nothing is asked: give some seconds")
        return Policy(timeout, self.retries)


def seconds(value: float, name: str) -> float:
    """A time that somebody can wait; a day where it is more."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value < 0:
        raise QWEDArgumentError(f"`{name}` is a number of seconds from 0, not `{value}`")
    return float(min(value, LONGEST))


Call = Generator[Request | Pause | Hold | Free, Any, T]
"""A verb: yields what it needs, returns what came of it."""
Step = Attempt | Pause | Hold | Free
Outcome = Response | QWEDError
"""What an Attempt comes to: an error is handed back as a value, so that the verb decides what it means."""


def steps_of(call: Call[T], policy: Policy) -> Generator[Step, Any, T]:
    """The call with each request made into attempts; what failed for good is raised inside it."""
    try:
        wanted = next(call)
        while True:
            outcome = (yield from _attempts(wanted, policy)) if isinstance(wanted, Request) else (yield wanted)
            wanted = call.throw(outcome) if isinstance(outcome, QWEDError) else call.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        call.close()


def _attempts(request: Request, policy: Policy) -> Generator[Step, Any, Outcome]:
    """What the last attempt came to, all of them within the client's timeout."""
    ends = time.monotonic() + policy.timeout + request.patience
    outcome: Outcome = QWEDTimeoutError("no time is left to ask", sent=False)
    for attempt in range(policy.retries + 1):
        outcome = yield Attempt(request, max(ends - time.monotonic(), 0.0))
        pause = _pause_after(outcome, request, attempt)
        if pause is None or attempt == policy.retries or time.monotonic() + pause >= ends:
            break
        yield Pause(pause)
    return outcome


def _pause_after(outcome: Outcome, request: Request, attempt: int) -> float | None:
    """How long to wait before asking again; None where asking again is not safe, or would not help."""
    backoff: float = min(FIRST_PAUSE * 2.0 ** min(attempt, 10), LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
    if isinstance(outcome, QWEDConnectionError):
        return backoff if request.repeatable or not outcome.sent else None
    if isinstance(outcome, QWEDError) or not request.repeatable:
        return None
    if attempt > 0 and outcome.status == ErrorCode.KEY_REUSED.http and request.idempotency_key is not None:
        # Our own first attempt may still be on its way through the server.
        return backoff
    if outcome.status not in _TRIED_AGAIN:
        return None
    named = _seconds(outcome.retry_after)
    if named is None:
        return backoff
    return max(named, backoff) if named <= LONGEST_PAUSE else None


def _seconds(header: str | None) -> float | None:
    digits = header or ""
    return float(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def ask(
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    query: Mapping[str, Any] | None = None,
    repeatable: bool | None = None,
    must_have: str | None = None,
    **how: Any,
) -> Call[dict[str, Any]]:
    """The JSON object the server answers with; a typed error for everything that is neither that nor a decision.

    `must_have` names a text without which it is no answer.
    """
    response = yield Request(
        method=method,
        path=path,
        body=None if body is None else encoded(body),
        query=None if query is None else in_query(query),
        repeatable=method == "GET" if repeatable is None else repeatable,
        **how,
    )
    members = _read(response)
    if must_have is not None and (not isinstance(members.get(must_have), str) or not members[must_have]):
        raise QWEDProtocolError(f"an answer without `{must_have}`: is this a qwed server?", status=response.status)
    return members


def encoded(body: Mapping[str, Any]) -> bytes:
    """The body as it is sent; what is no JSON is refused here, before anybody decides on something else."""
    try:
        text = _text_of(body).encode()
        _require_named(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise QWEDRequestError(f"the request is no JSON: {error}") from None
    return text


def _require_named(value: Any) -> None:
    # The encoder writes the key 1 as "1", and what was verified would not be what is done.
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise TypeError(f"an object key is a {type(key).__name__}, and keys of JSON are text")
            _require_named(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _require_named(each)


def in_query(values: Mapping[str, Any]) -> dict[str, str]:
    """Those that have a value, as text."""
    return {name: sendable(_text(value), name) for name, value in values.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def sendable(text: str, name: str) -> str:
    """The text, where it can be told in an address."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QWEDArgumentError(f"`{name}` holds half of a character") from None
    return text


def _read(response: Response) -> dict[str, Any]:
    members = object_in(response)
    decision = members.get("decision")
    if decision is not None:
        return _consistent(members, decision, response)
    if response.status in (200, 201, 202):
        return members
    raise problem_of(response)


def object_in(response: Response) -> dict[str, Any]:
    """The JSON object of an answer, whatever its status."""
    try:
        members = read_json(response.content, "the answer")
    except NotStrict:
        # Of two members of one name one reader takes the first, another the last: neither is believed.
        members = None
    if isinstance(members, dict):
        return members
    if response.status >= 500:
        raise error_class(response.status)(f"the server answered with status {response.status}", status=response.status)
    raise QWEDProtocolError(
        f"status {response.status} without a JSON object: this is no answer of a qwed server", status=response.status
    )


def _consistent(members: dict[str, Any], decision: Any, response: Response) -> dict[str, Any]:
    """A decision as it came; one that permits under a status that refuses is believed by nobody."""
    known = isinstance(decision, str) and decision in Decision.__members__
    if not known or (response.status >= 300 and Decision(decision).permits):
        raise QWEDProtocolError(
            f"the decision `{str(decision)[:40]}` under status {response.status} is none of the protocol",
            status=response.status,
        )
    wrong = misshapen(members)
    if wrong is not None:
        raise QWEDProtocolError(
            f"a decision that is none of the protocol: `{wrong}` is of another kind", status=response.status
        )
    return members


def problem_of(response: Response) -> Exception:
    """The typed error that an answer is."""
    error = object_in(response).get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return QWEDProtocolError(
            f"status {response.status} without an error of the protocol: is this a qwed server?", status=response.status
        )
    details, suggestion = error.get("details"), error.get("suggestion")
    return error_class(response.status)(
        str(error.get("message", "")),
        code=error["code"],
        status=response.status,
        details=details if isinstance(details, dict) else None,
        suggestion=spoken(error["code"], suggestion if isinstance(suggestion, str) else None),
        retry_after=_seconds(response.retry_after),
    )


def at(*parts: str) -> str:
    """A path, each part quoted so that an id never leads elsewhere."""
    for part in parts:
        if not isinstance(part, str):
            raise QWEDArgumentError(f"an id is text, not {type(part).__name__}")
        if sendable(part, "id") in ("", ".", ".."):
            raise QWEDArgumentError(f"`{part}` is no id")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}

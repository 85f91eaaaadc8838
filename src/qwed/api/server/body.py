"""Request bodies: read within limits of size, time and memory, then parsed as JSON."""

import json
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from qwed.api.server.admission import AdmissionSlot, ClientTimeoutError
from qwed.kernel.answer import Problem, problem
from qwed.kernel.request import quoted
from qwed.model import ErrorCode
from qwed.model.canonical import MAX_DEPTH
from qwed.model.json_value import TEXT, count_strings, depth_of, has_lone_surrogates, has_more_values_than
from qwed.model.strict_json import unique_members

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]

MAX_VALUES = 10_000
"""Objects, lists and members in one body."""


_LARGE = 1 << 18
_FILE = re.compile(rb'"content_base64"\s{0,8}:\s{0,8}"')
_FILE_PLACEHOLDER = secrets.token_hex(16)
"""Random for each process, so that no client can send it."""


_LONE_SURROGATE = "the JSON contains half of a surrogate pair"


class RequestRejectedError(Exception):
    """The request does not reach its handler, or stops there; `Endpoint` sends the problem."""

    def __init__(self, rejection: Problem) -> None:
        super().__init__(rejection.message)
        self.problem = rejection


class ClientDisconnectedError(Exception):
    """The client disconnected before its body was complete."""


async def read_body(scope: Scope, receive: Receive, max_bytes: int, slot: AdmissionSlot) -> bytes:
    """Read the body; raise RequestRejectedError as soon as it is too large, too slow or over capacity."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            _check_capacity(int(value), max_bytes, slot)
    try:
        return await slot.with_client_timeout(_receive_body(receive, max_bytes, slot))
    except ClientTimeoutError:
        raise _timeout_error() from None


def accept_body(body: bytes, max_bytes: int, slot: AdmissionSlot) -> bytes:
    """Reserve capacity for a complete body; raise RequestRejectedError if it is too large or over capacity."""
    if len(body) > max_bytes:
        raise too_large_error(max_bytes)
    if not slot.grow(len(body)):
        raise overloaded_error()
    return body


def _check_capacity(size: int, max_bytes: int, slot: AdmissionSlot) -> None:
    if size > max_bytes:
        raise too_large_error(max_bytes)
    if not slot.can_hold(size):
        raise overloaded_error()


async def _receive_body(receive: Receive, max_bytes: int, slot: AdmissionSlot) -> bytes:
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        chunk: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size > max_bytes:
            raise too_large_error(max_bytes)
        if not slot.grow(len(chunk)):
            raise overloaded_error()
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def overloaded_error() -> RequestRejectedError:
    return RequestRejectedError(problem(ErrorCode.OVERLOADED, retry_after=1))


def _timeout_error() -> RequestRejectedError:
    return RequestRejectedError(problem(ErrorCode.OVERLOADED, "the body did not arrive in time", retry_after=1))


def too_large_error(max_bytes: int) -> RequestRejectedError:
    """Return the error for a body of more than `max_bytes` bytes."""
    return RequestRejectedError(problem(ErrorCode.TOO_LARGE, f"the body is larger than {max_bytes} bytes"))


def parse_json(body: bytes, max_bytes: int | None = None) -> Any:
    """Parse a JSON body (UTF-8, no duplicate keys, bounded depth and size); raise RequestRejectedError if invalid."""
    if not body.strip():
        raise malformed_error("the body is empty: send a JSON object")
    body, written = _cut_file(body)
    if max_bytes is not None and len(body) > max_bytes:
        raise too_large_error(max_bytes)
    if has_more_values_than(body, MAX_VALUES):
        raise RequestRejectedError(problem(ErrorCode.TOO_LARGE, f"the body contains more than {MAX_VALUES} values"))
    value = NEEDS_FULL_PARSE if written is not None else parse_fast(body)
    if value is NEEDS_FULL_PARSE:
        value = _parse_strict(body, written)
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise malformed_error(f"the JSON is nested deeper than {MAX_DEPTH}")
    if b"\\u" in body and has_lone_surrogates(value):
        raise malformed_error(_LONE_SURROGATE)
    return value


NEEDS_FULL_PARSE: Any = object()
_decode_fast = msgspec.json.Decoder().decode


def parse_fast(body: bytes) -> Any:
    """Parse a valid body in a third of the time, or return NEEDS_FULL_PARSE.

    Without escapes, two quotes make one string. If a key is repeated, the parsed value has fewer strings than the body.
    """
    if b"\\" in body:
        return NEEDS_FULL_PARSE
    try:
        value = _decode_fast(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NEEDS_FULL_PARSE
    return value if body.count(b'"') == 2 * count_strings(value) else NEEDS_FULL_PARSE


def _parse_strict(body: bytes, written: bytes | None) -> Any:
    try:
        file = None if written is None else _decode(written.decode())
        if file is not None:
            file.encode()
        return _decode(body.decode()) if file is None else _decode_with_file(body.decode(), file)
    except UnicodeDecodeError:
        raise malformed_error("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise malformed_error(_LONE_SURROGATE) from None
    except json.JSONDecodeError as error:
        raise malformed_error(f"the body is not JSON: {error.msg.lower()} at position {error.pos}") from None
    except RecursionError:
        raise malformed_error(f"the JSON is nested deeper than {MAX_DEPTH}") from None
    except ValueError:
        raise malformed_error("the JSON contains a number with too many digits") from None


def _cut_file(body: bytes) -> tuple[bytes, bytes | None]:
    """Replace the uploaded file in the body by a placeholder; return the body and the file literal."""
    name = _FILE.search(body) if len(body) > _LARGE else None
    text = None if name is None else _string_literal_at(body, name.end() - 1)
    if name is None or text is None:
        return body, None
    start, end = name.end() - 1, name.end() - 1 + len(text)
    return body[:start] + b'"%b"' % _FILE_PLACEHOLDER.encode() + body[end:], text


def _string_literal_at(body: bytes, start: int) -> bytes | None:
    """Return the JSON string literal that begins at `start`, with its quotes."""
    end = body.find(b'"', start + 1) + 1
    if body.find(b"\\", start, end) < 0:
        return body[start:end] or None
    text = TEXT.match(body, start)
    return None if text is None else text[0]


def _decode_with_file(text: str, file: str) -> Any:
    def restore_file(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return _members([(name, file if value == _FILE_PLACEHOLDER else value) for name, value in pairs])

    return json.JSONDecoder(object_pairs_hook=restore_file).decode(text)


_members = unique_members(lambda name: malformed_error(f"duplicate key {quoted(name)} in one object"))
_decode = json.JSONDecoder(object_pairs_hook=_members).decode


def malformed_error(message: str) -> RequestRejectedError:
    return RequestRejectedError(problem(ErrorCode.MALFORMED, message))

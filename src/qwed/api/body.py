"""The body of a request: read within limits of size, time and memory, and then as JSON."""

import json
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from qwed.api.pressure import Hold, Late
from qwed.kernel.answer import Problem, problem
from qwed.kernel.request import quoted
from qwed.words import ErrorCode
from qwed.words.canonical import MAX_DEPTH
from qwed.words.json_value import TEXT, depth_of, has_half_surrogates, holds_more, texts_in

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]

MOST_VALUES = 10_000
"""Objects, lists and members of one body."""


_LARGE = 1 << 18
_FILE = re.compile(rb'"content_base64"\s{0,8}:\s{0,8}"')
_MARK = secrets.token_hex(16)
"""Made anew by each process, so that nobody can send it."""


_HALF = "the JSON holds half of a surrogate pair"


class Refused(Exception):
    """A request that does not reach its handler, or stops there; `Endpoint` answers it."""

    def __init__(self, found: Problem) -> None:
        super().__init__(found.message)
        self.problem = found


class Gone(Exception):
    """The client left before its body was whole; nobody is left to answer."""


async def read_body(scope: Scope, receive: Receive, most: int, hold: Hold) -> bytes:
    """The body, or Refused as soon as it is known to be too large, too slow or one too many."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            _require_room(int(value), most, hold)
    try:
        return await hold.patiently(_read(receive, most, hold))
    except Late:
        raise _too_slow() from None


def take_body(body: bytes, most: int, hold: Hold) -> bytes:
    """A body that came whole, or Refused where it is too large or one too many."""
    if len(body) > most:
        raise too_large(most)
    if not hold.grow(len(body)):
        raise overloaded()
    return body


def _require_room(size: int, most: int, hold: Hold) -> None:
    if size > most:
        raise too_large(most)
    if not hold.has_room(size):
        raise overloaded()


async def _read(receive: Receive, most: int, hold: Hold) -> bytes:
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        chunk: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size > most:
            raise too_large(most)
        if not hold.grow(len(chunk)):
            raise overloaded()
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def overloaded() -> Refused:
    return Refused(problem(ErrorCode.OVERLOADED, retry_after=1))


def _too_slow() -> Refused:
    return Refused(problem(ErrorCode.OVERLOADED, "the body did not arrive in time", retry_after=1))


def too_large(most: int) -> Refused:
    """The refusal of a body of more than `most` bytes."""
    return Refused(problem(ErrorCode.TOO_LARGE, f"the body is larger than {most} bytes"))


def parse_json(body: bytes, most: int | None = None) -> Any:
    """The JSON value in `body`: UTF-8, no duplicate keys, neither too deep nor too much; Refused says what is wrong."""
    if not body.strip():
        raise malformed("the body is empty: send a JSON object")
    body, written = _cut_file(body)
    if most is not None and len(body) > most:
        raise too_large(most)
    if holds_more(body, MOST_VALUES):
        raise Refused(problem(ErrorCode.TOO_LARGE, f"the body holds more than {MOST_VALUES} values"))
    value = _UNREAD if written is not None else _read_plain(body)
    if value is _UNREAD:
        value = _read_json(body, written)
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise malformed(f"the JSON is nested deeper than {MAX_DEPTH}")
    if b"\\u" in body and has_half_surrogates(value):
        raise malformed(_HALF)
    return value


_UNREAD: Any = object()
_plain = msgspec.json.Decoder().decode


def _read_plain(body: bytes) -> Any:
    """The value of a body in which nothing is wrong, in a third of the time; of any other it says nothing.

    Without escapes two quotes are one text. Of a key that stands twice in one object a text is missing in the value.
    """
    if b"\\" in body:
        return _UNREAD
    try:
        value = _plain(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _UNREAD
    return value if body.count(b'"') == 2 * texts_in(value) else _UNREAD


def _read_json(body: bytes, written: bytes | None) -> Any:
    try:
        file = None if written is None else _decode(written.decode())
        if file is not None:
            file.encode()
        return _decode(body.decode()) if file is None else _decode_around(body.decode(), file)
    except UnicodeDecodeError:
        raise malformed("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise malformed(_HALF) from None
    except json.JSONDecodeError as error:
        raise malformed(f"the body is not JSON: {error.msg.lower()} at position {error.pos}") from None
    except RecursionError:
        raise malformed(f"the JSON is nested deeper than {MAX_DEPTH}") from None
    except ValueError:
        raise malformed("the JSON holds a number with too many digits") from None


def _cut_file(body: bytes) -> tuple[bytes, bytes | None]:
    """A body whose file is a mark instead, and the file as it is written: it is large, and the rest must not be."""
    name = _FILE.search(body) if len(body) > _LARGE else None
    text = None if name is None else _text_at(body, name.end() - 1)
    if name is None or text is None:
        return body, None
    start, end = name.end() - 1, name.end() - 1 + len(text)
    return body[:start] + b'"%b"' % _MARK.encode() + body[end:], text


def _text_at(body: bytes, start: int) -> bytes | None:
    """The JSON string that begins there, quotes included."""
    end = body.find(b'"', start + 1) + 1
    if body.find(b"\\", start, end) < 0:
        return body[start:end] or None
    text = TEXT.match(body, start)
    return None if text is None else text[0]


def _decode_around(text: str, file: str) -> Any:
    def whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return _unique([(name, file if value == _MARK else value) for name, value in pairs])

    return json.JSONDecoder(object_pairs_hook=whole).decode(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = Counter(name for name, _value in pairs).most_common(1)[0][0]
        raise malformed(f"the key {quoted(twice)} stands twice in one object")
    return members


_decode = json.JSONDecoder(object_pairs_hook=_unique).decode


def malformed(message: str) -> Refused:
    return Refused(problem(ErrorCode.MALFORMED, message))

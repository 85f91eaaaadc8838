"""Content as payloads, each of which is asked about."""

import ast
import warnings
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import msgspec
from msgspec import UNSET

from qwed_a2a import payloads
from qwed_a2a.message import PayloadType
from qwed_a2a.payloads import Contents, Unread, read_parts
from qwed_a2a.payloads.budget import MAX_PARSED, MAX_PARTS
from qwed_a2a.payloads.parts import Payload
from qwed_a2a.proxy.contents import Content
from qwed_a2a.proxy.terms import Part

_encode = msgspec.json.Encoder(order="sorted").encode
_AS_IT_IS = frozenset({PayloadType.GENERAL, PayloadType.DATA_QUERY})


def found_in_all(contents: Iterable[Content]) -> list[Payload] | Unread:
    """What is in all of them, in their order."""
    found: list[Payload] = []
    for content in contents:
        read = found_in(content)
        if isinstance(read, Unread):
            return read
        found += read.payloads
    return found


def found_in(content: Content) -> Contents | Unread:
    """What is in it, in its order; where one text may go on in the next part, also what they are together."""
    parts = content.parts if len(content.parts) <= MAX_PARTS else tuple(_joined(content.parts, "", _is_plain))
    said = [_neutral(part) for part in parts] or [payloads.DataPart({**content.beside, **content.metadata})]
    apart = read_parts(said, _beside(content))
    if len(_joined(parts, "", _is_text)) == len(parts):
        return apart
    # Some readers show texts that follow one another as one, and some each on a line of its own.
    whole, lines = (read_parts([_neutral(part) for part in _joined(parts, each, _is_text)]) for each in ("", "\n"))
    return _all_of(apart, whole, lines)


def _all_of(apart: Contents | Unread, whole: Contents | Unread, lines: Contents | Unread) -> Contents | Unread:
    """What is there when the parts are read apart, and before it what is only there when they are read together."""
    if isinstance(apart, Unread) or isinstance(whole, Unread) or isinstance(lines, Unread):
        return next(each for each in (apart, whole, lines) if isinstance(each, Unread))
    runs = {_without_lines(each) for each in whole.payloads}
    torn = [each for each in lines.payloads if _without_lines(each) in runs and not _is_python(each)]
    found = dict.fromkeys(_key(each) for each in apart.payloads)
    more: list[Payload] = []
    for each in (*whole.payloads, *(each for each in lines.payloads if each not in torn)):
        if each.kind not in _AS_IT_IS and _key(each) not in found:
            found[_key(each)] = None
            more.append(each)
    return apart._replace(payloads=(*more, *apart.payloads))


def _key(payload: Payload) -> bytes:
    return _encode(payload)


def _without_lines(payload: Payload) -> str | None:
    """A program, wherever its lines end: what comes in pieces is torn where they are joined with more than nothing."""
    code = payload.payload.get("code") if payload.kind is PayloadType.CODE_EXECUTION else None
    return code.replace("\n", "") if isinstance(code, str) else None


def _is_python(payload: Payload) -> bool:
    """Whether it could run as it stands."""
    code = payload.payload.get("code")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return not isinstance(code, str) or len(code) > MAX_PARSED or bool(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False


def _beside(content: Content) -> dict[str, Any]:
    """The metadata, and under a name that it does not use whatever else is said."""
    name = "beside"
    while name in content.metadata:
        name += "_"
    called = sorted({each for part in content.parts for each in (part.filename, part.media_type) if each})
    said = [each for each in (content.beside, called) if each]
    return {**content.metadata, **({name: said} if said else {})}


def _joined(parts: Iterable[Part], between: str, may_be: Callable[[Part], bool]) -> list[Part]:
    """The parts, with such texts that follow one another as one."""
    together: list[Part] = []
    for joinable, run in groupby(parts, may_be):
        texts = list(run)
        together += [Part(text=between.join(str(part.text) for part in texts))] if joinable else texts
    return together


def _is_text(part: Part) -> bool:
    return isinstance(part.text, str)


def _is_plain(part: Part) -> bool:
    """Whether it is text and nothing else: an agent that streams its words has thousands of them."""
    return _is_text(part) and not part.metadata and not part.filename and part.media_type in _PLAIN


_PLAIN = ("", "text", "text/plain")


def _neutral(part: Part) -> payloads.Part:
    metadata = part.metadata or {}
    if isinstance(part.text, str):
        return payloads.TextPart(part.text, part.media_type, part.filename, metadata)
    if part.data is not UNSET:
        return payloads.DataPart(part.data, metadata)
    return payloads.FilePart(part.raw or None, part.url or "", part.filename, part.media_type, metadata)

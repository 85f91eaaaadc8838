"""Extraction of payloads from message content."""

import ast
import warnings
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import msgspec
from msgspec import UNSET

from qwed_a2a import parsing
from qwed_a2a.message import PayloadType
from qwed_a2a.parsing import Contents, UnparsableMessage, read_parts
from qwed_a2a.parsing.parse_limits import MAX_PARSED, MAX_PARTS
from qwed_a2a.parsing.payload_types import Payload
from qwed_a2a.proxy.content import MessageContent
from qwed_a2a.proxy.message_schema import A2APart

_encode = msgspec.json.Encoder(order="sorted").encode
_UNGUARDED = frozenset({PayloadType.GENERAL, PayloadType.DATA_QUERY})


def extract_all_payloads(contents: Iterable[MessageContent]) -> list[Payload] | UnparsableMessage:
    """Return the payloads of all contents in order, or the first that cannot be parsed."""
    payloads: list[Payload] = []
    for content in contents:
        parsed = extract_payloads(content)
        if isinstance(parsed, UnparsableMessage):
            return parsed
        payloads += parsed.payloads
    return payloads


def extract_payloads(content: MessageContent) -> Contents | UnparsableMessage:
    """Return the payloads of the content in order, and those of adjacent text parts read as one text."""
    parts = content.parts if len(content.parts) <= MAX_PARTS else tuple(_join_adjacent(content.parts, "", _is_plain))
    parsing_parts = [_to_parsing_part(part) for part in parts] or [
        parsing.DataPart({**content.extras, **content.metadata})
    ]
    apart = read_parts(parsing_parts, _metadata_with_extras(content))
    if len(_join_adjacent(parts, "", _is_text)) == len(parts):
        return apart
    # Some clients show adjacent texts as one, others on separate lines.
    whole, lines = (
        read_parts([_to_parsing_part(part) for part in _join_adjacent(parts, separator, _is_text)])
        for separator in ("", "\n")
    )
    return _merge_readings(apart, whole, lines)


def _merge_readings(
    apart: Contents | UnparsableMessage, whole: Contents | UnparsableMessage, lines: Contents | UnparsableMessage
) -> Contents | UnparsableMessage:
    """Return the payloads of the parts, preceded by those that exist only when the parts are joined."""
    if (
        isinstance(apart, UnparsableMessage)
        or isinstance(whole, UnparsableMessage)
        or isinstance(lines, UnparsableMessage)
    ):
        return next(payload for payload in (apart, whole, lines) if isinstance(payload, UnparsableMessage))
    joined_code = {_code_without_line_breaks(payload) for payload in whole.payloads}
    split_code = [
        payload
        for payload in lines.payloads
        if _code_without_line_breaks(payload) in joined_code and not _is_python(payload)
    ]
    seen = dict.fromkeys(_payload_key(payload) for payload in apart.payloads)
    additional: list[Payload] = []
    for payload in (*whole.payloads, *(payload for payload in lines.payloads if payload not in split_code)):
        if payload.kind not in _UNGUARDED and _payload_key(payload) not in seen:
            seen[_payload_key(payload)] = None
            additional.append(payload)
    return apart._replace(payloads=(*additional, *apart.payloads))


def _payload_key(payload: Payload) -> bytes:
    return _encode(payload)


def _code_without_line_breaks(payload: Payload) -> str | None:
    """Return a program without its line breaks, to recognise code that a join with line breaks has split."""
    code = payload.payload.get("code") if payload.kind is PayloadType.CODE_EXECUTION else None
    return code.replace("\n", "") if isinstance(code, str) else None


def _is_python(payload: Payload) -> bool:
    """Return True if it parses as Python."""
    code = payload.payload.get("code")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return not isinstance(code, str) or len(code) > MAX_PARSED or bool(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return False


def _metadata_with_extras(content: MessageContent) -> dict[str, Any]:
    """Return the metadata, with the extras under a name that it does not use."""
    name = "beside"
    while name in content.metadata:
        name += "_"
    names = sorted({value for part in content.parts for value in (part.filename, part.media_type) if value})
    extras = [value for value in (content.extras, names) if value]
    return {**content.metadata, **({name: extras} if extras else {})}


def _join_adjacent(parts: Iterable[A2APart], between: str, is_joinable: Callable[[A2APart], bool]) -> list[A2APart]:
    """Return the parts with adjacent parts that satisfy `may_be` joined."""
    joined: list[A2APart] = []
    for join, run in groupby(parts, is_joinable):
        texts = list(run)
        joined += [A2APart(text=between.join(str(part.text) for part in texts))] if join else texts
    return joined


def _is_text(part: A2APart) -> bool:
    return isinstance(part.text, str)


def _is_plain(part: A2APart) -> bool:
    """Return True if it is text and nothing else; an agent that streams words sends thousands of such parts."""
    return _is_text(part) and not part.metadata and not part.filename and part.media_type in _PLAIN


_PLAIN = ("", "text", "text/plain")


def _to_parsing_part(part: A2APart) -> parsing.Part:
    metadata = part.metadata or {}
    if isinstance(part.text, str):
        return parsing.TextPart(part.text, part.media_type, part.filename, metadata)
    if part.data is not UNSET:
        return parsing.DataPart(part.data, metadata)
    return parsing.FilePart(part.raw or None, part.url or "", part.filename, part.media_type, metadata)

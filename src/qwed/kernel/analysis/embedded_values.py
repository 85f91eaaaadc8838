"""Values inside texts: JSON in a string, at any depth, and base64 that decodes to text."""

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from qwed.guards.text_scan import MAX_DEPTH, Strings, strings_in

MAX_LEVELS = 4
"""Strings in strings that are read."""
MAX_JSON_LENGTH = 262_144
_MAX_PACKED_LENGTH = 65_536
_MAX_TEXTS = 10_000
_JSON = re.compile(r"\s*(?:\{|\[|\"\s*[\[{\\\"])")
_PACKED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_DATA_URI = re.compile(r"\Adata:[\w/+.;=-]{0,100};base64,")
_decode = msgspec.json.Decoder().decode


class Unread:
    """Values inside a text that is too long or nested too deeply to be read."""


UNREAD = Unread()


class NestedText(NamedTuple):
    """A string with its path; `complete` is False if the strings inside it are not all read."""

    path: str
    text: str
    complete: bool = True


def embedded_value(text: str) -> Any:
    """Return the JSON value that a text is, or the text that it decodes to; None for a plain text, UNREAD beyond the
    limits."""
    if _JSON.match(text):
        return _json(text)
    plain = _unpack(_DATA_URI.sub("", text, count=1))
    return _json(plain) or plain if isinstance(plain, str) and _JSON.match(plain) else plain


def _json(text: str) -> Any:
    if len(text) > MAX_JSON_LENGTH or _is_nested_too_deeply(text):
        return UNREAD
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _is_nested_too_deeply(text: str) -> bool:
    """Count the brackets outside of strings: the limit of a JSON parser depends on the interpreter."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for part in _BRACKETS.findall(text):
        if part in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif part in "]}":
            depth -= 1
    return False


def _unpack(text: str) -> str | Unread | None:
    """Return what base64 decodes to if that is text; a long one is recognised by its beginning."""
    if _PACKED.fullmatch(text) is None or len(text.rstrip("=")) % 4 == 1:
        return None
    plain = text[:_MAX_PACKED_LENGTH].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        unpacked = decoded.decode("utf-8") if len(text) <= _MAX_PACKED_LENGTH else _cut_utf8(decoded)
    except (binascii.Error, UnicodeDecodeError):
        return None
    # A name or a digest decodes to something as well, but not to text with blanks.
    is_text = unpacked.isprintable() or all(character.isprintable() or character in "\n\t\r" for character in unpacked)
    if not is_text or not re.search(r"[\s({]", unpacked):
        return None
    return unpacked if len(text) <= _MAX_PACKED_LENGTH else UNREAD


def _cut_utf8(data: bytes) -> str:
    """Decode text whose last character may be cut."""
    return codecs.getincrementaldecoder("utf-8")().decode(data)


def strings_within(parameters: Any) -> Iterator[NestedText]:
    """Yield every string of a JSON value with its path, and the strings inside those."""
    pending: list[tuple[str, Strings, int]] = [("", strings_in(parameters), 0)]
    left = _MAX_TEXTS
    while pending:
        prefix, strings, level = pending.pop()
        for path, text in strings:
            where = f"{prefix}.{path}" if path and prefix else path or prefix
            value = embedded_value(text)
            inner = strings_in(value) if level < MAX_LEVELS and not isinstance(value, Unread | None) else None
            if inner is None or len(inner.pairs) > left:
                yield NestedText(where, text, complete=value is None)
                continue
            left -= len(inner.pairs)
            pending.append((where, inner, level + 1))
            yield NestedText(where, text, inner.complete)

"""Values inside texts: JSON in a string, at any depth, and base64 that decodes to text."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from qwed.guards.text_scan import strings_in

MAX_LEVELS = 4
"""Strings in strings that are read."""
MAX_JSON_LENGTH = 262_144
_MAX_PACKED_LENGTH = 65_536
_MAX_TEXTS = 10_000
_JSON = re.compile(r"\s*(?:\{|\[|\"\s*[\[{\\\"])")
_PACKED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_decode = msgspec.json.Decoder().decode


def embedded_value(text: str) -> Any:
    """Return the JSON value that a text is, or the text that it decodes to; None for a plain text."""
    if len(text) <= MAX_JSON_LENGTH and _JSON.match(text):
        return _json(text)
    plain = _unpack(_DATA_URI.sub("", text, count=1))
    return None if plain is None else (_json(plain) if _JSON.match(plain) else None) or plain


_DATA_URI = re.compile(r"\Adata:[\w/+.;=-]{0,100};base64,")


def _json(text: str) -> Any:
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _unpack(text: str) -> str | None:
    if len(text) > _MAX_PACKED_LENGTH or _PACKED.fullmatch(text) is None or len(text.rstrip("=")) % 4 == 1:
        return None
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    # A name or a digest decodes to something as well, but not to text with blanks.
    is_text = decoded.isprintable() or all(character.isprintable() or character in "\n\t\r" for character in decoded)
    return decoded if is_text and re.search(r"[\s({]", decoded) else None


def strings_within(parameters: Any) -> Iterator[tuple[str, str]]:
    """Yield every string of a JSON value with its path, and the strings inside those."""
    pending: list[tuple[str, Any, int]] = [("", parameters, 0)]
    count = 0
    while pending and count < _MAX_TEXTS:
        prefix, value, level = pending.pop()
        for path, text in strings_in(value):
            count += 1
            where = f"{prefix}.{path}" if path and prefix else path or prefix
            yield where, text
            inner = embedded_value(text) if level < MAX_LEVELS else None
            if inner is not None:
                pending.append((where, inner, level + 1))

"""Private keys: blocks between their outer lines, keys without outer lines, and keys in JSON."""

import re
from collections.abc import Iterator

from qwed.guards.text_scan import TextFinding

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 [A-Z ]{0,20}PRIVATE KEY ----"
    r"|(?<!-)BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?\W{1,8}(?=[A-Za-z0-9+/]{60})"
    r"|PuTTY-User-Key-File-\d: "
)
_KEY_ANCHORS = ("PRIVATE KEY", "PuTTY-User-Key-File-")
_ENDS = {"-": ("-----END ", "---- END "), "B": ("END ",), "P": ("Private-MAC:",)}
_END_LINE = re.compile(r"-----END [A-Z0-9 ]{0,60}-----|---- END [A-Z0-9 ]{0,60} ----|Private-MAC: ?[0-9a-f]{0,128}")
# A key block with nothing between its outer lines is not a secret.
_EMPTY_BODY = re.compile(
    r"(?:\\[nr]|[\s.*<>\u2026])*(?:(?:your|key|private|here|redacted|content|base64|x)[\s.*\u2026_-]*){0,6}>?\s*"
)
_MAX_SHOWN = 80
_PROSE = re.compile(r"[`'\")]{0,2}[ \t]+(?:is|are|and|or|in|the|to|of|at|header|lines?|block|markers?|files?)\b")

_JWK = re.compile(r"\"d\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,1400})\"")

_SYMMETRIC = re.compile(r"\"kty\"\s{0,4}:\s{0,4}\"oct\"")
_JWK_OCTETS = re.compile(r"\"k\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{16,1400})\"")
_XML_KEY = re.compile(r"<D>([A-Za-z0-9+/=\s]{40,2000})</D>")


def find_private_keys(text: str) -> Iterator[TextFinding]:
    """Yield every private key block; without an end line the rest of the text counts as the key."""
    if '"kty"' in text:
        yield from (TextFinding("private_key", *match.span(1)) for match in _JWK.finditer(text))
        if _SYMMETRIC.search(text):
            yield from (TextFinding("private_key", *match.span(1)) for match in _JWK_OCTETS.finditer(text))
    if "<RSAKeyValue>" in text:
        yield from (TextFinding("private_key", *match.span(1)) for match in _XML_KEY.finditer(text))
    if not any(anchor in text for anchor in _KEY_ANCHORS):
        return
    position = 0
    while begin := _KEY_BLOCK.search(text, position):
        tail = min(
            (end_position for end in _ENDS[begin[0][0]] if (end_position := text.find(end, begin.end())) >= 0),
            default=-1,
        )
        position = len(text) if tail < 0 else _after_end_line(text, tail)
        if not _is_placeholder_block(text, begin.end(), position if tail < 0 else tail) and not _PROSE.match(
            text, begin.end()
        ):
            yield TextFinding("private_key", begin.start(), position)


def _is_placeholder_block(text: str, start: int, end: int) -> bool:
    return end - start <= _MAX_SHOWN and end > start and _EMPTY_BODY.fullmatch(text[start:end].lower()) is not None


def _after_end_line(text: str, tail: int) -> int:
    line = _END_LINE.match(text, tail)
    return line.end() if line else tail

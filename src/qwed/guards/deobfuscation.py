"""Decoder for escaped text: escapes decoded, full-width letters narrowed, invisible characters removed.

Programs that read a URL, a JSON document or an HTML page decode it the same way, so a secret in it is just as readable.
"""

import html
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from qwed.guards.text_scan import TextFinding
from qwed.model.unicode_normal import normalize

_ESCAPED = re.compile(
    r"(?P<percent>(?:%[2-7][0-9A-Fa-f])+)|(?P<json>(?:\\u00[2-7][0-9A-Fa-f])+)|(?P<braced>(?:\\u\{[2-7][0-9A-Fa-f]\})+)|(?P<byte>(?:\\x[2-7][0-9A-Fa-f])+)"
    r"|(?P<octal>(?:\\[01][0-7]{2})+)"
    "|(?P<wide>[\uff01-\uff5e\U0001d400-\U0001d7ff\u24b6-\u24e9]+)|(?P<unseen>[\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff]+)"
    r"|(?P<entity>&(?:amp|lt|gt|quot|apos|#(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])|#[xX][2-7][0-9A-Fa-f]);)"
)
"""Runs of encoded characters; decoding them one at a time would be too slow."""
_ESCAPE_STARTS = re.compile(
    "[%\\\\&\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff\uff01-\uff5e\U0001d400-\U0001d7ff\u24b6-\u24e9]"
)
"""First characters of the encodings. They are searched for first: matching a character set is many times faster than
matching every form, and a search holds the interpreter lock until it ends."""
_ESCAPES = {"percent": "%", "json": "\\u00", "byte": "\\x"}
_BRACES = re.compile(r"\\u\{|\}")
_WIDE = (*range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800), *range(0x24B6, 0x24EA))
_NARROW = {wide: plain for wide in _WIDE if len(plain := normalize("NFKC", chr(wide))) == 1}


class DecodedText(NamedTuple):
    """Decoded text, and the offset of each of its characters in the original."""

    text: str
    offsets: "array[int]"

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original of a span of the decoded text."""
        return self.offsets[start], self.offsets[end]


def find_in_decoded(text: str, find: Callable[[str], list[TextFinding]], layers: int = 0) -> list[TextFinding]:
    """Return what `find` finds in the text and in its decoded form, with spans of the original text."""
    findings = find(text)
    for begin, end in _windows(text, _JOINT.finditer(text), _AROUND_JOINT):
        joined = join_strings(text[begin:end])
        findings = [*findings, *_moved(find(joined.text), joined, begin)]
    for begin, end in _windows(text, _runs(text), _AROUND):
        plain = decode_escapes(text[begin:end])
        if plain is not None:
            inner = find_in_decoded(plain.text, find, layers + 1) if layers < _MAX_LAYERS else find(plain.text)
            findings = [*findings, *_moved(inner, plain, begin)]
    return findings


def _moved(findings: list[TextFinding], decoded: DecodedText, begin: int) -> Iterator[TextFinding]:
    """Yield the findings in a decoded part of a text, with spans of the whole text."""
    for kind, start, end in findings:
        first, last = decoded.span(start, end)
        yield TextFinding(kind, begin + first, begin + last)


_JOINT = re.compile(r"[\"'`]\s{0,2}(?:[+.&]|\|\||\.\.|\}\{|\\?\r?\n)\s{0,8}[\"'`]|(?<=\w)\\\r?\n(?=\w)")


def join_strings(text: str) -> DecodedText:
    """Return the text with strings joined that a program would join, as in `"ab" + "cd"`."""
    parts: list[str] = []
    offsets = array("L")
    position = 0
    for match in _JOINT.finditer(text):
        parts.append(text[position : match.start()])
        offsets.extend(range(position, match.start()))
        position = match.end()
    parts.append(text[position:])
    offsets.extend(range(position, len(text) + 1))
    return DecodedText("".join(parts), offsets)


_MAX_LAYERS = 2
_AROUND_JOINT = 300
_AROUND = 8_192
"""Characters around an escape that are searched in their decoded form: no secret reaches farther from it."""


def _windows(text: str, matches: Iterator[re.Match[str]], around: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of the text around the matches, so that one escape does not cost a second search of it all."""
    begin = end = -1
    for match in matches:
        if end < 0 or match.start() - around > end:
            if end >= 0:
                yield begin, end
            begin = max(0, match.start() - around)
        end = min(len(text), match.end() + around)
    if end >= 0:
        yield begin, end


def decode_escapes(text: str) -> DecodedText | None:
    """Return the decoded text, or None if there is nothing to decode."""
    runs = _runs(text)
    first = next(runs, None)
    if first is None:
        return None
    parts: list[str] = []
    offsets = array("L")
    position = 0
    for match in chain((first,), runs):
        letters = _decode_run(match.lastgroup or "", match[0])
        parts += (text[position : match.start()], letters)
        offsets.extend(range(position, match.start()))
        if letters:
            offsets.extend(range(match.start(), match.end(), len(match[0]) // len(letters)))
        position = match.end()
    parts.append(text[position:])
    offsets.extend(range(position, len(text) + 1))
    return DecodedText("".join(parts), offsets)


def _runs(text: str) -> Iterator[re.Match[str]]:
    position = 0
    while (start := _ESCAPE_STARTS.search(text, position)) is not None:
        match = _ESCAPED.match(text, start.start())
        position = start.end() if match is None else match.end()
        if match is not None:
            yield match


def _decode_run(kind: str, run: str) -> str:
    """Return the characters that a run stands for; all of them take the same number of characters in the run."""
    if kind in _ESCAPES:
        return bytes.fromhex(run.replace(_ESCAPES[kind], "")).decode("ascii")
    if kind == "braced":
        return bytes.fromhex(_BRACES.sub("", run)).decode("ascii")
    if kind == "octal":
        return "".join(chr(int(digits, 8)) for digits in run[1:].split("\\"))
    if kind == "entity":
        return html.unescape(run)
    return run.translate(_NARROW) if kind == "wide" else ""

"""Encoded text inside a text: base64, base32, base58, base85, hexadecimal digits, character codes, compressed data."""

import binascii
import re
import zlib
from base64 import a85decode, b32decode, b85decode
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.guards._secrets.value_heuristics import base64_bytes
from qwed.guards._secrets.wallet_checksums import decode_base58
from qwed.guards.text_scan import UNSCANNED, TextFinding

MAX_WRAPPED = 2_000
"""Encoded runs that are decoded in one text; after that the rest is reported as unscanned."""
MAX_LAYERS = 3
"""Encodings inside each other that are decoded."""
_MAX_INFLATED = 1 << 16
_MAX_BACKWARDS = 1 << 14
_MIN_TEXT = 12


class Encoding(NamedTuple):
    """Encoding of text: the kind of its findings, and how its runs look and are decoded."""

    kind: str
    run: re.Pattern[str]
    decode: Callable[[str], bytes]


def _base32(run: str) -> bytes:
    body = run.rstrip("=").upper()
    try:
        return b32decode(body + "=" * (-len(body) % 8))
    except binascii.Error:
        return b""


def _base85(run: str) -> bytes:
    if len(_BASE85_ONLY.findall(run)) < _MIN_BASE85:
        return b""
    for decode in (b85decode, a85decode):
        try:
            raw = decode(run.encode("ascii"))
        except ValueError:
            continue
        if raw.isascii():
            return raw
    return b""


_BASE85_ONLY = re.compile("[!#$%&*;<>?@^{|}~]")
_MIN_BASE85 = 3
_NOT_HEX = re.compile("[^0-9A-Fa-f]")


def _hexadecimal(run: str) -> bytes:
    digits = _NOT_HEX.sub("", run.replace("0x", "").replace("\\x", ""))
    return bytes.fromhex(digits) if len(digits) % 2 == 0 else b""


def _decimal(run: str) -> bytes:
    numbers = [int(number) for number in re.findall("[0-9]+", run)]
    return bytes(numbers) if max(numbers) < _ASCII else b""


_ASCII = 128


def _binary(run: str) -> bytes:
    digits = re.sub("[^01]", "", run)
    return bytes(int(digits[index : index + 8], 2) for index in range(0, len(digits) - 7, 8))


_WRAP = r"(?:\\[nr]|\r?\n[ \t]{0,16}|[\"'][\s+\\,]{1,16}[\"'])"
_LINES = re.compile(_WRAP)
ENCODINGS = (
    Encoding(
        "base64_secret",
        re.compile(r"[A-Za-z0-9+/_-]{20,}(?:\\[nr][A-Za-z0-9+/_-]{4,})*={0,2}"),
        lambda run: base64_bytes(_LINES.sub("", run)),
    ),
    Encoding("hex_secret", re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{32,}"), _hexadecimal),
    Encoding(
        "hex_secret",
        re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{32,}"),
        lambda run: _hexadecimal(run[::-1]) if len(run) < _MAX_BACKWARDS else b"",
    ),
    Encoding("base32_secret", re.compile(r"(?<![A-Za-z0-9])(?:[A-Z2-7]{24,}|[a-z2-7]{24,})={0,6}"), _base32),
    Encoding(
        "base58_secret",
        re.compile(r"(?<![A-Za-z0-9])[1-9A-HJ-NP-Za-km-z]{28,300}(?![A-Za-z0-9])"),
        decode_base58,
    ),
    Encoding(
        "base85_secret",
        re.compile(r"(?<![!-~])(?:[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{25,2000}|(?:<~)?[!-uz]{25,2000}(?:~>)?)(?![!-~])"),
        _base85,
    ),
)
"""Encodings whose runs are long words."""
_DIGEST = re.compile(
    r"[^\s0-9A-Za-z]{0,4}(?:hash=)?(?:\w{1,12}[:-])?(?=(?:[0-7][0-9a-f]){0,63}[89a-f])"
    r"(?=(?:[0-9a-f][0-7]){0,63}[0-9a-f][89a-f])[0-9a-f]{32,128}[^\s0-9A-Za-z]{0,6}"
)
"""Digests; the hexadecimal digits of a text have no byte beyond 7f."""
_WRAPPED = Encoding(
    "base64_secret",
    re.compile(rf"[\"']?[A-Za-z0-9+/_-]{{40,}}(?:{_WRAP}[A-Za-z0-9+/_-]{{4,}})+={{0,2}}"),
    lambda run: base64_bytes(_LINES.sub("", run)),
)
_LINE = re.compile(r"(?m)^[\"']?[A-Za-z0-9+/_-]{40,}[\"'\\,]{0,3}$")

_HEX = r"[2-7][0-9A-Fa-f]"
SPACED_ENCODINGS = (
    Encoding("hex_secret", re.compile(rf"{_HEX}(?:;?[\s,:-]{{0,3}}(?:0x|\\x|U\+00|&#x)?{_HEX}){{15,}}"), _hexadecimal),
    Encoding(
        "character_codes",
        re.compile(r"[0-9]{2,3}(?:\)?[\s,;+.&|]{1,3}(?:[A-Za-z.]{1,20}\()?[0-9]{2,3}){15,}"),
        _decimal,
    ),
    Encoding("binary_secret", re.compile(r"0[01]{7}(?:\s?0[01]{7}){15,}"), _binary),
    Encoding("quoted_printable", re.compile(r"=[2-7][0-9A-F](?:[!-<>-~]{0,8}=[2-7][0-9A-F]){5,}"), binascii.a2b_qp),
)
"""Encodings whose runs are many short words."""
_MIN_CODES = 15
_BODY = re.compile(r"[A-Za-z0-9]{12}|[!#$%&*;<>?@^{|}~][!-~]{10,40}[!#$%&*;<>?@^{|}~]")


def find_encoded(text: str, runs: str, random: str, find: Callable[[str], bool]) -> Iterator[TextFinding]:
    """Yield the encoded runs in whose decoded text `find` finds a secret."""
    for count, (kind, run, inner) in enumerate(_decoded_runs(text, runs, random)):
        if count == MAX_WRAPPED:
            yield TextFinding(UNSCANNED, 0, len(text))
            return
        if find(inner):
            yield from (TextFinding(kind, start, start + len(run)) for start in _positions(text, run))


def _positions(text: str, run: str) -> Iterator[int]:
    position = text.find(run)
    while position >= 0:
        yield position
        position = text.find(run, position + len(run))


def _decoded_runs(text: str, runs: str, random: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind, run and decoded text of every run that is encoded text."""
    words = dict.fromkeys(word for word in random.split("\n") if _BODY.search(word) or _is_base85_like(word))
    places: list[tuple[tuple[Encoding, ...], str]] = [
        (ENCODINGS, word) for word in words if not _DIGEST.fullmatch(word)
    ]
    if sum(map(text.count, "0134567")) >= _MIN_CODES:
        places.append((SPACED_ENCODINGS, text))
    for encodings, place in places:
        for encoding in encodings:
            for match in encoding.run.finditer(place):
                yield from _decoded_parts(encoding, match)
    for match in _wrapped(text, runs):
        yield from _decoded_parts(_WRAPPED, match)


def _is_base85_like(word: str) -> bool:
    return 25 <= len(word) <= 2_000 and len(_BASE85_ONLY.findall(word)) >= _MIN_BASE85


def _wrapped(text: str, runs: str) -> Iterator[re.Match[str]]:
    """Yield the runs of base64 in several lines."""
    position = 0
    for word in _LINE.finditer(runs):
        start = text.find(word[0], position)
        match = _WRAPPED.run.match(text, start) if start >= 0 else None
        if match:
            yield match
            position = match.end()


def _decoded_parts(encoding: Encoding, match: re.Match[str]) -> Iterator[tuple[str, str, str]]:
    for start, end in _parts(match):
        run = match.string[start:end]
        inner = _readable(encoding.decode(run.strip("\"'")))
        if inner:
            yield encoding.kind, run, inner


def _parts(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the span of the run, and those of its lines if it has several: the next line may be no part of it."""
    yield match.span()
    start = match.start()
    for joint in _LINES.finditer(match[0]):
        yield start, match.start() + joint.start()
        start = match.start() + joint.end()
    if start != match.start():
        yield start, match.end()


def _readable(raw: bytes) -> str:
    """Return the text that the bytes are, also compressed or in UTF-16, or ""."""
    if not raw.isascii():
        if raw[:2] not in _COMPRESSED:
            return ""
        raw = _inflate(raw)
    if len(raw) > 1 and raw[1] == 0 and not any(raw[1::2]):
        raw = raw[::2]
    if len(raw) < _MIN_TEXT or not raw.isascii():
        return ""
    text = raw.decode("ascii")
    return text if text.translate(_NO_LINE_ENDS).isprintable() else ""


_NO_LINE_ENDS = {ord(sign): " " for sign in "\t\r\n"}
_COMPRESSED = (b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01")


def _inflate(raw: bytes) -> bytes:
    try:
        return zlib.decompressobj(47).decompress(raw, _MAX_INFLATED)
    except zlib.error:
        return b""

"""Encoded text that a model can read and a person cannot: base64, hexadecimal, character codes, spaced letters."""

import base64
import binascii
import codecs
import re
from collections.abc import Iterator

MAX_BLOBS = 64
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ :,]?|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|0x[0-9a-fA-F]{2},? ?){16,}")
_CODES = re.compile(r"(?:\b(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])\b[ ,;]{1,2}){12,}\d{2,3}")
_NOT_HEX = re.compile(r"0x|[^0-9a-fA-F]")
_SPACED_LETTERS = re.compile(r"(?<![\w])(?:[^\W\d_][ .\-_*|]{1,2}){9,}[^\W\d_](?![\w])")
_SPACING = re.compile(r"[ .\-_*|]")
_LEAST_READABLE = 0.9


def decode_blobs(text: str) -> Iterator[str]:
    """Yield the readable texts encoded as base64, hexadecimal or character codes."""
    runs = [(run[0], read) for pattern, read in _READERS for run in pattern.finditer(text)]
    for run, read in runs[:MAX_BLOBS]:
        decoded = read(run)
        if decoded and sum(
            character.isprintable() or character.isspace() for character in decoded
        ) >= _LEAST_READABLE * len(decoded):
            yield decoded


def join_spaced_letters(text: str) -> Iterator[str]:
    """Yield the words whose letters are separated, joined."""
    for run in _SPACED_LETTERS.finditer(text):
        yield _SPACING.sub("", run[0])


_ROTATED = (
    (re.compile("vtaber|qvfertneq|vafgehpgvba|cebzcg|cnffjbeq"), lambda text: codecs.encode(text, "rot13")),
    (re.compile("erongi|drager|noitcurtsni|tpmorp|drowssap"), lambda text: text[::-1]),
)


def decode_rotated(text: str) -> Iterator[str]:
    """Yield lower-case text decoded if it looks like rot13 or is written backwards."""
    yield from (read(text) for sign, read in _ROTATED if sign.search(text))


_SQUEEZED = re.compile(
    "(?:ignore|disregard|forget|overlook)(?:all|any|the|your|every|of)*(?:previous|prior|above|earlier|preceding|system)"
    "(?:system|safety)?(?:instruction|prompt|directive|guideline|rule|message)"
    "|(?:donot|dont|never|mustnot)(?:tell|inform|mention|notify|reveal)(?:this|it|any|anything|to|about)*(?:the)?user(?!s)"
)
_NO_LETTER = re.compile("[^a-z]")


def has_squeezed_instruction(text: str) -> bool:
    """Return True if the lower-case text gives an instruction once everything but letters is removed."""
    return _SQUEEZED.search(_NO_LETTER.sub("", text)) is not None


def _from_base64(run: str) -> str:
    plain = run.rstrip("=").replace("-", "+").replace("_", "/")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _from_hex(run: str) -> str:
    digits = _NOT_HEX.sub("", run)
    return bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("utf-8", "replace")


def _from_codes(run: str) -> str:
    return "".join(chr(int(code)) for code in re.findall(r"\d{2,3}", run))


_READERS = ((_BASE64, _from_base64), (_HEX, _from_hex), (_CODES, _from_codes))

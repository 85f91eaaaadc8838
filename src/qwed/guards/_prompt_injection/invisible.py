"""Invisible text: control characters, zero-width characters, tag characters, text behind long blank space.

A model reads all of it; a person who is shown the same text sees none of it.
"""

import re
from collections.abc import Iterator

_KINDS = (
    ("\x1b\u009b", "escape sequences of a terminal"),
    ("\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9a\x9c-\x9f", "control characters"),
    ("\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069", "text direction marks"),
    ("\U000e0000-\U000e007f", "invisible tag characters"),
    ("\U000e0100-\U000e01ef\ufe00-\ufe0e", "variation selectors"),
    ("\u00ad\u034f\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff0-\ufffb", "characters without width"),
    ("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159\U0001d173-\U0001d17a", "blank letters"),
    ("\ud800-\udfff", "unpaired surrogates"),
    ("\ue000-\uf8ff\U000f0000-\U0010fffd", "characters of private use"),
    ("\u2028\u2029\x85", "invisible line separators"),
)
_INVISIBLE = tuple((re.compile(f"[{signs}]"), what) for signs, what in _KINDS)
_ANY = re.compile("[" + "".join(signs for signs, _ in _KINDS) + "\u200c\u200d\ufe0f]")
# A joiner is legitimate between letters of joining scripts and between emoji; a selector after characters with two
# presentation forms.
_JOINED = re.compile(
    "(?<=[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af])[\u200c\u200d]"
    "|(?<=[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff])"
    "|(?<=[#*0-9\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])\ufe0f"
)
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]{2,6}\U000e007f")
_BLANK = r"[ \t\u00a0\u2000-\u200a\u3000]"
# Anchored where the blanks begin and possessive, so that a long run is scanned only once.
_OUT_OF_VIEW = (
    (re.compile(rf"(?<!\s)(?:{_BLANK}*+\r?\n){{12,}}+{_BLANK}*+\S"), "text after a dozen empty lines or more"),
    (re.compile(rf"(?<!{_BLANK}){_BLANK}{{100,}}+\S"), "text after a hundred blanks or more"),
)


def describe_invisible(text: str) -> Iterator[str]:
    """Yield a description of each kind of invisible text."""
    if _ANY.search(text):
        rest = _JOINED.sub("", _FLAG.sub("", text))
        yield from (what for signs, what in _INVISIBLE if signs.search(rest))
        if any(sign in rest for sign in "\u200c\u200d\ufe0f"):
            yield "characters without width"
    yield from (what for pattern, what in _OUT_OF_VIEW if pattern.search(text))


def escape_invisible(text: str) -> str:
    """Return the text with every invisible character spelt as an escape."""
    return "".join(character if _is_plain(character) else _escape(character) for character in text)


def strip_invisible(text: str) -> str:
    """Return the text without invisible characters; the text spelt by tag characters and selectors is read by
    `decode_smuggled`."""
    return _ANY.sub("", text) if _ANY.search(text) else text


_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


def decode_smuggled(text: str) -> Iterator[str]:
    """Yield the texts that tag characters and runs of variation selectors encode."""
    for run in _TAGS.findall(text):
        yield "".join(chr(ord(character) - 0xE0000) for character in run)
    for run in _SELECTORS.findall(text):
        yield bytes(_selected(ord(character)) for character in run).decode("utf-8", "replace")


def _selected(code: int) -> int:
    return code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16


def _is_plain(character: str) -> bool:
    return character == "\n" or (character.isprintable() and not _ANY.match(character))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

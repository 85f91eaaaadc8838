"""Tokens that are known by their shape alone, plain or wrapped in base64, and blocks of private keys."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qwed.guards._secrets.providers import PROVIDERS
from qwed.guards._secrets.words import unwrapped
from qwed.guards.text import UNSCANNED, Finding

MAX_WRAPPED = 2_000
"""Runs of base64 that are opened in one text; past it the rest is reported as unscanned."""
_SHORTEST = 16
_LONG = 1_000


class _Shape(NamedTuple):
    kind: str
    anchors: tuple[str, ...]
    """Literals without which the pattern cannot match: looking for them costs nanoseconds."""
    pattern: re.Pattern[str]


# Every repetition is bounded or cannot start again inside its own run, so a scan is linear.
_SHAPES = tuple(_Shape(kind, tuple(anchors.split()), re.compile(pattern)) for kind, anchors, pattern in PROVIDERS)
_BY_ANCHOR = {
    each: tuple(shape for shape in _SHAPES if each in shape.anchors) for row in _SHAPES for each in row.anchors
}
_DUMMY = re.compile(
    r"(?i)x{6,}|\*{3,}|(?<![a-z])your(?:[_-]|$)|placeholder|redacted|[_-](?:goes[_-])?here(?![a-z0-9])"
    r"|(?:^|[_-])(?:dummy|fake|sample|changeme|insert|replace)[_-]"
)
"""What documentation writes where a token would stand."""

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 [A-Z ]{0,20}PRIVATE KEY ----"
    r"|PuTTY-User-Key-File-\d: "
)
_KEY_ANCHORS = ("PRIVATE KEY", "PuTTY-User-Key-File-")
_ENDS = {"-": ("-----END ", "---- END "), "P": ("Private-MAC:",)}
_END_LINE = re.compile(r"-----END [A-Z0-9 ]{0,60}-----|---- END [A-Z0-9 ]{0,60} ----|Private-MAC: ?[0-9a-f]{0,128}")
# A key that is only shown by its outer lines gives nothing away.
_EMPTY_BODY = re.compile(
    r"(?:\\[nr]|[\s.*<>\u2026])*(?:(?:your|key|private|here|redacted|content|base64|x)[\s.*\u2026_-]*){0,6}>?\s*"
)
_MAX_SHOWN = 80
_PROSE = re.compile(r"[`'\")]{0,2}[ \t]+(?:is|are|and|or|in|the|to|of|at|header|lines?|block|markers?|files?)\b")

_JWK = re.compile(r"\"d\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,1400})\"")

_RUN = re.compile(r"[A-Za-z0-9+/_-]{27,}={0,2}")


def long_runs(text: str) -> str:
    """The words a token could be: every shape holds a long run without blanks, and most texts hold few."""
    return "\n".join(word for word in text.split() if len(word) >= _SHORTEST)


def token_shapes(text: str, runs: str) -> Iterator[Finding]:
    """Every token of a known provider."""
    if not runs:
        return
    for kind, _anchors, pattern in dict.fromkeys(
        shape for each in _those_in(runs, _BY_ANCHOR) for shape in _BY_ANCHOR[each]
    ):
        if pattern.search(runs):
            yield from _real(kind, pattern, text)


def _those_in(runs: str, words: Iterable[str]) -> list[str]:
    """The words that stand in a text. Asked of every action, and so in one flat row: nested, it cost ten times this."""
    if len(runs) > _LONG:
        # Looking through a long text takes longer than telling that it lacks a letter of the word.
        letters = frozenset(runs)
        words = [each for each in words if letters.issuperset(each)]
    return [each for each in words if each in runs]


def _real(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[Finding]:
    for match in pattern.finditer(text):
        if not _DUMMY.search(match[0]):
            yield Finding(kind, *match.span(match.lastindex or 0))


def private_keys(text: str) -> Iterator[Finding]:
    """Every block of a private key; without an end the rest of the text may be the key."""
    if '"kty"' in text:
        yield from (Finding("private_key", *match.span(1)) for match in _JWK.finditer(text))
    if not any(anchor in text for anchor in _KEY_ANCHORS):
        return
    at = 0
    while begin := _KEY_BLOCK.search(text, at):
        tail = min((found for end in _ENDS[begin[0][0]] if (found := text.find(end, begin.end())) >= 0), default=-1)
        at = len(text) if tail < 0 else _after_end_line(text, tail)
        if not _is_only_shown(text, begin.end(), at if tail < 0 else tail) and not _PROSE.match(text, begin.end()):
            yield Finding("private_key", begin.start(), at)


def _is_only_shown(text: str, start: int, end: int) -> bool:
    return end - start <= _MAX_SHOWN and end > start and _EMPTY_BODY.fullmatch(text[start:end].lower()) is not None


def _after_end_line(text: str, tail: int) -> int:
    line = _END_LINE.match(text, tail)
    return line.end() if line else tail


def wrapped_tokens(text: str, runs: str) -> Iterator[Finding]:
    """Runs of base64 that hold a token or a private key."""
    if not runs:
        return
    present = _those_in(runs, _FRAGMENTS)
    opened = 0
    for match in _RUN.finditer(text) if present else ():
        if not any(fragment in match[0] for fragment in present):
            continue
        opened += 1
        if opened > MAX_WRAPPED:
            yield Finding(UNSCANNED, match.start(), len(text))
            return
        inner = unwrapped(match[0])
        if next(token_shapes(inner, inner), None) or next(private_keys(inner), None):
            yield Finding("base64_secret", *match.span())


_HEX_RUN = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){16,}(?![0-9A-Fa-f])")


def spelt_tokens(text: str, runs: str) -> Iterator[Finding]:
    """Runs of hexadecimal digits that hold a token."""
    lowered = runs.lower()
    if not any(each in lowered for each in _HEX_FRAGMENTS):
        return
    for opened, match in enumerate(_HEX_RUN.finditer(text)):
        if opened == MAX_WRAPPED:
            yield Finding(UNSCANNED, match.start(), len(text))
            return
        inner = bytes.fromhex(match[0]).decode("latin-1")
        if next(token_shapes(inner, inner), None) or next(private_keys(inner), None):
            yield Finding("hex_secret", *match.span())


_WRAPPED_PREFIXES = (
    "AKIA ASIA ghp_ ghs_ gho_ github_pat_ glpat- xoxb- xoxp- sk_live_ rk_live_ sk-proj- sk-ant- AIzaSy npm_ hvs.CAES"
    " dckr_pat_ dop_v1_ shpat_ qwed_live_ qwed_agent_ -----BEGIN PuTTY-User"
)


def _fragments(prefix: str) -> Iterator[str]:
    """What base64 makes of the prefix at each of the three places it can begin."""
    for shift in range(3):
        first, last = -(-8 * shift // 6), 8 * (shift + len(prefix)) // 6
        yield b64encode(b"\0" * shift + prefix.encode()).decode()[first:last]


_FRAGMENTS = tuple(fragment for prefix in _WRAPPED_PREFIXES.split() for fragment in _fragments(prefix))
_HEX_FRAGMENTS = tuple(prefix.encode().hex() for prefix in _WRAPPED_PREFIXES.split())

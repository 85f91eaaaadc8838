"""Tokens recognised by their format alone, plain or encoded, and private key blocks."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qwed.guards._secrets.providers import PROVIDERS
from qwed.guards._secrets.value_heuristics import decode_base64
from qwed.guards.text_scan import UNSCANNED, TextFinding

MAX_WRAPPED = 2_000
"""Encoded runs that are decoded in one text; after that the rest is reported as unscanned."""
_SHORTEST = 16
_LONG = 1_000


class _TokenPattern(NamedTuple):
    kind: str
    anchors: tuple[str, ...]
    """Literals without which the pattern cannot match; searching for them is very fast."""
    pattern: re.Pattern[str]


# Every repetition is bounded or cannot start again inside its own run, so a scan is linear.
_TOKEN_PATTERNS = tuple(
    _TokenPattern(kind, tuple(anchors.split()), re.compile(pattern)) for kind, anchors, pattern in PROVIDERS
)
_BY_ANCHOR = {
    anchor: tuple(shape for shape in _TOKEN_PATTERNS if anchor in shape.anchors)
    for row in _TOKEN_PATTERNS
    for anchor in row.anchors
}
_DUMMY = re.compile(
    r"(?i)x{6,}|\*{3,}|(?<![a-z])your(?:[_-]|$)|placeholder|redacted|[_-](?:goes[_-])?here(?![a-z0-9])"
    r"|(?:^|[_-])(?:dummy|fake|sample|changeme|insert|replace)[_-]"
)
"""Placeholders that documentation uses instead of a token."""

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 [A-Z ]{0,20}PRIVATE KEY ----"
    r"|PuTTY-User-Key-File-\d: "
)
_KEY_ANCHORS = ("PRIVATE KEY", "PuTTY-User-Key-File-")
_ENDS = {"-": ("-----END ", "---- END "), "P": ("Private-MAC:",)}
_END_LINE = re.compile(r"-----END [A-Z0-9 ]{0,60}-----|---- END [A-Z0-9 ]{0,60} ----|Private-MAC: ?[0-9a-f]{0,128}")
# A key block with nothing between its outer lines is not a secret.
_EMPTY_BODY = re.compile(
    r"(?:\\[nr]|[\s.*<>\u2026])*(?:(?:your|key|private|here|redacted|content|base64|x)[\s.*\u2026_-]*){0,6}>?\s*"
)
_MAX_SHOWN = 80
_PROSE = re.compile(r"[`'\")]{0,2}[ \t]+(?:is|are|and|or|in|the|to|of|at|header|lines?|block|markers?|files?)\b")

_JWK = re.compile(r"\"d\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,1400})\"")

_RUN = re.compile(r"[A-Za-z0-9+/_-]{27,}={0,2}")


def long_runs(text: str) -> str:
    """Return the words that are long enough to be a token; most texts have few."""
    return "\n".join(word for word in text.split() if len(word) >= _SHORTEST)


def find_tokens(text: str, runs: str) -> Iterator[TextFinding]:
    """Yield every token of a known provider."""
    if not runs:
        return
    for kind, _anchors, pattern in dict.fromkeys(
        shape for anchor in _present_words(runs, _BY_ANCHOR) for shape in _BY_ANCHOR[anchor]
    ):
        if pattern.search(runs):
            yield from _real_tokens(kind, pattern, text)


def _present_words(runs: str, words: Iterable[str]) -> list[str]:
    """Return the words that occur in the text. This runs for every action, so it is one flat loop: a nested one was ten
    times slower."""
    if len(runs) > _LONG:
        # In a long text it is faster to check first if it contains every letter of the word.
        letters = frozenset(runs)
        words = [word for word in words if letters.issuperset(word)]
    return [word for word in words if word in runs]


def _real_tokens(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[TextFinding]:
    for match in pattern.finditer(text):
        if not _DUMMY.search(match[0]):
            yield TextFinding(kind, *match.span(match.lastindex or 0))


def find_private_keys(text: str) -> Iterator[TextFinding]:
    """Yield every private key block; without an end line the rest of the text counts as the key."""
    if '"kty"' in text:
        yield from (TextFinding("private_key", *match.span(1)) for match in _JWK.finditer(text))
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


def find_base64_tokens(text: str, runs: str) -> Iterator[TextFinding]:
    """Yield the base64 runs that contain a token or a private key."""
    if not runs:
        return
    present = _present_words(runs, _FRAGMENTS)
    opened = 0
    for match in _RUN.finditer(text) if present else ():
        if not any(fragment in match[0] for fragment in present):
            continue
        opened += 1
        if opened > MAX_WRAPPED:
            yield TextFinding(UNSCANNED, match.start(), len(text))
            return
        inner = decode_base64(match[0])
        if next(find_tokens(inner, inner), None) or next(find_private_keys(inner), None):
            yield TextFinding("base64_secret", *match.span())


_HEX_RUN = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){16,}(?![0-9A-Fa-f])")


def find_hex_tokens(text: str, runs: str) -> Iterator[TextFinding]:
    """Yield the runs of hexadecimal digits that contain a token."""
    lowered = runs.lower()
    if not any(fragment in lowered for fragment in _HEX_FRAGMENTS):
        return
    for opened, match in enumerate(_HEX_RUN.finditer(text)):
        if opened == MAX_WRAPPED:
            yield TextFinding(UNSCANNED, match.start(), len(text))
            return
        inner = bytes.fromhex(match[0]).decode("latin-1")
        if next(find_tokens(inner, inner), None) or next(find_private_keys(inner), None):
            yield TextFinding("hex_secret", *match.span())


_WRAPPED_PREFIXES = (
    "AKIA ASIA ghp_ ghs_ gho_ github_pat_ glpat- xoxb- xoxp- sk_live_ rk_live_ sk-proj- sk-ant- AIzaSy npm_ hvs.CAES"
    " dckr_pat_ dop_v1_ shpat_ qwed_live_ qwed_agent_ -----BEGIN PuTTY-User"
)


def _fragments(prefix: str) -> Iterator[str]:
    """Yield the base64 encodings of the prefix at each of the three possible alignments."""
    for shift in range(3):
        first, last = -(-8 * shift // 6), 8 * (shift + len(prefix)) // 6
        yield b64encode(b"\0" * shift + prefix.encode()).decode()[first:last]


_FRAGMENTS = tuple(fragment for prefix in _WRAPPED_PREFIXES.split() for fragment in _fragments(prefix))
_HEX_FRAGMENTS = tuple(prefix.encode().hex() for prefix in _WRAPPED_PREFIXES.split())

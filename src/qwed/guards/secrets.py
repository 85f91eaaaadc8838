"""Secrets in text: provider tokens, private keys, passwords in connection strings and assignments."""

import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from qwed.guards.text import MAX_SCANNED, UNSCANNED, Finding

MAX_CANDIDATES = 2_000
"""Possible assignments, or passwords in addresses, weighed in one text; past it the rest is reported as unscanned."""
MAX_NESTING = 8
"""How often a character is weighed, on average: a value may hold a name whose value holds a name, and so on."""


class _Shape(NamedTuple):
    kind: str
    anchors: tuple[str, ...]
    """Literals without which the pattern cannot match: looking for them costs nanoseconds."""
    pattern: re.Pattern[str]


def _shape(kind: str, anchors: str, pattern: str) -> _Shape:
    return _Shape(kind, tuple(anchors.split()), re.compile(pattern))


# Every repetition is bounded or cannot start again inside its own run, so a scan is linear.
_SHAPES = (
    _shape("qwed_token", "qwed_", r"qwed_(?:live|agent)_[A-Za-z0-9_-]{20,255}"),
    _shape("aws_access_key", "AKIA ASIA", r"(?<![A-Z0-9])A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])"),
    _shape("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _shape("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    _shape("gitlab_token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,255}"),
    _shape("slack_token", "xox", r"xox[abeoprs]-(?=[A-Za-z0-9-]{0,40}\d)[A-Za-z0-9-]{10,255}"),
    _shape("slack_token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,255}"),
    _shape(
        "slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/services/[A-Za-z0-9]+/[A-Za-z0-9]+/[A-Za-z0-9]{16,64}"
    ),
    _shape("stripe_key", "k_live_ k_test_", r"(?<![A-Za-z0-9])[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _shape("stripe_key", "whsec_", r"whsec_[A-Za-z0-9]{24,255}"),
    _shape(
        "openai_key",
        "sk-",
        r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin|ant|or)-[A-Za-z0-9_-]{20,255}|[A-Za-z0-9]{20,255})",
    ),
    _shape("google_key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _shape("google_token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,512}"),
    _shape("google_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{24,64}"),
    _shape("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _shape("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _shape("pypi_token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,512}"),
    _shape("huggingface_token", "hf_", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,64}"),
    _shape("digitalocean_token", "_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _shape("shopify_token", "shp", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    _shape("azure_key", "AccountKey=", r"AccountKey=[A-Za-z0-9+/]{60,100}={0,2}"),
    _shape(
        "jwt", "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,8192}\.eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{0,2048}"
    ),
)

_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BLOCK_END = "-----END "
_END_LINE = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")

# A raw slash cannot stand in the password of a URL, so a port followed by a path is never taken for one.
_USERINFO = re.compile(r"://[^\s:/@'\"<>\[\]]{0,128}:([^\s@/'\"]{1,256})@")
_BEARER = re.compile(r"(?:bearer|basic)\s{1,4}([a-z0-9._~+/=-]{16,2048})")

# Matched against lower-cased text, every alternative begins with a plain letter: that lets the scan skip ahead.
_ASSIGNMENT = re.compile(
    r"(?P<name>passw(?:or)?d|passphrase|passcode|pass(?<![a-z]pass)|pwd"
    r"|secret(?:[_-]?(?:access[_-]?)?key(?:[_-]base)?)?|credentials?|client[_-]?secret|private[_-]?key"
    r"|api[_-]?(?:key|token|secret)|access[_-]?(?:key|token)|auth[_-]?token"
    r"|token(?<!page.token)(?<!pagetoken)(?<!next.token)(?<!tion.token))"
    r"\\?[\"']?\s{0,8}(?P<sign>:=|=>|==?|:)(?P<gap>\s{0,8})"
    r"(?:\\?\"(?P<double>(?:[^\"\\\r\n]|\\[^\"']){1,4096})|\\?'(?P<single>(?:[^'\\\r\n]|\\[^\"']){1,4096})"
    r"|(?P<plain>[^\s\"'&;,=()\[\]\\]{4,4096})(?P<after>[=(\[,)]?))"
)
_ADDRESSES = ("http://", "https://", "/")
_VALUES = ("double", "single", "plain")
_ASSIGNMENT_ANCHORS = ("pass", "pwd", "secret", "key", "token", "credential")
_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

_PLACEHOLDER = re.compile(
    r"(?i)<.*>?|\$\{.*|\$\(.*|(?-i:\$[A-Z_][A-Z0-9_]*)|\{.*\}|%\(?\w*\)?[sd%]?|:[a-z_]\w*|\?+|(.)\1*|[x*.#_-]+"
    r"|\[(?:secret|redacted|masked|hidden).*|(?:your|insert|replace|enter)[_ -].*"
    r"|(?:os\.environ|process\.env|env\.|getenv|vault:|secretref:|ref\+).*"
)
_PLACEHOLDER_PARTS = ("placeholder", "redacted", "your_", "your-")
_MAX_PLACEHOLDER_WORD = 64
_PLACEHOLDER_TEXT = """
changeme changeit password passwd passphrase pwd secret apikey token example examplepassword examplekey dummy
none null nil true false undefined hidden masked string text test testing todo required optional default empty
value yourpassword yourkey yourapikey yoursecret yourtoken mypassword mysecret myapikey mytoken passwordhere
secrethere keyhere tokenhere fake fakekey sample varchar input prompt boolean forgot incorrect invalid
"""
_PLACEHOLDER_WORDS = frozenset(_PLACEHOLDER_TEXT.split())
_HASH = re.compile(r"(?i)\$(?:2[abxy]?|argon2\w*|pbkdf2\S*|scrypt|[156y])\$.*|(?:sha\d+|md5|blake2\w)[:$-].*")
_SEPARATORS = re.compile(r"[_\s.!-]+")
_LETTERS_ONLY = re.compile(r"[A-Za-z-]{6,}")
_NAME_IN_CODE = re.compile(r"[A-Za-z_.-]*")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Every secret in the first MAX_SCANNED characters, in order; what lies past them is one `unscanned` finding."""
    scanned = text if len(text) <= MAX_SCANNED else text[:MAX_SCANNED]
    found = [*_shapes(scanned), *_key_blocks(scanned), *_userinfo(scanned), *_named_values(scanned)]
    if len(text) > MAX_SCANNED:
        found.append(Finding(UNSCANNED, MAX_SCANNED, len(text)))
    return _disjoint(found) if found else ()


def mask(text: str) -> str:
    """The text with every secret replaced by `[secret:<kind>]`."""
    parts: list[str] = []
    at = 0
    for finding in find_secrets(text):
        parts += (text[at : finding.start], f"[secret:{finding.kind}]")
        at = finding.end
    return "".join((*parts, text[at:]))


def _disjoint(found: list[Finding]) -> tuple[Finding, ...]:
    """In order, each character in one finding only: overlapping ones grow the first."""
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda each: (each.start, -each.end)):
        if kept and finding.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, finding.end))
        else:
            kept.append(finding)
    return tuple(kept)


def _shapes(text: str) -> Iterator[Finding]:
    for kind, anchors, pattern in _SHAPES:
        for anchor in anchors:
            if anchor in text:
                yield from (Finding(kind, *match.span()) for match in pattern.finditer(text))
                break


def _key_blocks(text: str) -> Iterator[Finding]:
    at = 0
    while "PRIVATE KEY" in text and (begin := _KEY_BLOCK.search(text, at)):
        tail = text.find(_KEY_BLOCK_END, begin.end())
        # Without an end the rest of the text may be the key.
        at = len(text) if tail < 0 else _after_end_line(text, tail)
        yield Finding("private_key", begin.start(), at)


def _after_end_line(text: str, tail: int) -> int:
    line = _END_LINE.match(text, tail)
    return line.end() if line else tail


def _userinfo(text: str) -> Iterator[Finding]:
    if "://" not in text or "@" not in text:
        return
    for count, match in enumerate(_USERINFO.finditer(text)):
        if count == MAX_CANDIDATES:
            yield Finding(UNSCANNED, match.start(), len(text))
            return
        if not _is_placeholder(match[1]):
            yield Finding("connection_string", *match.span(1))


def _named_values(text: str) -> Iterator[Finding]:
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few letters grow when lowered, and spans must fit the text as it came.
        lowered = text.translate(_TO_LOWER)
    if "bearer" in lowered or "basic" in lowered:
        for match in _BEARER.finditer(lowered):
            if _looks_random(match[1]):
                yield Finding("authorization", *match.span(1))
    if (":" in text or "=" in text) and any(anchor in lowered for anchor in _ASSIGNMENT_ANCHORS):
        yield from _assignments(text, lowered)


def _assignments(text: str, lowered: str) -> Iterator[Finding]:
    at = 0
    left = min(MAX_NESTING * len(text), MAX_SCANNED)
    for _ in range(MAX_CANDIDATES):
        match = _ASSIGNMENT.search(lowered, at)
        if match is None:
            return
        if left <= 0:
            break
        left -= match.end() - match.start()
        group = next(name for name in _VALUES if match[name] is not None)
        start, end = match.span(group)
        secret = _is_secret(match, group, text[start:end])
        if secret:
            yield Finding("assignment", start, end)
        # What was no secret may itself begin with the name of one.
        at = end if secret else start
    if at < len(text):
        yield Finding(UNSCANNED, at, len(text))


def _is_secret(match: re.Match[str], group: str, value: str) -> bool:
    # What costs least is asked first: hostile text is made of what is rejected.
    plausible = len(value) >= 4 and _is_plausible(match, group, value)
    return plausible and not _is_placeholder(value) and not _HASH.fullmatch(value)


def _is_plausible(match: re.Match[str], group: str, value: str) -> bool:
    if not match["name"].startswith(("pass", "pwd")):
        return _looks_random(value) and not value.startswith(_ADDRESSES)
    if group == "plain":
        return _is_plain_password(match, value)
    return not (match["sign"] == ":" and " " in value.strip())


def _is_plain_password(match: re.Match[str], value: str) -> bool:
    """Without quotes a word may be a variable or prose, so it must look like a value."""
    if value.startswith(_ADDRESSES) or match["after"] in ("(", "["):
        return False
    if not _NAME_IN_CODE.fullmatch(value):
        return len(value) >= 6
    pasted = match["sign"] == "=" and not match["gap"] and not match["after"]
    return pasted and bool(_LETTERS_ONLY.fullmatch(value)) and "pass" not in value.lower()


def _is_placeholder(value: str) -> bool:
    lowered = value.lower()
    if any(part in lowered for part in _PLACEHOLDER_PARTS) or _PLACEHOLDER.fullmatch(value):
        return True
    return len(value) <= _MAX_PLACEHOLDER_WORD and _SEPARATORS.sub("", lowered) in _PLACEHOLDER_WORDS


def _looks_random(value: str) -> bool:
    return len(value) >= 12 and " " not in value and bool(_DIGIT.search(value)) and bool(_LETTER.search(value))

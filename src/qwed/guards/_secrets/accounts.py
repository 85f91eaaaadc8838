"""Secrets of accounts: session cookies, password hashes in account files, and values of manifests of secrets."""

import re
from collections.abc import Iterator

from qwed.guards._secrets.assignments import MAX_CANDIDATES
from qwed.guards._secrets.value_heuristics import (
    is_base64_text,
    is_placeholder,
    is_real_value,
    is_uuid,
    is_wordy,
    looks_random,
)
from qwed.guards.text_scan import UNSCANNED, TextFinding

_HEADER = re.compile(r"cookies?2?\\?[\"']?\s{0,4}[:=]\s{0,4}|(?:-b|--cookie)[ =]\s{0,3}[\"']|\.cookies?\.set\(")
_HEADER_LENGTH = 4_096
_PAIR = re.compile(
    r"(?P<name>[A-Za-z_][\w.%-]{0,63})\\?[\"']?\s?[=:,]\s?\\?[\"']?(?P<value>[A-Za-z0-9%_.+/=:~!|*-]{10,4096})"
)
_SESSION = re.compile(
    r"(?i)sess|(?:^|[^a-z])sid|sid$|auth|token|jwt|login|remember|identity|passport|sso|saml|secret|credential|\bkey"
    r"|^__(?:host|secure)-|li_at|user|account|clearance|xoxd"
)
# Cookies of analytics, consent and load balancing identify a browser, and open nothing.
_PUBLIC = re.compile(
    r"(?i)^(?:_ga|_gid|_gcl|_gat|_fb|__utm|amp_|ajs_|optimizely|_hj|mp_|nid$|_clck|_clsk|intercom-id|consent|lang)"
)
_MIN_COOKIE, _MIN_UNNAMED = 12, 24

# `root:$6$salt$...` in a shadow file, `bob:$apr1$...` or `bob:{SHA}...` in an htpasswd file, and what dumps print.
_HASH = re.compile(
    r":(?P<hash>\$(?:1|2[abxy]?|5|6|7|y|gy|sm3|md5|sha1|apr1|argon2\w{0,2})\$[^\s:\"']{8,200}|\{S?SHA\d{0,3}\}[A-Za-z0-9+/]{20,120}={0,2}"
    r"|[./0-9A-Za-z]{13}(?=:\d{4,5}:\d{1,6}:)|\d{1,7}:[0-9A-Fa-f]{32}:[0-9A-Fa-f]{32}(?=:))"
)
_ACCOUNT = re.compile(r"(?:^|[^\w.$/-]|\\n)[A-Za-z_][\w.@-]{0,63}\Z")
_MAX_ACCOUNT = 66


def find_account_secrets(text: str, lowered: str) -> Iterator[TextFinding]:
    """Yield session cookies and the password hashes of account files."""
    if "cookie" in lowered or "curl" in lowered:
        yield from _cookies(text, lowered)
    if _MANIFEST.search(text):
        yield from _manifest_values(text)
    for count, match in enumerate(_HASH.finditer(text)):
        if count == MAX_CANDIDATES:
            yield TextFinding(UNSCANNED, match.start(), len(text))
            return
        before = text[max(0, match.start() - _MAX_ACCOUNT) : match.start()]
        if not _DUMMY_HASH.search(match["hash"]) and _ACCOUNT.search(before):
            yield TextFinding("password_hash", *match.span("hash"))


# The values of a Secret of Kubernetes are base64 under `data`, and plain under `stringData`.
_MANIFEST = re.compile(r"\bkind\\?\"?:\s{0,2}\\?\"?Secret\b(?![\w-])")
_BLOCK = re.compile(
    r"\b(?P<plain>stringD|d)ata\\?\"?:\s{0,2}"
    r"(?:\{(?P<members>[^{}]{1,8192})\}|(?P<lines>(?:\\?\n[ \t]{1,16}[^\n]{1,4096}){1,200}))"
)
_ENTRY = re.compile(r"[\w.-]{1,128}\\?\"?:\s{0,2}\\?[\"']?(?P<value>[^\s\"'\\{}]{4,4096})")


def _manifest_values(text: str) -> Iterator[TextFinding]:
    for block in _BLOCK.finditer(text):
        for entry in _ENTRY.finditer(text, *block.span("members" if block["members"] else "lines")):
            value = entry["value"]
            if is_real_value(value) and (block["plain"] != "d" or is_base64_text(value)):
                yield TextFinding("assignment", *entry.span("value"))


_DUMMY_HASH = re.compile(r"(?i)\.\.\.|x{6,}|\*{3,}|example|abcdefgh")


def _cookies(text: str, lowered: str) -> Iterator[TextFinding]:
    done = 0
    for count, header in enumerate(_HEADER.finditer(lowered)):
        if count == MAX_CANDIDATES:
            yield TextFinding(UNSCANNED, header.start(), len(text))
            return
        start = max(done, header.end())
        line_end = text.find("\n", start, start + _HEADER_LENGTH)
        done = max(start, line_end if line_end >= 0 else min(len(text), start + _HEADER_LENGTH))
        for pair in _PAIR.finditer(text, start, done):
            if _is_session(pair["name"], pair["value"]):
                yield TextFinding("cookie", *pair.span("value"))


def _is_session(name: str, value: str) -> bool:
    if _PUBLIC.search(name) or is_placeholder(value) or not is_real_value(value) or is_wordy(value):
        return False
    if _SESSION.search(name):
        return len(value) >= _MIN_COOKIE and any(map(str.isdigit, value)) and not _EXPIRY.search(name)
    return len(value) >= _MIN_UNNAMED and looks_random(value) and not is_uuid(value)


_EXPIRY = re.compile(r"(?i)expir|max.?age|domain|path|name$|type$|url|policy")

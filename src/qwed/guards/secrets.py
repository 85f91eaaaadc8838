"""Secrets in text: provider tokens, private keys, and passwords in connection strings and assignments."""

import re
from collections.abc import Iterator

from qwed.guards._secrets.accounts import find_account_secrets
from qwed.guards._secrets.assignments import MAX_CANDIDATES, MAX_NESTING, find_assignments
from qwed.guards._secrets.encodings import MAX_LAYERS, find_encoded
from qwed.guards._secrets.private_keys import find_private_keys
from qwed.guards._secrets.random_values import find_random_values
from qwed.guards._secrets.secret_names import name_positions
from qwed.guards._secrets.stated_passwords import find_stated_passwords
from qwed.guards._secrets.syntax_patterns import find_special_forms
from qwed.guards._secrets.token_patterns import (
    find_disguised_tokens,
    find_split_tokens,
    find_tokens,
    has_digit,
    long_runs,
    random_words,
)
from qwed.guards._secrets.value_heuristics import is_real_value
from qwed.guards._secrets.wallets import find_key_files, find_seed_phrases
from qwed.guards.deobfuscation import find_in_decoded
from qwed.guards.homoglyphs import latin_letters
from qwed.guards.text_scan import MAX_SCANNED, UNSCANNED, TextFinding, is_plain, lower_same_length

__all__ = ["MAX_CANDIDATES", "MAX_NESTING", "find_secrets", "mask"]

# The password of a URL cannot contain a raw slash, so a port followed by a path is never taken for a password. It can
# contain a raw `@`, because some parsers split at the last one.
_USERINFO = re.compile(r"://[^\s:/@'\"<>\[\]]{0,128}:([^\s/'\"]{1,256})@(?=[\w\[$<{%*-])")
_LONG = 1 << 14
_MARKS = re.compile(r"[:=<,(\s-]|[^\x00-\x7f]")
"""Characters of which at least one is required to assign a value to a name."""

_ANY_VENDOR = "vendor_key"


def find_secrets(text: str) -> tuple[TextFinding, ...]:
    """Return every secret in the first MAX_SCANNED characters, in order; the rest is one `unscanned` finding."""
    if is_plain(text):
        return ()
    scanned = text if len(text) <= MAX_SCANNED else text[:MAX_SCANNED]
    findings = find_in_decoded(scanned, _find_all)
    if len(text) > MAX_SCANNED:
        findings.append(TextFinding(UNSCANNED, MAX_SCANNED, len(text)))
    return _merge_overlapping(findings) if findings else ()


def _find_all(text: str, layers: int = 0) -> list[TextFinding]:
    pieces = text.split()
    words = frozenset(pieces)
    runs = long_runs(pieces)
    random = random_words(runs)
    findings = [*find_tokens(text, runs, random), *find_private_keys(text), *_userinfo(text), *find_split_tokens(text)]
    if random or has_digit(text):
        findings += [*find_disguised_tokens(text, random, words), *find_key_files(text)]
        findings += find_encoded(
            text, runs, random, lambda inner: layers < MAX_LAYERS and bool(_find_all(inner, layers + 1))
        )
    if not runs.isascii():
        findings += find_tokens(latin_letters(text), latin_letters(runs), latin_letters(random))
    if _MARKS.search(text):
        findings += _find_named(text, random, words)
    return findings


def _find_named(text: str, random: str, words: frozenset[str]) -> list[TextFinding]:
    """Return the values that are secret because of the words around them."""
    lowered = lower_same_length(text)
    # A long text repeats its words, so that it is faster to look for a literal in each word once.
    vocabulary = "\n".join(words) if len(text) > _LONG else text
    names = name_positions(lowered)
    findings = [*find_assignments(text, lowered, names), *find_special_forms(text, lowered, vocabulary)]
    if has_digit(text):
        findings += [*find_account_secrets(text, lowered), *find_random_values(text, lowered, random)]
    findings += [*find_stated_passwords(text, lowered, names), *find_seed_phrases(text, lowered)]
    return findings


def mask(text: str) -> str:
    """Replace every secret in the text with `[secret:<kind>]`."""
    parts: list[str] = []
    at = 0
    for finding in find_secrets(text):
        parts += (text[at : finding.start], f"[secret:{finding.kind}]")
        at = finding.end
    return "".join((*parts, text[at:]))


def _merge_overlapping(findings: list[TextFinding]) -> tuple[TextFinding, ...]:
    """Return the findings in order, with overlapping ones merged into the first, which is one of a known vendor."""
    merged: list[TextFinding] = []
    for finding in sorted(findings, key=lambda item: (item.start, item.kind == _ANY_VENDOR, -item.end)):
        if merged and finding.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, finding.end))
        else:
            merged.append(finding)
    return tuple(merged)


def _userinfo(text: str) -> Iterator[TextFinding]:
    if "://" not in text or "@" not in text:
        return
    for count, match in enumerate(_USERINFO.finditer(text)):
        if count == MAX_CANDIDATES:
            yield TextFinding(UNSCANNED, match.start(), len(text))
            return
        if is_real_value(match[1]):
            yield TextFinding("connection_string", *match.span(1))

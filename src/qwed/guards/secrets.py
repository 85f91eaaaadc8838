"""Secrets in text: provider tokens, private keys, passwords in connection strings and beside their names."""

import re
from collections.abc import Iterator

from qwed.guards._secrets.forms import special_forms
from qwed.guards._secrets.named import MAX_CANDIDATES, MAX_NESTING, assignments
from qwed.guards._secrets.shapes import long_runs, private_keys, spelt_tokens, token_shapes, wrapped_tokens
from qwed.guards._secrets.words import is_given
from qwed.guards.spellings import in_every_spelling
from qwed.guards.text import MAX_SCANNED, UNSCANNED, Finding, lower

__all__ = ["MAX_CANDIDATES", "MAX_NESTING", "find_secrets", "mask"]

# A raw slash cannot stand in the password of a URL, so a port followed by a path is never taken for one; a raw `@` may,
# since some readers take the last one for the end.
_USERINFO = re.compile(r"://[^\s:/@'\"<>\[\]]{0,128}:([^\s/'\"]{1,256})@(?=[\w\[$<{%*-])")
_MARKS = re.compile(r"[:=<,(\s]")
"""Without one of these nothing is said to belong to a name."""


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Every secret in the first MAX_SCANNED characters, in order; what lies past them is one `unscanned` finding."""
    scanned = text if len(text) <= MAX_SCANNED else text[:MAX_SCANNED]
    found = in_every_spelling(scanned, _found)
    if len(text) > MAX_SCANNED:
        found.append(Finding(UNSCANNED, MAX_SCANNED, len(text)))
    return _disjoint(found) if found else ()


def _found(text: str) -> list[Finding]:
    runs = long_runs(text)
    found = [*token_shapes(text, runs), *wrapped_tokens(text, runs), *spelt_tokens(text, runs)]
    found += [*private_keys(text), *_userinfo(text)]
    if _MARKS.search(text):
        lowered = lower(text)
        found += [*assignments(text, lowered), *special_forms(text, lowered)]
    return found


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


def _userinfo(text: str) -> Iterator[Finding]:
    if "://" not in text or "@" not in text:
        return
    for count, match in enumerate(_USERINFO.finditer(text)):
        if count == MAX_CANDIDATES:
            yield Finding(UNSCANNED, match.start(), len(text))
            return
        if is_given(match[1]):
            yield Finding("connection_string", *match.span(1))

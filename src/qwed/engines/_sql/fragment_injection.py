"""Injection patterns in text that does not parse: a payload sent alone, or one with unclosed quotes.

Merely broken SQL matches none of them. Each pattern is linear: two unbounded repetitions are never adjacent.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote_plus

from qwed.model.data_files import read_patterns

COMMENT_CUT = "comment_cuts_predicate"

MAX_LENGTH = 20_000
_GAPS = re.compile(r"/\*!?\d{0,5}|\*/|\s+")
_ENCODED = re.compile(r"%[0-9a-fA-F]{2}|(?<=\w)\+(?=\w)")


class _Pattern(NamedTuple):
    pattern: re.Pattern[str]
    violation: str


_ROWS = read_patterns(__file__, "fragment_injection.txt")


def _patterns(place: str) -> tuple[_Pattern, ...]:
    """Return the patterns that are looked for in a place."""
    rows = (
        (heading.removeprefix(f"{place} "), patterns) for heading, patterns in _ROWS if heading.startswith(f"{place} ")
    )
    return tuple(
        _Pattern(re.compile(pattern, re.IGNORECASE), violation) for violation, patterns in rows for pattern in patterns
    )


_ANYWHERE, _IN_A_FRAGMENT, _IF_UNBALANCED = map(_patterns, ("anywhere", "fragment", "unbalanced"))
_STATEMENT = re.compile(
    r" ?\(* ?(?:select|with|insert|update|delete|merge|create|alter|drop|truncate|explain|values|replace|from|table"
    r"|show|describe|desc|grant|revoke|set|use|copy|call|exec|execute|begin|declare|do|pragma)\b",
    re.IGNORECASE,
)


def fragment_violations(text: str) -> Iterator[str]:
    """Yield the violations found in a text that no parser accepts."""
    variants = [_GAPS.sub(" ", text[:MAX_LENGTH])]
    if _ENCODED.search(variants[0]):
        variants.append(_GAPS.sub(" ", unquote_plus(variants[0])))
    for variant in dict.fromkeys(variants):
        for shape in (*_ANYWHERE, *_patterns_for(variant, text)):
            if shape.pattern.search(variant):
                yield shape.violation
    if _has_unclosed_comment(text[:MAX_LENGTH]):
        yield COMMENT_CUT


def _patterns_for(text: str, original: str) -> tuple[_Pattern, ...]:
    fragment = () if _STATEMENT.match(text) else _IN_A_FRAGMENT
    return (*fragment, *_IF_UNBALANCED) if _is_unbalanced(original) or fragment else ()


def _is_unbalanced(text: str) -> bool:
    """Return True if a quote stays open, or a parenthesis is closed without being opened."""
    return text.count("'") % 2 == 1 or text.count('"') % 2 == 1 or text.count("(") < text.count(")")


def _has_unclosed_comment(text: str) -> bool:
    """Return True if a comment is opened after a value and never closed: it hides the rest of the query."""
    start = text.rfind("/*")
    return start > 0 and "*/" not in text[start:] and text[:start].rstrip()[-1:] in set("'\")0123456789")

"""Injection patterns in text that does not parse: a payload sent alone, or one with unclosed quotes.

Merely broken SQL matches none of them. Each pattern is linear: two unbounded repetitions are never adjacent.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote_plus

TAUTOLOGY = "tautology"
UNION = "union_injection"
STACKED = "stacked_statements"
COMMENT_CUT = "comment_cuts_predicate"
QUOTE_BREAK = "quote_break"
COLUMN_COUNT = "order_by_probe"
CATALOG = "catalog_probe"
ERROR = "error_probe"

MAX_LENGTH = 20_000
_GAPS = re.compile(r"/\*!?\d{0,5}|\*/|\s+")
_ENCODED = re.compile(r"%[0-9a-fA-F]{2}|(?<=\w)\+(?=\w)")

_VALUE = r"(?:N?'[^']{0,40}'?|\"[^\"]{0,40}\"?|-?\d{1,18}(?:\.\d{1,9})?|0x[0-9a-f]{1,40}|true|false|null)"
_SIGN = r"(?:=|<>|!=|<=>|<=|>=|<|>|\blike\b|\brlike\b|\bregexp\b|\bin\b|\bbetween\b|\bis\b)"
_LINK = r"(?:\bor\b|\band\b|\bxor\b|\|\||&&)"
_VERB = (
    "drop|delete|update|insert|select|alter|create|exec|execute|declare|shutdown|truncate|waitfor|if|begin|copy|grant|"
    "set|merge|call|attach|union|commit|use|load|do|rename|backup|revoke"
)


class _Pattern(NamedTuple):
    pattern: re.Pattern[str]
    violation: str


def _pattern(pattern: str, violation: str) -> _Pattern:
    return _Pattern(re.compile(pattern, re.IGNORECASE), violation)


_ANYWHERE = (
    _pattern(rf"{_LINK} ?\(* ?(?:not ?)?\(* ?{_VALUE} ?\)* ?{_SIGN} ?\(* ?{_VALUE}", TAUTOLOGY),
    _pattern(rf"{_LINK} ?\(* ?(?:not )?\(* ?(?:true|1)(?: ?\)* ?)(?:--|#|/\*|'|\"|;|$)", TAUTOLOGY),
    _pattern(r"\bor ?\(* ?(\w{1,40}) ?= ?\1(?!\w)", TAUTOLOGY),
    _pattern(r"\bhaving ?\(? ?\d{1,9} ?[=<>]", TAUTOLOGY),
    _pattern(
        r"\bunion (?:all |distinct )?\(* ?select (?:null|\d{1,3}|@@|char ?\(|0x|'[^']{0,9}' ?,|concat|group_concat)",
        UNION,
    ),
    _pattern(
        r"\bunion\b.{0,400}\b(?:information_schema|sqlite_master|pg_catalog|pg_shadow|sysobjects|mysql\.user)", UNION
    ),
    _pattern(r"\bunion (?:all |distinct )?select .{0,200}? from [\w.$]{1,60} (?:and|or)\b", UNION),
    _pattern(r"\bwhere ?\(+ ?[\w.]{1,40} ?= ?-?[\w']{1,40} (?:union|order by)\b", UNION),
    _pattern(r"\w ?(?:--|#) ?\)+ ?$", COMMENT_CUT),
    _pattern(r"\border by \d{1,3}(?: ?, ?\d{1,3})* ?(?:--|#|/\*|;|%23)", COLUMN_COUNT),
    _pattern(r"\bprocedure analyse ?\(", ERROR),
    _pattern(r"\b(?:extractvalue|updatexml) ?\( ?(?:\d|rand|null)", ERROR),
    _pattern(r"@@(?:version|datadir|hostname|basedir)\b", CATALOG),
    _pattern(r"['\"] ?\)* ?(?:--|#|/\*)(?: ?['\"]| ?-?$| ?\+$)", COMMENT_CUT),
    _pattern(
        r"['\"\d] ?\)* ?(?:--|#|/\*)[^'\"]{0,200}['\"](?: ?\)*| and .{0,400}| or .{0,400}| order .{0,200})$",
        COMMENT_CUT,
    ),
)
_IN_A_FRAGMENT = (
    _pattern(r"^ ?['\"`]", QUOTE_BREAK),
    _pattern(
        r"^ ?[\w@.%-]{0,60}['\"`] ?(?:\)|;|--|#|/\*|\|\||\bor\b|\band\b|\bunion\b|\border\b|\bgroup\b|\bhaving\b)",
        QUOTE_BREAK,
    ),
    _pattern(rf"^ ?{_LINK} ?\(* ?[\w'\"]", TAUTOLOGY),
    _pattern(r"\bunion (?:all |distinct )?\(* ?select\b", UNION),
    _pattern(r"^ ?-?\d{1,18} ?\)+ ?(?:or|and|union|order)\b", TAUTOLOGY),
)
_IF_UNBALANCED = (
    _pattern(rf"['\"\d)] ?; ?(?:{_VERB})\b", STACKED),
    _pattern(r"['\"\d)] ?\bunion (?:all |distinct )?\(* ?select\b", UNION),
    _pattern(r"'' ?[-&^*=|+]{1,2} ?''", QUOTE_BREAK),
)
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

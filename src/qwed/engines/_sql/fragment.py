"""What a text that does not parse shows of an attack: a payload sent alone, or one whose quotes were not closed.

Plainly broken SQL shows none of these. Each pattern is linear: it never lets two open repetitions meet.
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


class _Shape(NamedTuple):
    pattern: re.Pattern[str]
    violation: str


def _shape(pattern: str, violation: str) -> _Shape:
    return _Shape(re.compile(pattern, re.IGNORECASE), violation)


_ANYWHERE = (
    _shape(rf"{_LINK} ?\(* ?(?:not ?)?\(* ?{_VALUE} ?\)* ?{_SIGN} ?\(* ?{_VALUE}", TAUTOLOGY),
    _shape(rf"{_LINK} ?\(* ?(?:not )?\(* ?(?:true|1)(?: ?\)* ?)(?:--|#|/\*|'|\"|;|$)", TAUTOLOGY),
    _shape(r"\bor ?\(* ?(\w{1,40}) ?= ?\1(?!\w)", TAUTOLOGY),
    _shape(r"\bhaving ?\(? ?\d{1,9} ?[=<>]", TAUTOLOGY),
    _shape(
        r"\bunion (?:all |distinct )?\(* ?select (?:null|\d{1,3}|@@|char ?\(|0x|'[^']{0,9}' ?,|concat|group_concat)",
        UNION,
    ),
    _shape(
        r"\bunion\b.{0,400}\b(?:information_schema|sqlite_master|pg_catalog|pg_shadow|sysobjects|mysql\.user)", UNION
    ),
    _shape(r"\bunion (?:all |distinct )?select .{0,200}? from [\w.$]{1,60} (?:and|or)\b", UNION),
    _shape(r"\bwhere ?\(+ ?[\w.]{1,40} ?= ?-?[\w']{1,40} (?:union|order by)\b", UNION),
    _shape(r"\w ?(?:--|#) ?\)+ ?$", COMMENT_CUT),
    _shape(r"\border by \d{1,3}(?: ?, ?\d{1,3})* ?(?:--|#|/\*|;|%23)", COLUMN_COUNT),
    _shape(r"\bprocedure analyse ?\(", ERROR),
    _shape(r"\b(?:extractvalue|updatexml) ?\( ?(?:\d|rand|null)", ERROR),
    _shape(r"@@(?:version|datadir|hostname|basedir)\b", CATALOG),
    _shape(r"['\"] ?\)* ?(?:--|#|/\*)(?: ?['\"]| ?-?$| ?\+$)", COMMENT_CUT),
    _shape(
        r"['\"\d] ?\)* ?(?:--|#|/\*)[^'\"]{0,200}['\"](?: ?\)*| and .{0,400}| or .{0,400}| order .{0,200})$",
        COMMENT_CUT,
    ),
)
_IN_A_FRAGMENT = (
    _shape(r"^ ?['\"`]", QUOTE_BREAK),
    _shape(
        r"^ ?[\w@.%-]{0,60}['\"`] ?(?:\)|;|--|#|/\*|\|\||\bor\b|\band\b|\bunion\b|\border\b|\bgroup\b|\bhaving\b)",
        QUOTE_BREAK,
    ),
    _shape(rf"^ ?{_LINK} ?\(* ?[\w'\"]", TAUTOLOGY),
    _shape(r"\bunion (?:all |distinct )?\(* ?select\b", UNION),
    _shape(r"^ ?-?\d{1,18} ?\)+ ?(?:or|and|union|order)\b", TAUTOLOGY),
)
_LOOSE = (
    _shape(rf"['\"\d)] ?; ?(?:{_VERB})\b", STACKED),
    _shape(r"['\"\d)] ?\bunion (?:all |distinct )?\(* ?select\b", UNION),
    _shape(r"'' ?[-&^*=|+]{1,2} ?''", QUOTE_BREAK),
)
_STATEMENT = re.compile(
    r" ?\(* ?(?:select|with|insert|update|delete|merge|create|alter|drop|truncate|explain|values|replace|from|table"
    r"|show|describe|desc|grant|revoke|set|use|copy|call|exec|execute|begin|declare|do|pragma)\b",
    re.IGNORECASE,
)


def fragment_violations(text: str) -> Iterator[str]:
    """The shapes of attack in a text no parser could read."""
    seen = [_GAPS.sub(" ", text[:MAX_LENGTH])]
    if _ENCODED.search(seen[0]):
        seen.append(_GAPS.sub(" ", unquote_plus(seen[0])))
    for each in dict.fromkeys(seen):
        for shape in (*_ANYWHERE, *_shapes_of(each, text)):
            if shape.pattern.search(each):
                yield shape.violation
    if _cut_open(text[:MAX_LENGTH]):
        yield COMMENT_CUT


def _shapes_of(text: str, sent: str) -> tuple[_Shape, ...]:
    fragment = () if _STATEMENT.match(text) else _IN_A_FRAGMENT
    return (*fragment, *_LOOSE) if _unbalanced(sent) or fragment else ()


def _unbalanced(text: str) -> bool:
    """Whether a quote stays open, or a parenthesis was closed that nobody opened."""
    return text.count("'") % 2 == 1 or text.count('"') % 2 == 1 or text.count("(") < text.count(")")


def _cut_open(text: str) -> bool:
    """A comment opened behind a value and never closed: the rest of the query is gone."""
    start = text.rfind("/*")
    return start > 0 and "*/" not in text[start:] and text[:start].rstrip()[-1:] in set("'\")0123456789")

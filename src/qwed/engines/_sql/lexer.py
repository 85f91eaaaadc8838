"""Lexer of strings, quoted names and comments by the rules of each dialect, and the comparison of their readings."""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class LexicalRule(StrEnum):
    """Deviation of a dialect from the lexical rules that all dialects share; see `data/lexical_rules.toml`."""

    ESCAPE_STRINGS = "escape_strings"
    BACKSLASH = "backslash"
    DOUBLE_BACKSLASH = "double_backslash"
    BACKTICKS = "backticks"
    BACKTICK_BACKSLASH = "backtick_backslash"
    BRACKETS = "brackets"
    DOLLAR_TAGS = "dollar_tags"
    PLAIN_DOLLARS = "plain_dollars"
    TRIPLE_QUOTES = "triple_quotes"
    RAW_STRINGS = "raw_strings"
    ALTERNATIVE_QUOTES = "alternative_quotes"
    HASH_COMMENTS = "hash_comments"
    HASH_BLANK_COMMENTS = "hash_blank_comments"
    SLASH_COMMENTS = "slash_comments"
    DASHES_NEED_BLANK = "dashes_need_blank"
    NESTED_COMMENTS = "nested_comments"
    VARIABLES_WITH_TEXT = "variables_with_text"


Rules = frozenset[LexicalRule]


class Span(NamedTuple):
    """Part of a text that is not code: from `start` to before `end`."""

    start: int
    end: int
    comment: bool = False


_R = LexicalRule
_WELL_KNOWN = ("postgres", "mysql", "spark", "tsql", "trino")
_CLOSERS = {
    "doubled": {quote: re.compile(rf"(?:[^{quote}]|{quote}{quote})*+{quote}") for quote in "'\"`"},
    "escaped": {quote: re.compile(rf"(?:[^{quote}\\]|\\.|{quote}{quote})*+{quote}", re.DOTALL) for quote in "'\"`"},
}
_TRIPLE = {
    quote: re.compile(rf"(?:[^{quote}\\]|\\.|{quote}(?!{quote}{quote}))*+{quote * 3}", re.DOTALL) for quote in "'\""
}
_BRACKET = re.compile(r"(?:[^\]]|\]\])*+\]")
_PLAIN_BRACKET = re.compile(r"(?:[\w\s.,:*+()]|-(?!-)|'[^'\]\\]*+')*+\]")
_LINE = re.compile(r"[^\n]*+")
_BLOCK = re.compile(r"/\*|\*/")
_PAIRS = {"[": "]", "(": ")", "{": "}", "<": ">"}
_VARIABLE = r"(?<![\w:$])[$@#:](?:[\w$]|::)++\((?=[^\s)'\"`\[/-]*+['\"`\[/-])[^\s)]*+\)"
_OPENERS: tuple[tuple[str, str, LexicalRule | None], ...] = (
    ("escape", r"(?<![\w$])[eE]'", _R.ESCAPE_STRINGS),
    ("raw", r"(?<![\w$])[rR]['\"]", _R.RAW_STRINGS),
    ("alternative", r"(?<![\w$])[nN]?[qQ]'", _R.ALTERNATIVE_QUOTES),
    ("triple", r"'''|\"\"\"", _R.TRIPLE_QUOTES),
    ("quote", r"['\"]", None),
    ("backtick", r"`", None),
    ("bracket", r"\[", _R.BRACKETS),
    ("dollar", r"(?<![\w$\x80-\U0010ffff])\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*+)?\$", _R.DOLLAR_TAGS),
    ("variable", _VARIABLE, _R.VARIABLES_WITH_TEXT),
    ("dollar2", r"\$\$", _R.PLAIN_DOLLARS),
    ("block", r"/\*", None),
    ("line", r"--(?=[\x00-\x20\x7f]|$)", _R.DASHES_NEED_BLANK),
    ("hash", r"#", _R.HASH_COMMENTS),
    ("hash2", r"#(?=[\x00-\x20!]|$)", _R.HASH_BLANK_COMMENTS),
    ("slashes", r"//", _R.SLASH_COMMENTS),
)
_LINE_KINDS = frozenset({"line", "hash", "hash2", "slashes"})
_SENSITIVE = re.compile(r"[\\#`$\[@:]|--|/\*|//|'''|\"\"\"|(?<![\w$])[eErRqQ]['\"]|[qQ]'")
"""Characters without which all dialects agree."""
_ODD_LINE_ENDS = re.compile("\r(?!\n)|[\v\f\x1c-\x1e\x85\u2028\u2029]")


@cache
def rules_by_dialect() -> dict[str, Rules]:
    """Return the rules of every supported dialect; the data file is validated when it is loaded."""
    text = files(__package__).joinpath("data", "lexical_rules.toml").read_text(encoding="utf-8")
    return {name: frozenset(map(LexicalRule, rules)) for name, rules in tomllib.loads(text).items()}


@cache
def _dialects_by_rules() -> dict[Rules, str]:
    """Return one dialect for each set of rules; dialects with the same rules read every text alike."""
    named: dict[Rules, str] = {}
    for dialect in (*_WELL_KNOWN, *rules_by_dialect()):
        named.setdefault(rules_by_dialect()[dialect], dialect)
    return named


@cache
def _opener(rules: Rules) -> re.Pattern[str]:
    groups = [f"(?P<{name}>{pattern})" for name, pattern, rule in _OPENERS if rule is None or rule in rules]
    if _R.DASHES_NEED_BLANK not in rules:
        groups.append("(?P<line>--)")
    return re.compile("|".join(groups))


def spans_of(text: str, dialect: str) -> tuple[Span, ...] | None:
    """Return the strings, quoted names and comments as this dialect reads them, or None if it cannot read the text."""
    rules = rules_by_dialect()[dialect]
    opener, at, spans = _opener(rules), 0, list[Span]()
    while (match := opener.search(text, at)) is not None:
        end = _end_of(text, match, rules)
        if end < 0:
            return None
        at = max(end, match.end())
        if end > match.start():
            kind = match.lastgroup == "block" or match.lastgroup in _LINE_KINDS
            spans.append(Span(_start_of(match), end, kind))
    return tuple(_merged(spans))


def _start_of(match: re.Match[str]) -> int:
    """Return the position of the quote, after a prefix such as `E`."""
    return match.end() - 1 if match.lastgroup in {"escape", "raw", "alternative"} else match.start()


def _end_of(text: str, match: re.Match[str], rules: Rules) -> int:
    """Return the end of what the match opens, its start if it opens nothing, or -1 if it is not closed."""
    kind, at = str(match.lastgroup), match.end()
    quote = text[at - 1]
    if kind in _LINE_KINDS:
        end = _LINE.match(text, at)
        return end.end() if end else at
    if kind == "variable":
        return at
    if kind == "block":
        return _end_of_block(text, at, nested=_R.NESTED_COMMENTS in rules)
    if kind in {"dollar", "dollar2"}:
        end_at = text.find(match[0], at)
        return -1 if end_at < 0 else end_at + len(match[0])
    if kind == "alternative":
        closing = _PAIRS.get(text[at : at + 1], text[at : at + 1]) + "'"
        end_at = text.find(closing, at + 1)
        return -1 if end_at < 0 else end_at + 2
    if kind == "bracket":
        return match.start() if _PLAIN_BRACKET.match(text, at) else _matched_end(_BRACKET, text, at)
    if kind == "backtick" and _R.BACKTICKS not in rules:
        return -1
    pattern = _TRIPLE[quote] if kind == "triple" else _CLOSERS[_escaping(kind, quote, rules)][quote]
    return _matched_end(pattern, text, at)


def _escaping(kind: str, quote: str, rules: Rules) -> str:
    if kind == "raw":
        return "doubled"
    rule = {"'": _R.BACKSLASH, '"': _R.DOUBLE_BACKSLASH, "`": _R.BACKTICK_BACKSLASH}[quote]
    return "escaped" if kind == "escape" or rule in rules else "doubled"


def _matched_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else -1


def _end_of_block(text: str, at: int, *, nested: bool) -> int:
    """Return the end of a comment; SQLite ends it with the text, if nothing else does."""
    if not nested:
        end_at = text.find("*/", at)
        return len(text) if end_at < 0 else end_at + 2
    depth = 1
    for match in _BLOCK.finditer(text, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _merged(spans: list[Span]) -> Iterator[Span]:
    """Join quoted texts that touch: `'a''b'` is one string or two, with the same extent."""
    pending: Span | None = None
    for span in spans:
        if pending is not None and pending.end == span.start and not pending.comment and not span.comment:
            pending = Span(pending.start, span.end)
            continue
        if pending is not None:
            yield pending
        pending = span
    if pending is not None:
        yield pending


class OtherReading(NamedTuple):
    """Reading of a text by another dialect."""

    dialect: str
    text: str
    """The text without what is a comment to that dialect."""
    shorter: bool
    """True if its code is only a part of the code that the first dialect reads."""


def other_readings(text: str, dialect: str) -> Iterator[OtherReading]:
    """Yield the readings that end strings, names or comments elsewhere than this dialect."""
    own = spans_of(text, dialect) if _SENSITIVE.search(text) else None
    if own is None:
        return
    for other in _dialects_by_rules().values():
        spans = spans_of(text, other)
        if spans is not None and spans != own:
            yield OtherReading(other, _without_comments(text, spans), _is_within(own, spans))


def _is_within(inner: Sequence[Span], outer: Sequence[Span]) -> bool:
    """Return True if every span of `inner` is within one of `outer`."""
    starts = [span.start for span in outer]
    holders = ((span, bisect_right(starts, span.start) - 1) for span in inner)
    return all(index >= 0 and span.end <= outer[index].end for span, index in holders)


def _without_comments(text: str, spans: Sequence[Span]) -> str:
    characters = list(text)
    for span in spans:
        if span.comment:
            characters[span.start : span.end] = " " * (span.end - span.start)
    return "".join(characters)


def has_odd_characters(text: str, dialect: str) -> bool:
    r"""Return True for code that databases read in different ways.

    These are a backslash or a blank of Unicode outside quotes, a letter that folds to an ASCII one, and a line comment
    that some databases end before the others do.
    """
    if text.isascii() and "\\" not in text and not _ODD_LINE_ENDS.search(text):
        return False
    spans = spans_of(text, dialect)
    if spans is None:
        return True
    if any(span.comment and _ODD_LINE_ENDS.search(text, span.start, span.end) for span in spans):
        return True
    return any(_is_odd(character) for character in _code(text, spans))


def _code(text: str, spans: tuple[Span, ...]) -> str:
    parts, at = [], 0
    for span in spans:
        parts.append(text[at : span.start])
        at = span.end
    return "".join((*parts, text[at:]))


def _is_odd(character: str) -> bool:
    if character.isascii():
        return character == "\\" or not (character.isprintable() or character in "\t\n\r")
    folded = (character.upper(), character.lower())
    # Databases fold letters one by one: `ß` stays, although its upper case is `SS`.
    folds = any(len(letter) == 1 and letter.isascii() for letter in folded)
    return folds or not character.isalnum()

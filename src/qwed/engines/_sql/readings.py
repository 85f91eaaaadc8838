"""Checks that every database reads a text alike: characters, strings, comments and the ends of statements."""

import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from qwed.engines._sql.lexer import Span, has_odd_characters, spans_of
from qwed.engines._sql.parse import ParsedSql
from qwed.engines._sql.tokens import nonblank_gaps

_BATCH_DIALECTS = frozenset({"", "tsql", "fabric"})
"""Dialects in which a statement may follow another without a semicolon; no dialect counts, as it may be one of them."""
_BATCH_WORDS = frozenset(
    """
    add alter backup begin break bulk checkpoint close commit continue create dbcc deallocate declare delete deny
    disable drop enable end exec execute fetch get go goto grant if insert kill merge move open print raiserror
    readtext receive reconfigure restore return revert revoke rollback save select send set setuser shutdown throw
    truncate update updatetext use waitfor while writetext
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
_SUBSTITUTING_DIALECTS = frozenset({"", "spark", "spark2", "databricks", "hive"})
_PIPE_DIALECTS = frozenset({"", "snowflake"})
_WRITING_WORDS = frozenset({"into", "replace", "call", "do", "copy", "load", "attach", "install", "pragma"})
BEFORE_A_NAME = frozenset(
    {
        *(TokenType.COMMA, TokenType.DOT, TokenType.ALIAS, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COLON),
        *(TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.FROM, TokenType.JOIN, TokenType.TABLE),
        *(TokenType.WHERE, TokenType.HAVING, TokenType.QUALIFY, TokenType.ON, TokenType.AND, TokenType.OR),
        *(TokenType.NOT, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.CASE),
        *(TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.IS),
        *(TokenType.BETWEEN, TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE),
        *(TokenType.PLUS, TokenType.DASH, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE, TokenType.SET),
        *(TokenType.INTO, TokenType.INSERT, TokenType.UPDATE, TokenType.WITH),
    }
)
"""Tokens after which a name must follow, so that no statement can begin there."""
_RUN_LINE = re.compile(r"^\s*+/\s*+$", re.MULTILINE)
"""Line by which SQL*Plus runs what is before it."""
_MAY_CUT = re.compile(r"\d\.?[eE][A-Za-z_]|\d\.[A-Za-z_]")
_CUT_NAME = re.compile(r"\d+\.")
_PREFIX = 3
"""Longest prefix of a string, as in `_utf8'..'` without its name, or `U&'..'`."""


def reading_problem(parsed: ParsedSql, target: str) -> str:
    """Return why a database may read another statement than the parsed one, or the empty string."""
    text = parsed.text
    if has_odd_characters(text, parsed.dialect) or _has_escaped_name(text, parsed.tokens) or _RUN_LINE.search(text):
        return "databases read a character of this text in different ways: write it plainly"
    if target in _SUBSTITUTING_DIALECTS and "${" in text:
        return "Spark and Hive replace `${..}` by a setting, even in a text: write its value"
    if isinstance(parsed.statements[0], exp.Command):
        return ""  # The parser leaves it as text, which has checks of its own.
    spans = spans_of(text, parsed.dialect)
    if spans is None or not _fit(parsed.tokens, spans) or not _covers_code(text, parsed.tokens, spans):
        return "databases end a string or a comment of this text in different places: write it plainly"
    if _MAY_CUT.search(text) and any(map(_is_cut_number, parsed.tokens, parsed.tokens[1:])):
        return "databases end a number of this text in different places: put a blank behind it"
    word = _piped_statement(parsed, target) or (_next_statement(parsed) if target in _BATCH_DIALECTS else "")
    return f"`{word}` may begin another statement: write AS before a name, or quote it" if word else ""


def _has_escaped_name(text: str, tokens: Sequence[Token]) -> bool:
    r"""Return True for `U&"p\0061ssword"`: a name in standard SQL, but an operation to the parser."""
    return any(
        token.token_type is TokenType.AMP
        and text[token.start - 1 : token.start].lower() == "u"
        and text[token.end + 1 : token.end + 2] in ('"', "'")
        for token in tokens
    )


def _fit(tokens: Sequence[Token], spans: Sequence[Span]) -> bool:
    """Return True if the parser's tokens end where the rules of the dialect end strings, names and comments."""
    position = 0
    for span in spans:
        while position < len(tokens) and tokens[position].end < span.start:
            position += 1
        if span.comment:
            if position < len(tokens) and tokens[position].start < span.end and not _is_hint(tokens[position], span):
                return False
            continue
        if not _covers(tokens, position, span):
            return False
    return True


def _covers_code(text: str, tokens: Sequence[Token], spans: Sequence[Span]) -> bool:
    """Return True if whatever the parser takes for a comment is one by the rules of the dialect."""
    comments = {span.start: span.end for span in spans if span.comment}
    for _, start, gap in nonblank_gaps(text, tokens):
        at, end = start, start + len(gap)
        while at < end:
            if at not in comments and not text[at].isspace():
                return False
            at = comments.get(at, at + 1)
    return True


def _is_hint(token: Token, span: Span) -> bool:
    return token.token_type is TokenType.HINT and span.start == token.start and token.end < span.end


def _covers(tokens: Sequence[Token], position: int, span: Span) -> bool:
    """Return True if tokens from this position fill a quoted text exactly, apart from a prefix."""
    if position >= len(tokens) or not span.start - _PREFIX <= tokens[position].start <= span.start:
        return False
    at = tokens[position].end + 1
    while at < span.end and position + 1 < len(tokens) and tokens[position + 1].start == at:
        position += 1
        at = tokens[position].end + 1
    return at == span.end


def has_statement_words(parsed: ParsedSql) -> bool:
    """Return True if a word outside quotes could make a part of the text another statement than a read."""
    words = {token.text.lower() for token in parsed.tokens if token.token_type is not TokenType.STRING}
    return bool(words & ((_BATCH_WORDS - {"select", "end", "if"}) | _WRITING_WORDS)) or TokenType.SEMICOLON in {
        token.token_type for token in parsed.tokens[:-1]
    }


def _is_cut_number(number: Token, after: Token) -> bool:
    """Return True for `1.EXEC`: a number and a word, but the parser takes the first letter for an exponent."""
    if number.token_type is TokenType.VAR and _CUT_NAME.match(number.text):
        return True
    touching = number.token_type is TokenType.NUMBER and number.end + 1 == after.start
    return touching and number.text[-1:].lower() == "e" and after.text[:1].isalpha()


def _piped_statement(parsed: ParsedSql, target: str) -> str:
    """Return what follows `->>` if Snowflake may run it as the next statement of a chain."""
    for before, word in pairwise(parsed.tokens):
        is_pipe = before.token_type is TokenType.DARROW and target in _PIPE_DIALECTS
        if is_pipe and (target or word.text.lower() in _BATCH_WORDS | _WRITING_WORDS):
            return word.text
    return ""


def _next_statement(parsed: ParsedSql) -> str:
    """Return a name that stands where T-SQL would begin another statement, or the empty string."""
    names = {
        identifier.name.lower()
        for statement in parsed.statements
        for identifier in statement.find_all(exp.Identifier)
        if not identifier.args.get("quoted")
    } & _BATCH_WORDS
    if not names:
        return ""
    for before, word in pairwise(parsed.tokens):
        if before.token_type not in BEFORE_A_NAME and word.text.lower() in names:
            return word.text
    return ""

"""From text to one syntax tree: dialects by name, bounds before the parser, and what a statement wraps."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import ParseError, SqlglotError

from qwed.engines._sql.tokens import (
    backtracking,
    comments_in,
    double_quoted,
    spoken_gaps,
    with_known_operators,
    with_named_binds,
    without_comments,
)

# The parser logs the text it cannot read, and that text may hold secrets.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

MAX_CHARACTERS = 100_000
MAX_NODES = 20_000
MAX_BACKTRACKING = 12

DOUBLE_QUOTED = "double_quoted"
"""Where the root of a tree keeps its `double_quoted` texts, which the tree itself does not tell from others."""

KNOWN_DIALECTS = tuple(sorted(each.value for each in Dialects if each.value not in {"", "prql", "dax"}))
ALIASES = {
    "": "",
    "generic": "",
    "ansi": "",
    "sql": "",
    "standard": "",
    "postgresql": "postgres",
    "pg": "postgres",
    "psql": "postgres",
    "cockroachdb": "postgres",
    "timescaledb": "postgres",
    "greenplum": "postgres",
    "mssql": "tsql",
    "sqlserver": "tsql",
    "sql server": "tsql",
    "t-sql": "tsql",
    "transact-sql": "tsql",
    "azuresql": "tsql",
    "synapse": "tsql",
    "mariadb": "mysql",
    "sqlite3": "sqlite",
    "plsql": "oracle",
    "pl/sql": "oracle",
    "sparksql": "spark",
    "pyspark": "spark",
    "delta": "databricks",
    "amazonathena": "athena",
    "google": "bigquery",
    "googlesql": "bigquery",
}
_TAKEN_APART = (exp.Query, exp.DML, exp.DDL, exp.Drop, exp.Values, exp.Summarize, exp.Pivot)
LIKELY_DIALECTS = (
    "postgres",
    "mysql",
    "tsql",
    "sqlite",
    "bigquery",
    "oracle",
    "snowflake",
    "duckdb",
    "spark",
    "clickhouse",
    "redshift",
    "presto",
)
MAX_GUESSED = 10_000
"""Texts longer than this are read in the dialect they name, or not at all."""

# The parser leaks these on texts its grammar does not foresee.
PARSER_LEAKS = (TypeError, AttributeError, ValueError, LookupError, AssertionError, NotImplementedError)
_UNACCEPTED = re.compile("[\0\ud800-\udfff]")
_EXPLAIN_WORDS = frozenset({"ANALYZE", "ANALYSE", "VERBOSE", "QUERY", "PLAN", "EXTENDED", "FORMATTED", "COST"})
_STATEMENT_STARTS = frozenset(
    {
        TokenType.SELECT,
        TokenType.WITH,
        TokenType.INSERT,
        TokenType.UPDATE,
        TokenType.DELETE,
        TokenType.MERGE,
        TokenType.VALUES,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A text that parsed: its tokens and the statements in it."""

    text: str
    dialect: str
    tokens: Sequence[Token]
    statements: tuple[exp.Expr, ...]
    prefix: str = ""
    """`EXPLAIN` or `REPLACE` where the tree is the statement behind that word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreadable:
    """A text that did not parse; `too_large` when it was not tried to the end."""

    problem: str
    tokens: Sequence[Token] = ()
    too_large: bool = False


def dialect_named(name: object) -> str | None:
    """sqlglot's name of a dialect, or None for a name nobody knows."""
    if not isinstance(name, str):
        return None
    word = name.strip().lower()
    word = ALIASES.get(word, word)
    return word if word == "" or word in KNOWN_DIALECTS else None


def read(text: str, dialect: str) -> Reading | Unreadable:
    """The statements of `text`, or why there are none."""
    problem = _unfit(text)
    if problem:
        return Unreadable(problem=problem, too_large=len(text) > MAX_CHARACTERS)
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return Unreadable(problem="a quote or a comment is not closed")
    if backtracking(tokens, dialect) > MAX_BACKTRACKING:
        return Unreadable(problem="too many joins without a condition or nested type calls", too_large=True)
    return _parse(text, dialect, tokens)


def read_as_any(text: str) -> Reading | Unreadable:
    """The statements of a text whose dialect nobody named: as generic SQL, else in the first dialect that reads it.

    Only readings that agree about strings and comments count, so that what is judged is what another database sees;
    where generic SQL finds an open quote, no database without that dialect's own quotes can run the text at all.
    """
    plain = read(text, "")
    if isinstance(plain, Reading) and not _as_text(plain):
        return plain
    if len(text) > MAX_GUESSED or (isinstance(plain, Unreadable) and plain.too_large):
        return plain
    for dialect in LIKELY_DIALECTS:
        other = read(text, dialect)
        if isinstance(other, Reading) and not _as_text(other) and _agree(text, plain.tokens, dialect):
            return other
    return plain


def _as_text(reading: Reading) -> bool:
    """Whether the parser only kept the words: a command, or an expression that is no statement."""
    return any(not isinstance(each, _TAKEN_APART) for each in reading.statements)


def _agree(text: str, plain: Sequence[Token], dialect: str) -> bool:
    return not plain or _quoted(text, plain) == _quoted(text, Dialect.get_or_raise(dialect).tokenize(text))


def _quoted(text: str, tokens: Sequence[Token]) -> set[tuple[int, int]]:
    """Where texts in quotes stand, and where comments begin."""
    quotes = {
        (token.start + offset, token.end)
        for token in tokens
        for offset in (0, 1)
        if token.end > token.start and text[token.start + offset : token.start + offset + 1] in ("'", '"')
    }
    return quotes | {
        (start + offset, -1) for _, start, gap in spoken_gaps(text, tokens) for offset, _, _ in comments_in(gap)
    }


def _unfit(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        return f"longer than {MAX_CHARACTERS} characters"
    if not text.strip():
        return "there is no statement"
    if _UNACCEPTED.search(text):
        return "the text holds a character no database accepts"
    return ""


def _parse(text: str, dialect: str, tokens: Sequence[Token]) -> Reading | Unreadable:
    try:
        plain = with_known_operators(without_comments(text, tokens), tokens)
        trees = _trees(with_named_binds(plain, tokens), dialect, text, tokens)
    except ParseError as error:
        return Unreadable(problem=_where(error), tokens=tokens)
    except RecursionError:
        return Unreadable(problem="nested too deeply", tokens=tokens, too_large=True)
    except PARSER_LEAKS:
        return Unreadable(problem="not valid in this dialect", tokens=tokens)
    statements = tuple(tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon))
    if not statements:
        return Unreadable(problem="there is no statement", tokens=tokens)
    if _larger_than(MAX_NODES, statements):
        return Unreadable(problem="too many terms", tokens=tokens, too_large=True)
    quoted = double_quoted(text, tokens)
    for statement in statements:
        _spell_out_negations(statement)
        statement.meta[DOUBLE_QUOTED] = quoted
    return _unwrapped(Reading(text=text, dialect=dialect, tokens=tokens, statements=statements))


def _trees(written: str, dialect: str, text: str, tokens: Sequence[Token]) -> list[exp.Expr | None]:
    """The statements as they were written down for the parser; what is still as it was sent has its tokens already."""
    reader = Dialect.get_or_raise(dialect)
    return reader.parser().parse(list(tokens) if written == text else reader.tokenize(written), written)


def _spell_out_negations(statement: exp.Expr) -> None:
    """`x IS NOT NULL` as `NOT x IS NULL` in every dialect, so that each rule has one shape to know."""
    for node in list(statement.find_all(exp.Is, exp.Like, exp.ILike)):
        if node.args.get("negate"):
            node.set("negate", None)
            inner = exp.Not()
            node.replace(inner)
            inner.set("this", node)


def _where(error: ParseError) -> str:
    first = error.errors[0] if error.errors else {}
    if "line" not in first:
        return "not valid in this dialect"
    return f"not valid near line {first['line']}, column {first['col']}"


def _larger_than(limit: int, statements: Sequence[exp.Expr]) -> bool:
    count = 0
    for statement in statements:
        for _ in statement.walk():
            count += 1
            if count > limit:
                return True
    return False


def _unwrapped(reading: Reading) -> Reading | Unreadable:
    """EXPLAIN and REPLACE as the statement they run, where the parser hands them over as plain text."""
    root = reading.statements[0]
    if len(reading.statements) > 1:
        return reading
    if isinstance(root, exp.Describe) and isinstance(root.this, exp.Query | exp.DML):
        return replace(reading, statements=(root.this,), prefix="EXPLAIN")
    if not isinstance(root, exp.Command):
        return reading
    body = root.expression.name if isinstance(root.expression, exp.Expr) else str(root.expression or "")
    word = str(root.this).upper()
    if word == "REPLACE":
        return _behind(reading, f"INSERT {body}", word)
    if word == "EXPLAIN":
        return _behind(reading, body[_skip_options(body, reading.dialect) :], word)
    return reading


def _behind(reading: Reading, text: str, prefix: str) -> Reading | Unreadable:
    # Comments before the word stay in the text, so that they are judged too.
    inner = read(reading.text[: reading.tokens[0].start] + text, reading.dialect)
    if isinstance(inner, Unreadable) or inner.prefix:
        return reading
    return replace(inner, prefix=prefix)


def _skip_options(body: str, dialect: str) -> int:
    """Where the statement behind EXPLAIN starts; 0 when something unknown stands before it."""
    depth = 0
    for token in Dialect.get_or_raise(dialect).tokenize(body):
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and token.token_type in _STATEMENT_STARTS:
            return token.start
        elif depth == 0 and token.text.upper() not in _EXPLAIN_WORDS:
            return 0
    return 0

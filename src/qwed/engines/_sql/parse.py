"""SQL parser front end: dialects by name, size limits, and wrapped statements (EXPLAIN, REPLACE)."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from qwed.engines._sql.tokens import (
    backtracking,
    blank_comments,
    double_quoted,
    nesting,
    normalize_binds,
    normalize_operators,
)

# The parser logs text that it cannot parse, and that text may contain secrets.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

MAX_CHARACTERS = 100_000
MAX_NODES = 20_000
MAX_BACKTRACKING = 12
MAX_DEPTH = 100
"""Maximum nesting; it does not depend on the limit of the interpreter."""

DOUBLE_QUOTED = "double_quoted"
"""Key in the root's metadata for texts in double quotes, which the tree itself does not distinguish."""

_PARSED_TYPES = (exp.Query, exp.DML, exp.DDL, exp.Drop, exp.Values, exp.Summarize, exp.Pivot)
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
"""Maximum length of a text that is tried in several dialects."""

# The parser raises these on texts that its grammar does not foresee.
PARSER_ERRORS = (TypeError, AttributeError, ValueError, LookupError, AssertionError, NotImplementedError)
_UNACCEPTED = re.compile("[\0\ud800-\udfff]")
_EXPLAIN_WORDS = frozenset({"ANALYZE", "ANALYSE", "VERBOSE", "QUERY", "PLAN", "EXTENDED", "FORMATTED", "COST"})
_WRAPPERS = frozenset({"EXPLAIN", "REPLACE"})
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
class ParsedSql:
    """Parsed text: its tokens and statements."""

    text: str
    dialect: str
    tokens: Sequence[Token]
    statements: tuple[exp.Expr, ...]
    prefix: str = ""
    """`EXPLAIN` or `REPLACE` if the tree is the statement after that word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnparsableSql:
    """Text that did not parse; `too_large` if parsing was not completed."""

    problem: str
    tokens: Sequence[Token] = ()
    too_large: bool = False


def parse_sql(text: str, dialect: str) -> ParsedSql | UnparsableSql:
    """Parse the statements of `text`, or return the reason it does not parse."""
    problem = _input_problem(text)
    if problem:
        return UnparsableSql(problem=problem, too_large=len(text) > MAX_CHARACTERS)
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return UnparsableSql(problem="a quote or a comment is not closed")
    if nesting(tokens) > MAX_DEPTH:
        return UnparsableSql(problem="nested too deeply", tokens=tokens, too_large=True)
    if backtracking(tokens, dialect) > MAX_BACKTRACKING:
        return UnparsableSql(problem="too many joins without a condition or nested type calls", too_large=True)
    return _parse(text, dialect, tokens)


def parse_any_dialect(text: str) -> ParsedSql | UnparsableSql:
    """Parse a text without a stated dialect: as generic SQL, else in the first dialect that parses it.

    Whether other dialects read strings and comments in the same way is checked afterwards.
    """
    plain = parse_sql(text, "")
    if isinstance(plain, ParsedSql) and not _is_unparsed_text(plain):
        return plain
    if len(text) > MAX_GUESSED or (isinstance(plain, UnparsableSql) and plain.too_large):
        return plain
    for dialect in LIKELY_DIALECTS:
        other = parse_sql(text, dialect)
        if isinstance(other, ParsedSql) and not _is_unparsed_text(other):
            return other
    return plain


def _is_unparsed_text(parsed: ParsedSql) -> bool:
    """Return True if the parser only kept the words: a command, or an expression that is not a statement."""
    return any(not isinstance(statement, _PARSED_TYPES) for statement in parsed.statements)


def _input_problem(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        return f"longer than {MAX_CHARACTERS} characters"
    if not text.strip():
        return "there is no statement"
    if _UNACCEPTED.search(text):
        return "the text contains a character that no database accepts"
    return ""


def _parse(text: str, dialect: str, tokens: Sequence[Token]) -> ParsedSql | UnparsableSql:
    try:
        plain = normalize_operators(blank_comments(text, tokens), tokens)
        trees = _trees(normalize_binds(plain, tokens), dialect, text, tokens)
    except ParseError as error:
        return UnparsableSql(problem=_error_position(error), tokens=tokens)
    except RecursionError:
        return UnparsableSql(problem="nested too deeply", tokens=tokens, too_large=True)
    except PARSER_ERRORS:
        return UnparsableSql(problem="not valid in this dialect", tokens=tokens)
    statements = tuple(tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon))
    if not statements:
        return UnparsableSql(problem="there is no statement", tokens=tokens)
    if _larger_than(MAX_NODES, statements):
        return UnparsableSql(problem="too many terms", tokens=tokens, too_large=True)
    quoted = double_quoted(text, tokens)
    for statement in statements:
        _spell_out_negations(statement)
        statement.meta[DOUBLE_QUOTED] = quoted
    return _unwrap(ParsedSql(text=text, dialect=dialect, tokens=tokens, statements=statements))


def _trees(normalized: str, dialect: str, text: str, tokens: Sequence[Token]) -> list[exp.Expr | None]:
    """Parse the normalised text; the original tokens are reused if it is unchanged."""
    reader = Dialect.get_or_raise(dialect)
    return reader.parser().parse(list(tokens) if normalized == text else reader.tokenize(normalized), normalized)


def _spell_out_negations(statement: exp.Expr) -> None:
    """Rewrite `x IS NOT NULL` as `NOT x IS NULL` in every dialect, so that rules handle one form."""
    for node in list(statement.find_all(exp.Is, exp.Like, exp.ILike)):
        if node.args.get("negate"):
            node.set("negate", None)
            inner = exp.Not()
            node.replace(inner)
            inner.set("this", node)


def _error_position(error: ParseError) -> str:
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


def _unwrap(parsed: ParsedSql) -> ParsedSql | UnparsableSql:
    """Replace EXPLAIN and REPLACE by the statement they run, where the parser returns them as text."""
    root = parsed.statements[0]
    if len(parsed.statements) > 1:
        return parsed
    if isinstance(root, exp.Describe) and isinstance(root.this, exp.Query | exp.DML):
        return replace(parsed, statements=(root.this,), prefix="EXPLAIN")
    if not isinstance(root, exp.Command):
        return parsed
    body = root.expression.name if isinstance(root.expression, exp.Expr) else str(root.expression or "")
    word = str(root.this).upper()
    if word == "REPLACE":
        return _parse_wrapped(parsed, f"INSERT {body}", word)
    if word == "EXPLAIN":
        return _parse_wrapped(parsed, body[_skip_options(body, parsed.dialect) :], word)
    return parsed


def _parse_wrapped(parsed: ParsedSql, text: str, prefix: str) -> ParsedSql | UnparsableSql:
    if text.split(None, 1)[:1] and text.split(None, 1)[0].upper() in _WRAPPERS:
        return parsed
    # Comments before the word stay in the text, so that they are checked too.
    inner = parse_sql(parsed.text[: parsed.tokens[0].start] + text, parsed.dialect)
    if isinstance(inner, UnparsableSql) or inner.prefix:
        return parsed
    return replace(inner, prefix=prefix)


def _skip_options(body: str, dialect: str) -> int:
    """Return the position of the statement after EXPLAIN; 0 if something unknown precedes it."""
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

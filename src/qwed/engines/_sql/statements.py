"""Statements of a text for a database client, which may be several."""

from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

MAX_STATEMENTS = 100


def split_statements(text: str, dialect: str) -> list[str] | None:
    """Return the statements between semicolons, or None if the text cannot be read in the dialect."""
    try:
        tokens = Dialect.get_or_raise(dialect or None).tokenize(text)
    except (SqlglotError, ValueError):
        return None
    ends = [token.start for token in tokens if token.token_type is TokenType.SEMICOLON]
    starts = [0, *(end + 1 for end in ends)]
    statements = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    plain = [statement.strip() for statement in statements if statement.strip()]
    return plain if len(plain) <= MAX_STATEMENTS else None

"""Recognises SQL statements in text, to find those that no analyzer reads."""

import re
from itertools import islice

from qwed.guards.text_scan import strings_in
from qwed.kernel.request import Action
from qwed.model.data_files import read_patterns

_SQL_ENGINE_PARAMETERS = frozenset(
    {"query", "sql", "statement", "sql_query", "schema_ddl", "dialect", "allowed_tables"}
)
"""Parameters that the sql engine reads."""

_COMMENT = re.compile(r"/\*(?!M?!)[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)|/\*M?!\d*|\*/|--[^\n]*+(?:\n|$)|\#[^\n]*+\n")
"""Text that a database ignores; for an executable comment of MySQL or MariaDB, only its delimiters."""
_LEADING_NOISE = re.compile(r"[\s;(\ufeff\u200b-\u200d\u2060]*+")
_NEXT_STATEMENT = re.compile(
    r";\s*(?=(?:drop|delete|truncate|insert|replace|update|alter|create|grant|revoke|merge|exec|call|copy|load|if|set"
    r"|select|with|shutdown|attach|vacuum|do|begin|rename)\b)",
    re.IGNORECASE,
)
_MAX_STATEMENTS = 100
"""Number of further statements that are checked."""
_MAX_STATEMENT_LENGTH = 4096
"""Characters of a statement that are checked."""
((_, _FORMS),) = read_patterns(__file__, "statements.txt")
_STATEMENT = re.compile(rf"(?:{'|'.join(_FORMS)})", re.IGNORECASE | re.DOTALL)


def is_statement(text: str) -> bool:
    """Return True if a database would execute this text, or a part after a `;`, as a statement."""
    plain = _without_comments(text)
    if _STATEMENT.match(plain, 0, _MAX_STATEMENT_LENGTH):
        return True
    starts = (match.end() for match in islice(_NEXT_STATEMENT.finditer(plain), _MAX_STATEMENTS))
    return any(_STATEMENT.match(plain, start, start + _MAX_STATEMENT_LENGTH) for start in starts)


def may_select(text: str) -> bool:
    """Return True if the text may be a reading query or a sentence: only a parser can decide."""
    return _SELECT.match(_without_comments(text)) is not None


_SELECT = re.compile(
    r"select\b[^;]{0,4000}?(?:[(@*'\"=,]|\b(?:into|union|from)\b)|select\s+\S+\s*;?\s*$|values\s*\(|table\s+\w+\s*;?\s*$"
    r"|with\s+(?:recursive\s+)?\S+[^;]{0,400}?\bas\b",
    re.IGNORECASE,
)


def _without_comments(text: str) -> str:
    """Return the text without comments and leading noise."""
    return _LEADING_NOISE.sub("", _COMMENT.sub(" ", text).lstrip(), count=1)


def has_statement(action: Action) -> bool:
    """Return True if the action has a statement outside the parameters that the sql engine reads."""
    texts = [(path, text) for path, text in strings_in(action.parameters) if path not in _SQL_ENGINE_PARAMETERS]
    return any(is_statement(text) for _path, text in [*texts, ("", action.target or "")])

"""PostgreSQL accepts every statement of the store, and stores values as SQLite does."""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest

import qwed.store
from qwed.domain import change_parts
from qwed.domain.access_lists import ListName
from qwed.model import Decision
from qwed.store import (
    base,
    batch_job_table,
    change_handlers,
    data_subjects,
    entity_cache,
    log,
    outbox,
    snapshot_reader,
    sql,
    token_buckets,
)
from qwed.store.columns import COLUMNS, PRIMARY_KEYS, insert, select, upsert
from qwed.store.postgres.dialect import POSTGRES_STATEMENTS, is_storable, translate

Connection = psycopg.Connection[Any]
MODULES = (
    sql,
    change_handlers,
    log,
    batch_job_table,
    outbox,
    data_subjects,
    base,
    token_buckets,
    entity_cache,
    snapshot_reader,
)
_STATEMENT = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE)\s")
_OF_SQLITE = re.compile(r"sqlite_|INTO write_batch")
_ERASURE = change_handlers.statements_of((change_parts.SubjectErased("org_1", "name", 1.0, "stated"),))


def _constants(module: ModuleType) -> Iterator[str]:
    for value in vars(module).values():
        yield from (text for text in (value if isinstance(value, tuple) else (value,)) if isinstance(text, str))


def _literals(file: Path) -> Iterator[str]:
    """Yield the string literals of a file, without parts of larger texts."""
    tree = ast.parse(file.read_text())
    pieces = {
        id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.BinOp) for piece in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield node.value


def _every() -> list[str]:
    store = Path(qwed.store.__file__).parent
    statements = {text for module in MODULES for text in _constants(module)}
    statements |= {text for file in store.glob("*.py") for text in _literals(file)}
    statements |= {statement for statement, _values in _ERASURE}
    statements |= {insert(table) for table in COLUMNS} | {select(table, "") for table in COLUMNS}
    statements |= {upsert(table) for table in PRIMARY_KEYS}
    return sorted(text for text in statements if _STATEMENT.match(text) and not _OF_SQLITE.search(text))


STATEMENTS = [text for text in _every() if not text.rstrip().endswith((",", "WHERE", "FROM"))]


def _prepared(connection: Connection, statement: str) -> str | None:
    """Return PostgreSQL's error for a statement, or None."""
    numbers = itertools.count(1)
    text = re.sub("%s", lambda _: f"${next(numbers)}", translate(statement)).replace("%%", "%")
    try:
        connection.execute(f"PREPARE asked AS {text}".encode())
        connection.execute("DEALLOCATE asked")
    except psycopg.Error as error:
        return f"{text}: {error}"
    return None


def test_every_statement_is_understood(connection: Connection) -> None:
    assert len(STATEMENTS) > 120
    assert [error for statement in STATEMENTS if (error := _prepared(connection, statement))] == []


def test_what_differs_is_a_statement_of_the_store() -> None:
    assert set(POSTGRES_STATEMENTS) <= set(STATEMENTS)


def test_a_statement_is_translated_once() -> None:
    assert translate(sql.SELECT_AGENT) is translate(sql.SELECT_AGENT)
    assert translate("SELECT '100 %' WHERE a = ? AND b.c ->> 'd' = ?") == (
        "SELECT '100 %%' WHERE a = %s AND CAST(b.c AS JSON) ->> 'd' = %s"
    )


# Values


def _back(connection: Connection, kind: str, value: Any) -> Any:
    connection.execute(f"CREATE TEMP TABLE one (v {kind})".encode())
    connection.execute("INSERT INTO one VALUES (%s)", (value,))
    row = connection.execute("SELECT v FROM one WHERE v = %s", (value,)).fetchone()
    return None if row is None else row[0]


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("BIGINT", 0, 0),
        ("BIGINT", -(2**63), -(2**63)),
        ("BIGINT", 2**63 - 1, 2**63 - 1),
        ("BIGINT", True, 1),
        ("BIGINT", False, 0),
        ("DOUBLE PRECISION", 3, 3.0),
        ("DOUBLE PRECISION", 0.1 + 0.2, 0.1 + 0.2),
        ("TEXT", "", ""),
        ("TEXT", "é\U0001f600\x01\n", "é\U0001f600\x01\n"),
        ("TEXT", Decision.APPROVED, "APPROVED"),
        ("TEXT", ListName.BLOCKS, "blocks"),
        ("BYTEA", b"", b""),
        ("BYTEA", bytes(range(256)), bytes(range(256))),
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was_written(connection: Connection, kind: str, value: Any, kept: Any) -> None:
    result = _back(connection, kind, value)
    assert (result, type(result)) == (kept, type(kept))


def test_every_whole_number_is_of_one_kind(connection: Connection) -> None:
    """Otherwise a statement is prepared once per size of its numbers."""
    for number in (1, 70_000, 2**40, True):
        assert connection.execute("SELECT pg_typeof(%s)::text", (number,)).fetchone() == ("bigint",)


def test_a_number_that_is_too_large_is_refused(connection: Connection) -> None:
    with pytest.raises(psycopg.DataError):
        _back(connection, "BIGINT", 2**63)


@pytest.mark.parametrize("text", ["", "plain", "é", "\x01", "\ufffe", "\U0010ffff"], ids=ascii)
def test_text_that_can_be_held(text: str) -> None:
    assert is_storable(("a", 1, None, b"\x00", text))


@pytest.mark.parametrize(
    "text", ["\x00", "a\x00", "\ud800", "é\udfff", "x" * 1_000 + "\udc80"], ids=lambda text: ascii(text)[-8:]
)
def test_text_that_cannot_be_held(connection: Connection, text: str) -> None:
    assert not is_storable(("a", text))
    with pytest.raises((psycopg.DataError, UnicodeEncodeError)):
        connection.execute("SELECT %s::text", (text,))

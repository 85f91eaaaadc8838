"""One target for each parser: its input, its allowed errors, and its time limit.

A target returns for every input; an exception is a finding. Each target has its own imports, so that a run loads and
instruments only what it fuzzes.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, NamedTuple

from tests.support.case_tables import DATA

Target = Callable[[bytes], object]


class Row(NamedTuple):
    """Target, its number of runs in a drill, its longest input, and the tables of its first inputs."""

    make: Callable[[], Target]
    runs: int
    longest: int
    seeds: tuple[str, ...]
    seconds: float = 2.0
    """CPU seconds that one input may take."""
    files: Callable[[], list[bytes]] = list
    """Further first inputs that are not texts."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def math() -> Target:
    from qwed.engines._math.notation import normalize_notation
    from qwed.engines._math.parser import parse
    from qwed.engines._math.syntax_tree import MathRefusalError
    from qwed.engines.arithmetic import verify_quick

    def target(data: bytes) -> object:
        text = _text(data)
        with suppress(MathRefusalError):
            parse(normalize_notation(text))
        with suppress(MathRefusalError):
            parse(normalize_notation(text), in_units=True)
        return verify_quick(text)

    return target


def logic() -> Target:
    from qwed.engines._logic.notation import parse_text
    from qwed.engines._logic.predicate_names import unify_vocabulary
    from qwed.engines._logic.sexpr import LogicRefusalError, NotFormalError

    def target(data: bytes) -> object:
        with suppress(LogicRefusalError, NotFormalError):
            unify_vocabulary([parse_text(_text(data))])
        return None

    return target


_SCRATCH = """
CREATE TABLE users (id INTEGER, name TEXT, email TEXT, age INTEGER);
CREATE TABLE orders (id INTEGER, user_id INTEGER, total INTEGER, note TEXT);
CREATE TABLE t (id INTEGER, a INTEGER, b TEXT);
INSERT INTO users VALUES (1, 'n', 'e', 20), (2, 'm', 'f', 30);
INSERT INTO orders VALUES (1, 1, 10, 'x');
INSERT INTO t VALUES (1, 2, 'b');
"""


def _state_after(query: str) -> list[str] | None:
    """Return the whole scratch database after a query, or None if sqlite refuses it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(_SCRATCH)
        steps = iter(range(200))
        connection.set_progress_handler(lambda: next(steps, None) is None, 1000)
        if query:
            try:
                connection.execute(query).fetchmany(100)
            except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError):
                return None
        connection.set_progress_handler(None, 0)
        return [*connection.iterdump()]


def sql() -> Target:
    from qwed.engines.protocol import EngineRequest
    from qwed.engines.sql import verify
    from qwed.model import EffectKind

    before = _state_after("")
    dialects = ("sqlite", "", "postgres", "mysql", "duckdb", "tsql")

    def target(data: bytes) -> object:
        query, dialect = _text(data), dialects[len(data) % len(dialects)]
        verdict = verify(EngineRequest(query=query, parameters={"dialect": dialect}))
        only_reads = verdict.verified and {effect.kind for effect in verdict.effects} <= {EffectKind.READ}
        if only_reads and (after := _state_after(query)) is not None:
            assert after == before, "a query that only reads changed the database"
        return verdict

    return target


def fact() -> Target:
    from qwed.engines.fact import verify
    from qwed.engines.protocol import EngineRequest

    def target(data: bytes) -> object:
        claim, _, context = _text(data).partition("\n")
        return verify(EngineRequest(query=claim, parameters={"context": context or claim}))

    return target


def csv() -> Target:
    from qwed.engines._stats.table_files import open_sheet
    from qwed.engines.uploads import UploadError

    formats = (None, "csv", "tsv", "json")

    def target(data: bytes) -> object:
        with suppress(UploadError):
            open_sheet(data, formats[len(data) % len(formats)])
        return None

    return target


def image() -> Target:
    from qwed.engines._image.loader import open_picture
    from qwed.engines.uploads import UploadError

    def target(data: bytes) -> object:
        with suppress(UploadError):
            picture = open_picture(data)
            return picture.notes
        return None

    return target


def strict_json() -> Target:
    from qwed.api.server.body import RequestRejectedError, parse_json
    from qwed.model.canonical import CanonicalJsonError, canonical
    from qwed.model.strict_json import StrictJsonError, parse_strict_json

    def target(data: bytes) -> object:
        with suppress(StrictJsonError):
            parse_strict_json(data, "it")
        with suppress(RequestRejectedError, CanonicalJsonError):
            text = canonical(parse_json(data))
            assert canonical(parse_json(text)) == text, "canonical JSON is not its own canonical form"
        return None

    return target


def jwt() -> Target:
    from qwed.ledger.verifier import InvalidEvidenceError, open_jws, read_leaf

    def target(data: bytes) -> object:
        text = _text(data)
        with suppress(InvalidEvidenceError):
            open_jws(text, "qwed-attestation+jwt", None)
        with suppress(InvalidEvidenceError):
            read_leaf(text)
        return None

    return target


def shell() -> Target:
    from qwed.guards.shell import findings

    return lambda data: findings(_text(data))


def python() -> Target:
    from qwed.guards.python_code import findings

    return lambda data: findings(_text(data))


def javascript() -> Target:
    from qwed.guards.javascript_code import findings

    return lambda data: findings(_text(data), typescript=len(data) % 2 == 1)


def path() -> Target:
    from qwed.guards.path import resolve

    return lambda data: resolve(_text(data), ("/data", "/srv/files"))


def route() -> Target:
    from qwed.engines.router import route as routed

    return lambda data: routed(_text(data))


def _sheets() -> list[bytes]:
    return [path.read_bytes()[:400] for path in sorted((DATA / "files").iterdir())]


def _pictures() -> list[bytes]:
    from tests.unit.engines.sample_images import PICTURES

    return [content for make in PICTURES.values() if len(content := make()) <= 2_000]


TARGETS: dict[str, Row] = {
    "math": Row(math, 20_000, 200, ("math_true", "math_false", "math_hostile")),
    "logic": Row(logic, 10_000, 300, ("logic_true", "logic_false", "logic_undecided", "logic_hostile")),
    "sql": Row(sql, 1_500, 200, ("sql_honest", "sql_attacks", "sql_payloads"), seconds=5.0),
    "fact": Row(fact, 3_000, 300, ("fact_supported", "fact_refuted", "fact_hostile"), seconds=5.0),
    "csv": Row(csv, 20_000, 400, (), files=_sheets),
    "image": Row(image, 5_000, 2_000, (), files=_pictures),
    "strict_json": Row(strict_json, 30_000, 300, ("hook", "tokens")),
    "jwt": Row(jwt, 30_000, 600, ("tokens",)),
    "shell": Row(shell, 3_000, 200, ("shell_attacks", "shell_honest"), seconds=5.0),
    "python": Row(python, 2_000, 300, ("python_attacks", "python_honest"), seconds=5.0),
    "javascript": Row(javascript, 2_000, 300, ("javascript_attacks", "javascript_honest"), seconds=5.0),
    "path": Row(path, 20_000, 120, ("path_attacks", "path_honest")),
    "route": Row(route, 20_000, 400, ("router", "sql_honest", "math_true")),
}


def seeds_of(table: list[dict[str, Any]], longest: int) -> list[bytes]:
    """Return the short texts of a case table, in each form that the targets split."""
    texts = {value for row in table for value in _texts(row) if 0 < len(value) <= longest}
    pairs = {f"{row['claim']}\n{row['context']}" for row in table if {"claim", "context"} <= row.keys()}
    return [each.encode("utf-8", "replace")[:longest] for each in sorted(texts | pairs)]


def _texts(row: dict[str, Any]) -> list[str]:
    return [value for value in row.values() if isinstance(value, str)]

"""Inputs of the SQL oracle: tables, mutations of them, generated queries, calls of all functions, lexical tricks."""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from tests.oracle import sql_grammar
from tests.oracle.predictions import predict_sql
from tests.oracle.sql_execution import databases
from tests.oracle.sql_oracle import LIMITS, STATED, UNKNOWN, SqlInput, stated_dialect
from tests.oracle.tables import load
from tests.support.case_tables import DATA

_TABLE = load("sql")
_COLUMNS = _TABLE["columns"]
_EXPRESSIONS = _TABLE["expressions"]
_RELATIONS = _TABLE["relations"]
_ENDS = _TABLE["ends"]
_STATEMENTS = _TABLE["statements"]
_TRICKS = _TABLE["tricks"]
_VALUES = _TABLE["values"]
_WRAPPERS = _TABLE["wrappers"]


@cache
def tables() -> tuple[str, ...]:
    """Return the statements of every SQL table."""
    texts: list[str] = []
    for path in sorted(DATA.glob("sql*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            given = row.get("query") or row.get("input") or ""
            texts.append(given["query"] if isinstance(given, dict) else given)
            texts += (
                [f"SELECT id FROM users WHERE name = '{row['payload']}'"] if isinstance(row.get("payload"), str) else []
            )
    return tuple(dict.fromkeys(_on_our_tables(text) for text in texts if isinstance(text, str) and 0 < len(text) < 600))


_TABLE_NAME = re.compile(r"\b(FROM|JOIN|INTO|UPDATE|TABLE)\s+([A-Za-z_]+)\b", re.IGNORECASE)
_OURS = ("users", "orders", "secrets")


def _on_our_tables(text: str) -> str:
    """Let a statement name tables that exist, so that it can run."""

    def rename(match: re.Match[str]) -> str:
        name = match[2].lower()
        known = name in _OURS or name.startswith(("pg_", "select", "information"))
        return match[0] if known else f"{match[1]} {_OURS[len(name) % 2]}"

    return _TABLE_NAME.sub(rename, text)


def _query(rng: random.Random) -> str:
    columns = ", ".join(_expression(rng) for _ in range(rng.choice((1, 1, 2, 3))))
    kind = rng.choice(("", "", "", "DISTINCT ", "ALL ", "TOP 1 "))
    return f"SELECT {kind}{columns} FROM {rng.choice(_RELATIONS)} {rng.choice(_ENDS)}".strip()


def _expression(rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.6:
        return str(rng.choice(_COLUMNS))
    if draw < 0.8:
        return f"{rng.choice(sql_grammar.function_names())}({rng.choice(_VALUES)})"
    return str(rng.choice(_EXPRESSIONS))


def _call(rng: random.Random) -> str:
    call = f"{rng.choice(sql_grammar.function_names())}({rng.choice(_VALUES)})"
    return rng.choice(
        (
            "SELECT {}",
            "SELECT {}",
            "SELECT * FROM {}",
            "SELECT {} FROM users",
            "SELECT name FROM users WHERE {} IS NULL",
            "SELECT * FROM {} AS t",
            "CALL {}",
        )
    ).format(call)


def _soup(rng: random.Random) -> str:
    parts = [
        "SELECT ",
        *(rng.choice(_TRICKS) for _ in range(rng.randrange(1, 7))),
        rng.choice(("", f"; {rng.choice(_STATEMENTS)}", f"; {rng.choice(_STATEMENTS[:6])}")),
    ]
    parts += [rng.choice(_TRICKS) for _ in range(rng.randrange(0, 4))]
    return "".join(parts)


def _wrapped(rng: random.Random, text: str) -> str:
    return str(rng.choice(_WRAPPERS)).replace("{}", text)


def _edited(rng: random.Random, text: str, known: Sequence[str]) -> str:
    parts = re.findall(r"\s+|\w+|.", text)
    place = rng.randrange(len(parts))
    choice = rng.random()
    if choice < 0.3:
        parts[place] = rng.choice(_TRICKS)
    elif choice < 0.5:
        parts.insert(place, rng.choice(_TRICKS))
    elif choice < 0.7:
        donor = re.findall(r"\s+|\w+|.", rng.choice(known))
        start = rng.randrange(len(donor))
        parts[place:place] = donor[start : start + rng.randrange(1, 6)]
    elif choice < 0.85:
        parts[place] = rng.choice((*_COLUMNS, *_VALUES, *_RELATIONS))
    else:
        del parts[place]
    return "".join(parts)


def generate(seed: int, extra: Sequence[str] = ()) -> Iterator[SqlInput]:
    """Yield statements without end, each with permissions."""
    rng = random.Random(seed)
    known = [*tables(), *(_on_our_tables(text) for text in extra)]
    makers: tuple[Callable[[], str], ...] = (
        lambda: _query(rng),
        lambda: _query(rng),
        lambda: _call(rng),
        lambda: _soup(rng),
        lambda: sql_grammar.divided(rng, _TRICKS, _STATEMENTS),
        lambda: sql_grammar.typed_call(rng),
        *[lambda: sql_grammar.query(rng)] * 4,
        lambda: _wrapped(rng, sql_grammar.query(rng)),
        lambda: _edited(rng, sql_grammar.query(rng), known),
        lambda: _wrapped(rng, rng.choice(_STATEMENTS)),
        lambda: _wrapped(rng, rng.choice(known)),
        lambda: _edited(rng, rng.choice(known), known),
        lambda: _edited(rng, _query(rng), known),
        lambda: rng.choice(known),
    )
    while True:
        text = rng.choice(makers)()
        if text.strip():
            yield SqlInput(text, rng.choice(LIMITS))


def every_call(seed: int) -> Iterator[SqlInput]:
    """Yield calls of every function of every database, each with permissions."""
    rng = random.Random(seed)
    for text in sql_grammar.every_call(rng):
        yield SqlInput(text, rng.choice(LIMITS))


def select(seed: int, inputs: Iterator[SqlInput], one_in: int = 20) -> Iterator[SqlInput]:
    """Yield what is predicted to be harmless for one dialect or none, and one in `one_in` of the others; each once."""
    rng = random.Random(seed)
    seen: set[int] = set()
    dialects = (UNKNOWN, STATED, *databases())
    for row in inputs:
        if hash(row) in seen:
            continue
        seen.add(hash(row))
        # To ask for every dialect takes longer than to run the statement.
        dialect, stated = rng.choice(dialects), ""
        if dialect == STATED:
            dialect, stated = UNKNOWN, stated_dialect(row.statement)
        if predict_sql(row.statement, dialect, row.limits, stated).is_harmless or rng.random() * one_in < 1:
            yield row

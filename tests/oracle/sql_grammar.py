"""Generator of queries from a grammar, of calls with arguments of their types, and of texts that databases read
differently."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from tests.oracle.sql_execution import Signature, functions
from tests.oracle.tables import load

_GRAMMAR = load("sql_grammar")
_CALLS = load("sql_calls")
_NONTERMINAL = re.compile(r"<([a-z_]+)>")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_DEPTH = 5
_LONGEST = 400


def query(rng: random.Random) -> str:
    """Return a query from the grammar; most are about what databases read in different ways."""
    start = rng.choice(("query", "query", "query", "statement"))
    return re.sub(r" {2,}", " ", _expanded(rng, start, rng.randrange(_DEPTH)))[:_LONGEST]


def _expanded(rng: random.Random, name: str, depth: int) -> str:
    """Return one alternative of a rule, the first one where the nesting ends."""
    if name == "function":
        return rng.choice(function_names())
    rules = _GRAMMAR[name]
    return _NONTERMINAL.sub(
        lambda match: _expanded(rng, match[1], depth + 1), rng.choice(rules) if depth < _DEPTH else rules[0]
    )


@cache
def function_names() -> tuple[str, ...]:
    """Return the names of the functions of all databases."""
    return tuple(sorted({row.name for rows in signatures().values() for row in rows}))


@cache
def signatures() -> Mapping[str, Sequence[Signature]]:
    """Return the functions of each database that can be called by a plain name."""
    return {name: [row for row in rows if _PLAIN_NAME.fullmatch(row.name)] for name, rows in functions().items()}


def typed_call(rng: random.Random) -> str:
    """Return a query that calls a function of one database with arguments of the types that it takes."""
    listed = signatures()
    chosen = rng.choice(listed[rng.choice(sorted(listed))])
    call = f"{chosen.name}({', '.join(argument(rng, kind) for kind in chosen.types)})"
    return str(rng.choice(_CALLS["places"])).replace("{}", call)


def every_call(rng: random.Random) -> Iterator[str]:
    """Yield calls of every function of every database, and each as if it were a column of a row."""
    for rows in signatures().values():
        for row in rows:
            call = f"{row.name}({', '.join(argument(rng, kind) for kind in row.types)})"
            yield f"SELECT {call}"
            yield f"SELECT {call} FROM users u"
            yield f"SELECT * FROM {call}"
            yield f"SELECT u.{row.name} FROM users u"


def argument(rng: random.Random, kind: str) -> str:
    """Return a value for a parameter of this type."""
    for name, values in _CALLS.items():
        if name != "places" and re.search(rf"\b(?:{name})", kind.lower()):
            return str(rng.choice(values))
    return str(rng.choice(_CALLS["any"]))


def divided(rng: random.Random, openers: Sequence[str], deeds: Sequence[str]) -> str:
    """Return a text in which quotes or comments hide a deed from some databases."""
    marks = [rng.choice(openers) for _ in range(4)]
    blanks = [rng.choice(("", " ", "\n", "a", "\\")) for _ in range(3)]
    return f"SELECT {marks[0]}{blanks[0]}{marks[1]}; {rng.choice(deeds)}{blanks[1]}{marks[2]}{blanks[2]}{marks[3]}"

"""Table of all operators of the logic language (INTERFACES 3)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operator:
    """Row of the operator table: number and types of arguments, and type of the result."""

    name: str
    least: int
    most: int | None
    takes: str
    gives: str


def _rows(takes: str, gives: str, least: int, most: int | None, *spellings: str) -> dict[str, Operator]:
    """Return rows for the spellings; each is `NAME` or `NAME|ALIAS|...`, and the first is canonical."""
    table = {}
    for spelling in spellings:
        first, *aliases = spelling.split("|")
        table.update(dict.fromkeys([first, *aliases], Operator(first, least, most, takes, gives)))
    return table


OPERATORS: dict[str, Operator] = {
    **_rows("bool", "bool", 2, None, "AND", "OR"),
    **_rows("bool", "bool", 1, 1, "NOT"),
    **_rows("bool", "bool", 2, 2, "IMPLIES", "IFF", "XOR"),
    **_rows("same", "bool", 2, 2, "EQ|=|==", "NE|NEQ|!="),
    **_rows("number", "bool", 2, 2, "GT|>", "LT|<", "GE|GTE|>=", "LE|LTE|<="),
    **_rows("number", "number", 2, None, "PLUS|+", "TIMES|MULT|*"),
    **_rows("number", "number", 2, 2, "MINUS|-", "DIV|/", "MOD", "POW"),
    **_rows("number", "number", 1, 1, "NEG", "ABS"),
    **_rows("choice", "choice", 3, 3, "IF"),
    **_rows("special", "special", 2, 2, "FORALL", "EXISTS", "LET", "VAR"),
}

WHOLE = Operator("WHOLE", 1, 1, "number", "bool")
"""Operator for `x is an integer`, which only the English parser generates."""

"""INTERFACES 3: every operator of the logic language, one row each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operator:
    """A row of the operator table: how many arguments, of what, giving what."""

    name: str
    least: int
    most: int | None
    takes: str
    gives: str


def _rows(takes: str, gives: str, least: int, most: int | None, *spellings: str) -> dict[str, Operator]:
    """Each spelling is `NAME` or `NAME|ALIAS|...`; the first is canonical."""
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
"""`x is an integer`: only the English reader writes it."""

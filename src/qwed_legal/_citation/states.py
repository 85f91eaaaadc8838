"""States and territories of the United States as written in citations (The Bluebook, table T10)."""

from functools import cache

from qwed.model.data_files import read_table

_TABLE = read_table(__file__, "states.txt")


@cache
def states() -> dict[str, str]:
    """Return the state codes by abbreviation and by name, without blanks and dots."""
    rows = (line.split(" ", 1) for line in _TABLE.strip().splitlines())
    return {name.replace(" ", "").replace(".", ""): code for code, names in rows for name in names.split("|")}


@cache
def state_names() -> tuple[str, ...]:
    """Return every abbreviation and name, the longest first."""
    rows = (line.split(" ", 1)[1].split("|") for line in _TABLE.strip().splitlines())
    return tuple(sorted((name for row in rows for name in row), key=len, reverse=True))

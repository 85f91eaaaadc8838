"""Check that every statement has its test and that the page is up to date; print the differences."""

import difflib
import sys
from collections.abc import Iterator

from tests.conformance.checks import unread, untrue
from tests.conformance.page import PAGE, page
from tests.conformance.statements import Tables, read


def complaints() -> list[str]:
    """Return one line for each fault."""
    try:
        tables = read()
        return [*untrue(tables), *unread(tables)] or [*_difference(tables)]
    except (ValueError, SyntaxError) as error:
        return [str(error)]


def _difference(tables: Tables) -> Iterator[str]:
    drawn, kept = page(tables), PAGE.read_text() if PAGE.exists() else ""
    if drawn != kept:
        yield f"{PAGE.name} is out of date: run make docs"
        yield from difflib.unified_diff(kept.splitlines(), drawn.splitlines(), "kept", "drawn", n=0, lineterm="")


if __name__ == "__main__":
    found = complaints()
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.exit(bool(found))

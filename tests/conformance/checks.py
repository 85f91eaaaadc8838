"""Checks of the tables: each named test exists, each test is named, and no part of the documents is missing."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conformance.statements import TESTS, Tables, faults, section_titles

SEEDS = TESTS.parent.parent / "shared" / "seeds"
"""Where the documents themselves lie, if they do."""
NUMBERS = {"000": "guide", "001": "spec", "002": "a2a", "003": "sdk", "004": "mcp"}
"""The documents by the number their file begins with."""
READ_OUT = ("spec/test_*.py", "seeds/test_*.py", "frameworks/crewai/test_seed_blocks.py")
"""The tests that read the documents out: each is there for some statement."""
ABOUT_TESTS = frozenset({"spec/test_coverage.py"})

_CODE = re.compile(r"QWED(?:-[A-Z]+)+-\d{3}")
_KEY = re.compile(r'"(\w+)":')
_NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
_PATH = re.compile(r"/agents/[a-z:/_-]+")
_CELL = re.compile(r"^\|? ?([^|\n]+?) \|", re.MULTILINE)


@cache
def tests_in(file: Path) -> frozenset[str]:
    """Return the names of the test functions of a module without importing it."""
    nodes = ast.walk(ast.parse(file.read_text(), file.name)) if file.exists() else ()
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))


def untrue(tables: Tables) -> Iterator[str]:
    """Return every fault of the tables that can be found without the documents."""
    for name, table in tables.items():
        yield from faults(name, table)
    yield from missing(tables)
    yield from unheard(tables)
    yield from unsaid(tables)
    yield from unruled(tables)
    yield from (f"no statement names {place}" for place in unnamed(tables))


def missing(tables: Tables) -> Iterator[str]:
    """Return the named tests that do not exist."""
    for place in sorted(_named(tables)):
        module, _, test = place.partition("::")
        if test not in tests_in(TESTS / module):
            yield f"there is no test {place}"


def unnamed(tables: Tables) -> list[str]:
    """Return the tests marked with `@spec` that no statement names."""
    modules = {file.relative_to(TESTS).as_posix(): file for where in READ_OUT for file in TESTS.glob(where)}
    places = {f"{name}::{test}" for name in modules.keys() - ABOUT_TESTS for test in tests_in(modules[name])}
    return sorted(places - _named(tables))


def _named(tables: Tables) -> set[str]:
    return {place for table in tables.values() for each in table.statement for place in each.tests}


def unheard(tables: Tables) -> Iterator[str]:
    """Return the sections without a statement."""
    for name, table in tables.items():
        kept = {each.section for each in table.statement}
        yield from (f"{name}: no statement of section {each}" for each in section_titles(name) if each not in kept)


def unsaid(tables: Tables) -> Iterator[str]:
    """Return the words of a document that none of its statements contains."""
    for name, table in tables.items():
        said = "\n".join(each.says for each in table.statement).replace("`", "")
        yield from (f"{name}: no statement says `{word}`" for word in table.words if not _contains(said, word))


def _contains(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def unruled(tables: Tables) -> Iterator[str]:
    """Return the rulings that statements follow but that the table of rulings lacks."""
    if "rulings" in tables:
        rulings = {each.section for each in tables["rulings"].statement}
        followed = {each.ruling for table in tables.values() for each in table.statement if each.ruling}
        yield from (f"rulings: nothing is kept of {each}" for each in sorted(followed - rulings))


def unread(tables: Tables, seeds: Path = SEEDS) -> Iterator[str]:
    """Return the words of a document that its word list lacks; nothing if the documents are not available."""
    for file in sorted(seeds.glob("*.txt")):
        name = NUMBERS.get(file.name[:3], "")
        if name in tables and tables[name].words:
            new = sorted(words_of(file.read_text()) - {*tables[name].words, *tables[name].examples})
            yield from (f"{name}: `{word}` is a word of {file.name} and not of the table" for word in new)


def words_of(text: str) -> set[str]:
    """Return what a document names: codes, fields, tools, paths, and the first cell of every row of a table."""
    plain = text.replace("\\_", "_").replace("`", "")
    found = {word for pattern in (_CODE, _KEY, _NAME) for word in pattern.findall(plain)}
    found |= {path.rstrip("/") for path in _PATH.findall(plain)}
    cells = (cell.strip("* ") for cell in _CELL.findall(plain))
    return found | {cell for cell in cells if cell.strip("-:") and not cell.startswith("<")}

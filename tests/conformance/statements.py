"""Statements of the documents, each with the tests that show it: one table per document."""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from tests.spec.sections import GUIDE, SPEC

HERE = Path(__file__).parent
TESTS = HERE.parent

DOCUMENTS: dict[str, str] = {
    "guide": "The guide: Agent Verification",
    "spec": "The specification: QWED-Agent 1.1",
    "a2a": "Agent to agent",
    "sdk": "The Python client",
    "mcp": "The MCP server",
    "rulings": "The rulings and the promises",
    "design": "The design beside its rulings",
}
"""Every table by its name; where the documents are silent or disagree, the rulings decide."""


class Later(StrEnum):
    """Parts that are not built yet; a statement about one waits."""

    MCP = "MCP server"
    A2A = "A2A"
    POSTGRES = "PostgreSQL"
    REDIS = "Redis"
    CONSOLE = "console"


Words = Annotated[str, msgspec.Meta(min_length=1, max_length=160, pattern=r"^[^|\n]+$")]
Place = Annotated[str, msgspec.Meta(pattern=r"^[\w/]+\.py::test_\w+$")]
Ruling = Annotated[str, msgspec.Meta(pattern=r"^4\.[1-9]\d?$")]


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One claim of a document, and the tests that show it or what it waits for."""

    section: Words
    says: Words
    tests: tuple[Place, ...] = ()
    later: Later | None = None
    ruling: Ruling | None = None

    @property
    def state(self) -> str:
        """Return `shown`, `shown, ruling 4.15` or `to come: MCP server`."""
        if self.later:
            return f"to come: {self.later}"
        return f"shown, ruling {self.ruling}" if self.ruling else "shown"


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The statements of one document."""

    statement: tuple[Statement, ...] = ()
    words: tuple[Words, ...] = ()
    """What the document names: codes, fields, tools, rows; some statement contains each."""
    examples: tuple[Words, ...] = ()
    """What it prints and says nothing about: example values, names left to the reader, heads of columns."""


Tables = dict[str, Table]


def read(folder: Path = HERE) -> Tables:
    """Return the tables in the order of DOCUMENTS; raise ValueError with the file name if one is malformed."""
    unknown = sorted({file.stem for file in folder.glob("*.toml")} - set(DOCUMENTS))
    if unknown:
        raise ValueError(f"no document is called `{unknown[0]}`; known are {', '.join(DOCUMENTS)}")
    return {name: _table(folder / f"{name}.toml") for name in DOCUMENTS if (folder / f"{name}.toml").exists()}


def _table(file: Path) -> Table:
    try:
        return msgspec.toml.decode(file.read_bytes(), type=Table)
    except msgspec.DecodeError as error:
        raise ValueError(f"{file.name}: {error}") from error


def faults(name: str, table: Table) -> Iterator[str]:
    """Return the faults within one table."""
    for says, times in Counter(" ".join(each.says.casefold().split()) for each in table.statement).items():
        if times > 1:
            yield f"{name}: said {times} times: {says}"
    for each in table.statement:
        yield from (f"{name} {each.section}: {fault}: {each.says}" for fault in _faults(name, each))


def _faults(name: str, each: Statement) -> Iterator[str]:
    sections = section_titles(name)
    if sections and each.section not in sections:
        yield "no such section"
    if bool(each.tests) == bool(each.later):
        yield "one of `tests` and `later` is needed, and not both"
    if each.ruling and not each.tests:
        yield "a ruling needs the test that shows it"
    if len(set(each.tests)) != len(each.tests):
        yield "a test is named twice"


def section_titles(name: str) -> dict[str, str]:
    """Return the sections of a document with their titles; empty for a document without a list of sections."""
    return _SECTIONS.get(name, {})


_DESIGN = {
    "3": "One request, in a straight line",
    "5": "HTTP surface",
    "6": "State",
    "7": "The log and attestations",
    "8": "Engines",
    "11": "Policies",
}
_RULINGS = dict.fromkeys((f"P{number}" for number in range(1, 11)), "") | {
    "4.1": "two tables",
    "4.2": "trust",
    "4.3": "risk",
    "4.4": "tools",
    "4.5": "engines",
    "4.6": "conversation",
    "4.7": "retries",
    "4.8": "budget",
    "4.9": "HTTP status",
    "4.10": "approvals",
    "4.11": "denials teach",
    "4.12": "CORRECTED",
    "4.13": "statuses",
    "4.14": "A2A",
    "4.15": "compound interest",
    "4.16": "result objects",
    "4.17": "startup hooks",
    "4.18": "keys",
    "4.19": "first start",
    "4.20": "tool calls and context",
    "4.21": "unknown is denied",
    "4.22": "what an agent may say about itself",
    "4.23": "SQL without a schema",
    "4.24": "what costs trust",
    "4.25": "SQL everyday shapes",
    "4.27": "recipients",
    "4.28": "agents are editable",
    "4.29": "tool names and conversation length",
}
_SECTIONS: dict[str, dict[str, str]] = {
    "guide": dict.fromkeys(GUIDE.values(), ""),
    "spec": SPEC,
    "rulings": _RULINGS,
    "design": _DESIGN,
}

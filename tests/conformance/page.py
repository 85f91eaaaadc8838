"""docs/conformance.md, generated from the tables."""

from collections.abc import Iterable, Iterator

from tests.conformance.statements import DOCUMENTS, TESTS, Statement, Table, Tables, section_titles

PAGE = TESTS.parent / "docs" / "conformance.md"

_INTRODUCTION = """\
# Conformance

What the documents say, statement by statement: every sentence, row of a table, field, code and example, with the tests
that show it. A link leads to the module of a test, and its words are the test's name.

- *shown*: the tests run it, as the document says it.
- *shown, ruling 4.3*: the documents are silent or disagree there, and the tests run what the ruling decides.
- *to come*: not built yet, and named.

This page is generated from the tables in `tests/conformance/` by `make docs`. `make check` compares both: a test that
is named is there, a test that reads the documents out is named, and no word of a document is left out.
"""


def page(tables: Tables) -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION, _drawn(_summary(tables))]
    ruled = {each.section for each in tables.get("rulings", Table()).statement}
    for name, table in tables.items():
        parts.append(f"## {DOCUMENTS[name]}\n")
        for section in dict.fromkeys(each.section for each in table.statement):
            rows = [each for each in table.statement if each.section == section]
            parts.append(f"### {_heading(name, section)}\n\n{_drawn(_statements(rows, ruled))}")
    return "\n".join(parts)


def _summary(tables: Tables) -> Iterator[list[str]]:
    yield ["document", "statements", "shown", "to come"]
    counts = {name: _counts(table) for name, table in tables.items()}
    for name, numbers in counts.items():
        yield [f"[{DOCUMENTS[name]}](#{_anchor(DOCUMENTS[name])})", *map(str, numbers)]
    yield ["**together**", *(f"**{sum(column)}**" for column in zip(*counts.values(), strict=True))]


def _counts(table: Table) -> tuple[int, int, int]:
    shown = sum(1 for each in table.statement if each.tests)
    return len(table.statement), shown, len(table.statement) - shown


def _heading(name: str, section: str) -> str:
    kind = "" if name != "rulings" else "Promise " if section.startswith("P") else "Ruling "
    return f"{kind}{section} {section_titles(name).get(section, '')}".strip()


def _anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return "".join(letter for letter in title.casefold().replace(" ", "-") if letter.isalnum() or letter in "-_")


def _statements(rows: Iterable[Statement], ruled: set[str]) -> Iterator[list[str]]:
    yield ["statement", "test", "state"]
    for each in rows:
        state = each.state
        if each.ruling in ruled:
            told = f"ruling {each.ruling}"
            state = state.replace(told, f"[{told}](#{_anchor(_heading('rulings', each.ruling or ''))})")
        yield [_literal(each.says), "<br>".join(map(_link, each.tests)), state]


def _literal(text: str) -> str:
    """Return the text with Markdown escaped outside code."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "\\<").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def _link(place: str) -> str:
    module, _, test = place.partition("::")
    return f"[{test.removeprefix('test_').replace('_', ' ')}](../tests/{module})"


def _drawn(lines: Iterator[list[str]]) -> str:
    drawn = [f"| {' | '.join(line)} |\n" for line in lines]
    return "".join([drawn[0], "|---" * (drawn[0].count("|") - 1) + "|\n", *drawn[1:]])

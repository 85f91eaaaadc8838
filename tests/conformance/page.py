"""docs/conformance.md, drawn from the tables."""

from collections.abc import Iterator

from tests.conformance.statements import DOCUMENTS, TESTS, Table, Tables, section_titles

PAGE = TESTS.parent / "docs" / "conformance.md"

_INTRODUCTION = """\
# Conformance

What the documents say, statement by statement: every sentence, row of a table, field, code and example, with the tests
that show it. A link leads to the module of the test, and its words are the test's name.

- `shown`: the tests run it, as the document says it.
- `shown, ruling 4.3`: the documents are silent or disagree there; the tests run what the ruling decides, and the
  [rulings](#{rulings}) stand at the end.
- `to come`: not built yet, and named.

This page is generated from the tables in `tests/conformance/` by `make docs`. `make check` compares both: a test that
is named is there, a test that reads the documents out is named, and no word of a document is left out.
"""


def page(tables: Tables) -> str:
    """The whole page."""
    parts = [_INTRODUCTION.format(rulings=_anchor(DOCUMENTS["rulings"])), _rows(_summary(tables))]
    parts += [f"## {DOCUMENTS[name]}\n\n{_rows(_statements(name, table))}" for name, table in tables.items()]
    return "\n".join(parts)


def _summary(tables: Tables) -> Iterator[list[str]]:
    yield ["document", "statements", "shown", "to come"]
    counts = {name: _counts(table) for name, table in tables.items()}
    for name, numbers in counts.items():
        yield [f"[{DOCUMENTS[name]}](#{_anchor(DOCUMENTS[name])})", *map(str, numbers)]
    yield ["**together**", *(str(sum(column)) for column in zip(*counts.values(), strict=True))]


def _counts(table: Table) -> tuple[int, int, int]:
    shown = sum(1 for each in table.statement if each.tests)
    return len(table.statement), shown, len(table.statement) - shown


def _anchor(title: str) -> str:
    """What a heading is called in a link to it."""
    return "".join(letter for letter in title.casefold().replace(" ", "-") if letter.isalnum() or letter in "-_")


def _statements(name: str, table: Table) -> Iterator[list[str]]:
    yield ["section", "statement", "test", "state"]
    titles, last = section_titles(name), None
    for each in table.statement:
        heading = f"**{each.section}** {titles.get(each.section, '')}".strip()
        yield ["" if each.section == last else heading, each.says, "<br>".join(map(_link, each.tests)), each.state]
        last = each.section


def _link(place: str) -> str:
    module, _, test = place.partition("::")
    return f"[{test.removeprefix('test_').replace('_', ' ')}](../tests/{module})"


def _rows(lines: Iterator[list[str]]) -> str:
    drawn = [f"| {' | '.join(line)} |\n" for line in lines]
    return "".join([drawn[0], "|---" * (drawn[0].count("|") - 1) + "|\n", *drawn[1:]])

"""A page has a size limit, rows after it are not read, and cursors are log positions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from qwed.domain.change_parts import ToolChanged
from qwed.model import Decision
from qwed.store.protocol import ActivityQuery, ApprovalQuery
from qwed.store.queries import MAX_PAGE_CHARACTERS, limit_page
from tests.support.store_parts import StoreParts
from tests.support.stores import KINDS, ORGANISATION, StoreFixture, agent_of, open_fixture

MIB = 1 << 20
MANY = 12
FITS = MAX_PAGE_CHARACTERS // MIB


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFixture]:
    yield from open_fixture(request.param, tmp_path, agent_of())


class Counted:
    """Connection that records how many rows its cursors returned, and whether each was closed."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.given = 0
        self.open = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: str, values: Any = ()) -> "_Rows":
        self.open += 1
        return _Rows(self, self._real.execute(statement, values))


class _Rows:
    def __init__(self, counted: Counted, real: Any) -> None:
        self._counted = counted
        self._real = real

    def __iter__(self) -> Iterator[Any]:
        for row in self._real:
            self._counted.given += 1
            yield row

    def close(self) -> None:
        self._counted.open -= 1
        self._real.close()


def _fill(store_fixture: StoreFixture, *, size: int = MIB, many: int = MANY) -> None:
    """Add pending decisions and changes, each with so much content."""
    agent: Any = store_fixture.store.find_agent("agent_1")
    text = "x" * size
    for step in range(1, many + 1):
        store_fixture.pending(agent, step)
        change = store_fixture.change_of(ToolChanged(ORGANISATION, "t", b"1"))
        store_fixture.store.commit(
            with_fields(change, activity=with_fields(change.activity, payload=text))
        ).wait_result(30)
        store_fixture.manual_clock.advance(1)
    assert store_fixture.next_index(ORGANISATION) == len(store_fixture.rows("SELECT 1 FROM activities")), (
        "all of it is written"
    )
    store_fixture.write("UPDATE activities SET payload = ? WHERE event = ''", text)


PAGES = {
    "activities": lambda store: store.activities(ActivityQuery("agent_1", 1_000)),
    "everything of an agent": lambda store: store.activities(ActivityQuery("agent_1", 1_000, kind="all")),
    "changes": lambda store: store.changes(ORGANISATION, 1_000, None),
    "approvals": lambda store: store.list_approvals(ApprovalQuery(ORGANISATION, 1_000)),
}
pages = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


@pages
def test_a_page_of_large_rows_stops_where_it_is_full_and_reads_nothing_behind_it(
    store_fixture: StoreFixture, page: Any
) -> None:
    _fill(store_fixture)
    parts = StoreParts(store_fixture.store)
    counted = parts.report_reader = Counted(parts.report_reader)
    rows = page(store_fixture.store)
    assert (len(rows), counted.given, counted.open) == (FITS + 1, FITS + 1, 0)
    assert len(limit_page(rows)) == FITS


@pages
def test_small_rows_are_limited_by_their_number_alone(store_fixture: StoreFixture, page: Any) -> None:
    _fill(store_fixture, size=2)
    assert len(page(store_fixture.store)) == (2 * MANY if page is PAGES["everything of an agent"] else MANY)


@pages
def test_one_row_larger_than_a_page_is_a_page(store_fixture: StoreFixture, page: Any) -> None:
    _fill(store_fixture, size=MAX_PAGE_CHARACTERS + 1, many=2)
    rows = page(store_fixture.store)
    assert (len(rows), len(limit_page(rows))) == (1, 1)


def test_cursors_lead_through_everything_once_whatever_the_clock_did(store_fixture: StoreFixture) -> None:
    agent: Any = store_fixture.store.find_agent("agent_1")
    for turn in (0, 5, 0, -60, 0, 3, 0, 0, -5, 100):
        store_fixture.manual_clock.advance(turn)
        store_fixture.settle(agent, None, Decision.DENIED)
        store_fixture.change(ToolChanged(ORGANISATION, "t", b"1"))
    seen: list[int] = []
    before: int | None = None
    while True:
        page = store_fixture.store.activities(ActivityQuery("agent_1", 3, before=before, kind="all"))
        if not page:
            break
        seen += [entry.log_index for entry in page]
        before = page[-1].log_index
    assert sorted(seen) == list(range(20))
    newest_first = store_fixture.rows("SELECT log_index FROM activities ORDER BY at DESC, log_index DESC")
    assert seen == [index for (index,) in newest_first]


def test_a_cursor_of_the_changes_leads_through_them_once(store_fixture: StoreFixture) -> None:
    for _ in range(7):
        store_fixture.change(ToolChanged(ORGANISATION, "t", b"1"))
        store_fixture.settle(store_fixture.store.find_agent("agent_1"), None, Decision.DENIED)
    seen: list[int] = []
    before: int | None = None
    while page := store_fixture.store.changes(ORGANISATION, 2, before):
        seen += [entry.log_index for entry in page]
        before = page[-1].log_index
    assert seen == [12, 10, 8, 6, 4, 2, 0]


@pytest.mark.parametrize("before", [10_000, 2**62, -1], ids=["not there yet", "the largest", "before the first"])
def test_a_cursor_nobody_was_given_leads_nowhere(store_fixture: StoreFixture, before: int) -> None:
    store_fixture.settle(store_fixture.store.find_agent("agent_1"), None, Decision.DENIED)
    assert list(store_fixture.store.activities(ActivityQuery("agent_1", 10, before=before))) == []

"""A page holds so much and no more, and what is behind it is not read; cursors are places of the log."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwed.store.archive import LARGEST_PAGE, within_size
from qwed.store.parts import ToolChanged
from qwed.store.protocol import ActivityQuery, ApprovalQuery
from qwed.words import Decision
from tests.support.stores import KINDS, ORGANISATION, Shop, agent_of, opened

MIB = 1 << 20
MANY = 12
FITS = LARGEST_PAGE // MIB


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    yield from opened(request.param, tmp_path, agent_of())


class Counted:
    """A connection that writes down how many rows its cursors gave, and whether each was closed."""

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


def _fill(shop: Shop, *, size: int = MIB, many: int = MANY) -> None:
    """Decisions that wait for a person and changes, each with so much content."""
    agent: Any = shop.store.find_agent("agent_1")
    text = "x" * size
    for step in range(1, many + 1):
        shop.pending(agent, step)
        made = shop.change_of(ToolChanged(ORGANISATION, "t", b"1"))
        shop.store.change(msgspec.structs.replace(made, activity=made.activity._replace(payload=text))).block(30)
        shop.hands.turn(1)
    assert shop.next_index(ORGANISATION) == len(shop.store._all("SELECT 1 FROM activities", ())), "all of it is written"
    shop.store._write(("UPDATE activities SET payload = ? WHERE event = ''", (text,))).block(30)


PAGES = {
    "activities": lambda store: store.activities(ActivityQuery("agent_1", 1_000)),
    "everything of an agent": lambda store: store.activities(ActivityQuery("agent_1", 1_000, kind="all")),
    "changes": lambda store: store.changes(ORGANISATION, 1_000, None),
    "approvals": lambda store: store.list_approvals(ApprovalQuery(ORGANISATION, 1_000)),
}
pages = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


@pages
def test_a_page_of_large_rows_stops_where_it_is_full_and_reads_nothing_behind_it(shop: Shop, page: Any) -> None:
    _fill(shop)
    counted = shop.store._browser = Counted(shop.store._browser)
    found = page(shop.store)
    assert (len(found), counted.given, counted.open) == (FITS + 1, FITS + 1, 0)
    assert len(within_size(found)) == FITS


@pages
def test_small_rows_are_limited_by_their_number_alone(shop: Shop, page: Any) -> None:
    _fill(shop, size=2)
    assert len(page(shop.store)) == (2 * MANY if page is PAGES["everything of an agent"] else MANY)


@pages
def test_one_row_larger_than_a_page_is_a_page(shop: Shop, page: Any) -> None:
    _fill(shop, size=LARGEST_PAGE + 1, many=2)
    found = page(shop.store)
    assert (len(found), len(within_size(found))) == (1, 1)


def test_cursors_lead_through_everything_once_whatever_the_clock_did(shop: Shop) -> None:
    agent: Any = shop.store.find_agent("agent_1")
    for turn in (0, 5, 0, -60, 0, 3, 0, 0, -5, 100):
        shop.hands.turn(turn)
        shop.settle(agent, None, Decision.DENIED)
        shop.change(ToolChanged(ORGANISATION, "t", b"1"))
    seen: list[int] = []
    before: int | None = None
    while True:
        page = shop.store.activities(ActivityQuery("agent_1", 3, before=before, kind="all"))
        if not page:
            break
        seen += [entry.log_index for entry in page]
        before = page[-1].log_index
    assert sorted(seen) == list(range(20))
    newest_first = shop.store._all("SELECT log_index FROM activities ORDER BY at DESC, log_index DESC", ())
    assert seen == [index for (index,) in newest_first]


def test_a_cursor_of_the_changes_leads_through_them_once(shop: Shop) -> None:
    for _ in range(7):
        shop.change(ToolChanged(ORGANISATION, "t", b"1"))
        shop.settle(shop.store.find_agent("agent_1"), None, Decision.DENIED)
    seen: list[int] = []
    before: int | None = None
    while page := shop.store.changes(ORGANISATION, 2, before):
        seen += [entry.log_index for entry in page]
        before = page[-1].log_index
    assert seen == [12, 10, 8, 6, 4, 2, 0]


@pytest.mark.parametrize("before", [10_000, 2**62, -1], ids=["not there yet", "the largest", "before the first"])
def test_a_cursor_nobody_was_given_leads_nowhere(shop: Shop, before: int) -> None:
    shop.settle(shop.store.find_agent("agent_1"), None, Decision.DENIED)
    assert list(shop.store.activities(ActivityQuery("agent_1", 10, before=before))) == []

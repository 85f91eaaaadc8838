"""Read-only queries: pages of activities, changes and approvals, and summaries."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

from qwed.model import Decision
from qwed.model.clock import DAY
from qwed.store import sql
from qwed.store.protocol import ActivityQuery, ActivityRecord, ActivitySummary, ApprovalQuery, ApprovalRecord

Row = tuple[Any, ...]

MAX_PAGE_CHARACTERS = 4 << 20
"""Characters of content in one response."""
_PAYLOAD_OF_ENTRY = ActivityRecord._fields.index("payload")
_PAYLOAD_OF_APPROVAL = ApprovalRecord._fields.index("payload")


class StoreQueries:
    """Base of the table mixins: the read methods of a store."""

    def _one(self, statement: str, values: Row) -> Row | None:
        raise NotImplementedError

    def _all(self, statement: str, values: Row) -> list[Row]:
        raise NotImplementedError

    def _page(self, statement: str, values: Row, payload: int) -> list[Row]:
        """Return rows until their payloads exceed the page size, including the row that exceeds it."""
        raise NotImplementedError

    def find_activity(self, agent_id: str, activity_id: str) -> ActivityRecord | None:
        row = self._one(sql.SELECT_ACTIVITY, (activity_id, agent_id))
        return None if row is None else ActivityRecord(*row)

    def activities(self, query: ActivityQuery) -> Sequence[ActivityRecord]:
        cursor = sql.AFTER_LAST
        if query.before is not None:
            (position,) = self._all(sql.SELECT_CURSOR, (query.agent_id, query.agent_id, query.before)) or (None,)
            if position is None:
                return []
            cursor = (position[0], position[1])
        page = self._page(sql.SELECT_ACTIVITIES, sql.activity_query_values(query, cursor), _PAYLOAD_OF_ENTRY)
        return [ActivityRecord(*row) for row in page]

    def changes(self, organisation_id: str, limit: int, before: int | None) -> Sequence[ActivityRecord]:
        rows = self._page(sql.SELECT_CHANGES, (organisation_id, before, before, limit), _PAYLOAD_OF_ENTRY)
        return [ActivityRecord(*row) for row in rows]

    def find_approval(self, approval_id: str) -> ApprovalRecord | None:
        row = self._one(sql.SELECT_APPROVAL, (approval_id,))
        return None if row is None else sql.to_approval(row)

    def list_approvals(self, query: ApprovalQuery) -> Sequence[ApprovalRecord]:
        rows = self._page(sql.SELECT_APPROVALS, sql.approval_query_values(query), _PAYLOAD_OF_APPROVAL)
        return [sql.to_approval(row) for row in rows]

    def activity_summary(self, agent_id: str, since: float | None, until: float | None) -> ActivitySummary:
        begin, end = sql.BEGINNING if since is None else since, sql.END if until is None else until
        first, last = math.ceil(begin / DAY), int(end // DAY)
        if first > last:
            return _summarise(self._all(sql.COUNT_ACTIVITIES, (agent_id, begin, end)))
        # Whole days have running sums; only the rest of the first and the last day is counted.
        rows = self._all(sql.SELECT_DAILY_TOTALS, (agent_id, first, last))
        rows += self._all(sql.COUNT_ACTIVITIES, (agent_id, begin, first * DAY))
        rows += self._all(sql.COUNT_ACTIVITIES, (agent_id, last * DAY, end))
        return _summarise(rows)


_Record = TypeVar("_Record", ActivityRecord, ApprovalRecord)


def limit_page(records: Sequence[_Record]) -> list[_Record]:
    """Return as many records as fit into one response, at least one; the cursor leads to the rest."""
    page: list[_Record] = []
    size = 0
    for record in records:
        size += len(record.payload)
        if page and size > MAX_PAGE_CHARACTERS:
            break
        page.append(record)
    return page


def _summarise(rows: list[Row]) -> ActivitySummary:
    counts: Counter[str] = Counter()
    for decision, count, _cost, _attestations in rows:
        counts[decision] += count
    return ActivitySummary(
        total_actions=counts.total(),
        approved=counts[Decision.APPROVED],
        denied=counts[Decision.DENIED],
        corrected=counts[Decision.CORRECTED],
        pending=counts[Decision.PENDING],
        budget_exceeded=counts[Decision.BUDGET_EXCEEDED],
        cost=sum(row[2] for row in rows),
        attestations=sum(row[3] for row in rows),
    )

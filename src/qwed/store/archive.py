"""Looking back: pages of activities, changes and approvals, and summaries. Nothing here writes."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

from qwed.store import rows
from qwed.store.protocol import ActivityQuery, ApprovalQuery, Entry, KeptApproval, Tally
from qwed.words import Decision
from qwed.words.clock import DAY

Row = tuple[Any, ...]

LARGEST_PAGE = 4 << 20
"""Characters of content in one answer."""
_PAYLOAD_OF_ENTRY = Entry._fields.index("payload")
_PAYLOAD_OF_APPROVAL = KeptApproval._fields.index("payload")


class Archive:
    """The reading half of a store that speaks SQL."""

    def _one(self, statement: str, values: Row) -> Row | None:
        raise NotImplementedError

    def _all(self, statement: str, values: Row) -> list[Row]:
        raise NotImplementedError

    def _page(self, statement: str, values: Row, payload: int) -> list[Row]:
        """Rows until their payloads are more than a page may hold, the one that is too much included."""
        raise NotImplementedError

    def find_activity(self, agent_id: str, activity_id: str) -> Entry | None:
        row = self._one(rows.SELECT_ACTIVITY, (activity_id, agent_id))
        return None if row is None else Entry(*row)

    def activities(self, query: ActivityQuery) -> Sequence[Entry]:
        place = rows.THE_END
        if query.before is not None:
            (found,) = self._all(rows.SELECT_PLACE, (query.agent_id, query.agent_id, query.before)) or (None,)
            if found is None:
                return []
            place = (found[0], found[1])
        page = self._page(rows.SELECT_ACTIVITIES, rows.of_activity_query(query, place), _PAYLOAD_OF_ENTRY)
        return [Entry(*row) for row in page]

    def changes(self, organisation_id: str, limit: int, before: int | None) -> Sequence[Entry]:
        found = self._page(rows.SELECT_CHANGES, (organisation_id, before, before, limit), _PAYLOAD_OF_ENTRY)
        return [Entry(*row) for row in found]

    def find_approval(self, approval_id: str) -> KeptApproval | None:
        row = self._one(rows.SELECT_APPROVAL, (approval_id,))
        return None if row is None else KeptApproval(*row)

    def list_approvals(self, query: ApprovalQuery) -> Sequence[KeptApproval]:
        found = self._page(rows.SELECT_APPROVALS, rows.of_approval_query(query), _PAYLOAD_OF_APPROVAL)
        return [KeptApproval(*row) for row in found]

    def tally(self, agent_id: str, since: float | None, until: float | None) -> Tally:
        begin, end = rows.BEGINNING if since is None else since, rows.END if until is None else until
        first, last = math.ceil(begin / DAY), int(end // DAY)
        if first > last:
            return _tally_of(self._all(rows.COUNT_ACTIVITIES, (agent_id, begin, end)))
        # Whole days are running sums; only what is left of the first and the last day is counted.
        found = self._all(rows.SELECT_TALLY, (agent_id, first, last))
        found += self._all(rows.COUNT_ACTIVITIES, (agent_id, begin, first * DAY))
        found += self._all(rows.COUNT_ACTIVITIES, (agent_id, last * DAY, end))
        return _tally_of(found)


_Kept = TypeVar("_Kept", Entry, KeptApproval)


def within_size(found: Sequence[_Kept]) -> list[_Kept]:
    """As many as fit into one answer, one at least; the cursor leads to the rest."""
    page: list[_Kept] = []
    size = 0
    for each in found:
        size += len(each.payload)
        if page and size > LARGEST_PAGE:
            break
        page.append(each)
    return page


def _tally_of(found: list[Row]) -> Tally:
    counts: Counter[str] = Counter()
    for decision, count, _cost, _attestations in found:
        counts[decision] += count
    return Tally(
        total_actions=counts.total(),
        approved=counts[Decision.APPROVED],
        denied=counts[Decision.DENIED],
        corrected=counts[Decision.CORRECTED],
        pending=counts[Decision.PENDING],
        budget_exceeded=counts[Decision.BUDGET_EXCEEDED],
        cost=sum(row[2] for row in found),
        attestations=sum(row[3] for row in found),
    )

"""The durable outbox: notices that wait for a webhook, what was tried, and what became of them."""

from collections.abc import Sequence
from typing import Any

from qwed.store import rows
from qwed.store.archive import Archive
from qwed.store.parts import Webhook
from qwed.store.protocol import Delivery
from qwed.waiting import Ticket

_OF_NOTICE = "WHERE organisation_id = (SELECT organisation_id FROM outbox WHERE notice_id = ?)"
_DELIVERED = f"UPDATE webhooks SET delivered = delivered + 1, delivered_at = ?, last_error = NULL {_OF_NOTICE}"  # noqa: S608 - constants
_GIVEN_UP = f"UPDATE webhooks SET given_up = given_up + 1, last_error = ? {_OF_NOTICE}"  # noqa: S608 - constants
_FAILED = f"UPDATE webhooks SET last_error = ? {_OF_NOTICE}"  # noqa: S608 - constants
_REMOVE = "DELETE FROM outbox WHERE notice_id = ?"
_ONE_LESS = f"UPDATE webhooks SET waiting = waiting - 1 {_OF_NOTICE}"  # noqa: S608 - constants
_POSTPONE = "UPDATE outbox SET attempts = attempts + 1, due_at = ? WHERE notice_id = ?"


class OutboxTable(Archive):
    """The part of a store that whoever delivers the notices talks to."""

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Ticket[None]:
        raise NotImplementedError

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]:
        """Notices that are due, the longest due first."""
        return [Delivery(*row) for row in self._all(rows.SELECT_DUE, (now, limit))]

    def delivered(self, notice_id: str, now: float) -> Ticket[None]:
        """The notice has arrived."""
        return self._write((_DELIVERED, (now, notice_id)), (_ONE_LESS, (notice_id,)), (_REMOVE, (notice_id,)))

    def postpone(self, notice_id: str, due_at: float, error: str) -> Ticket[None]:
        """The notice has not arrived, and is tried again."""
        return self._write((_FAILED, (error, notice_id)), (_POSTPONE, (due_at, notice_id)))

    def give_up(self, notice_id: str, error: str) -> Ticket[None]:
        """The notice will not arrive."""
        return self._write((_GIVEN_UP, (error, notice_id)), (_ONE_LESS, (notice_id,)), (_REMOVE, (notice_id,)))

    def webhook_record(self, organisation_id: str) -> Webhook | None:
        """The webhook with its counters as they stand on disk."""
        row = self._one(rows.SELECT_WEBHOOK, (organisation_id,))
        return None if row is None else rows.to_webhook(row)

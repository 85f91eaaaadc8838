"""Durable outbox of webhook notices."""

from collections.abc import Sequence
from typing import Any

from qwed.domain.change_parts import Webhook
from qwed.futures import Future
from qwed.store import sql
from qwed.store.protocol import Delivery
from qwed.store.queries import StoreQueries

_OF_NOTICE = "WHERE organisation_id = (SELECT organisation_id FROM outbox WHERE notice_id = ?)"
_DELIVERED = f"UPDATE webhooks SET delivered = delivered + 1, delivered_at = ?, last_error = NULL {_OF_NOTICE}"  # noqa: S608 - constants
_GIVEN_UP = f"UPDATE webhooks SET given_up = given_up + 1, last_error = ? {_OF_NOTICE}"  # noqa: S608 - constants
_FAILED = f"UPDATE webhooks SET last_error = ? {_OF_NOTICE}"  # noqa: S608 - constants
_REMOVE = "DELETE FROM outbox WHERE notice_id = ?"
_ONE_LESS = f"UPDATE webhooks SET waiting = waiting - 1 {_OF_NOTICE}"  # noqa: S608 - constants
_POSTPONE = "UPDATE outbox SET attempts = attempts + 1, due_at = ? WHERE notice_id = ?"


class OutboxTable(StoreQueries):
    """Store methods for the webhook sender."""

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> Future[None]:
        raise NotImplementedError

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]:
        """Return the notices that are due, longest due first."""
        return [Delivery(*row) for row in self._all(sql.SELECT_DUE, (now, limit))]

    def delivered(self, notice_id: str, now: float) -> Future[None]:
        """Record a delivery and remove the notice."""
        return self._write((_DELIVERED, (now, notice_id)), (_ONE_LESS, (notice_id,)), (_REMOVE, (notice_id,)))

    def postpone(self, notice_id: str, due_at: float, error: str) -> Future[None]:
        """Record a failed delivery and schedule the next attempt."""
        return self._write((_FAILED, (error, notice_id)), (_POSTPONE, (due_at, notice_id)))

    def give_up(self, notice_id: str, error: str) -> Future[None]:
        """Record the last failure and remove the notice."""
        return self._write((_GIVEN_UP, (error, notice_id)), (_ONE_LESS, (notice_id,)), (_REMOVE, (notice_id,)))

    def webhook_record(self, organisation_id: str) -> Webhook | None:
        """Return the webhook with its stored counters."""
        row = self._one(sql.SELECT_WEBHOOK, (organisation_id,))
        return None if row is None else sql.to_webhook(row)

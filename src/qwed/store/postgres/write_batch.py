"""Statement that writes a whole batch, and the state of logs under their row locks."""

from collections.abc import Mapping, Sequence
from operator import add
from typing import Any, NamedTuple

import msgspec

from qwed.store.group_commit import BatchRows
from qwed.store.log import Integration, ReadFrontier, SubtreeId

Row = tuple[Any, ...]

_encode = msgspec.json.Encoder().encode

WRITE_BATCH = "SELECT write_batch(%s::JSONB, %s::JSONB, %s::JSONB, %s::JSONB, %s::JSONB)"
"""Activities, conversations, counters, daily totals and heads; see the function in `migrations/`. Leaves that are not
the next ones of their logs are a unique_violation, and nothing is written."""
LOCK_LOGS = (
    "SELECT organisation_id, size, frontier, head FROM logs WHERE organisation_id = ANY(%s) "
    "ORDER BY organisation_id FOR UPDATE"
)
"""Locks the rows of these logs, in the common order, until the transaction ends: the holder appends to them."""
_HEX = 64
"""Hex digits of one hash."""


class LogState(NamedTuple):
    """Size of a log, the hashes of its complete subtrees in hex, and its newest head."""

    organisation_id: str
    size: int
    frontier: str = ""
    head: str = ""


def locked_frontier_reader(logs: Mapping[str, LogState]) -> ReadFrontier:
    """Return a function that reads the locked logs for the sequencer, which checks them against the signed heads."""

    def read(organisation_id: str, size: int, subtrees: Sequence[SubtreeId]) -> tuple[list[bytes], str | None]:
        log = logs.get(organisation_id)
        if log is None or log.size != size or len(log.frontier) != _HEX * len(subtrees):
            raise ValueError(f"the log of {organisation_id} does not have {size} leaves")
        return [
            bytes.fromhex(log.frontier[at : at + _HEX]) for at in range(0, len(log.frontier), _HEX)
        ], log.head or None

    return read


def batch_values(rows: BatchRows, integration: Integration) -> tuple[str, ...]:
    """Return the values of WRITE_BATCH."""
    heads = [_head_row(organisation_id, head, integration) for organisation_id, head in integration.heads.items()]
    activities = [*map(add, rows.activities, zip(integration.nodes, strict=False))]
    tables: tuple[list[Row], ...] = (
        activities,
        [*rows.conversations.values()],
        [*rows.usages.values()],
        rows.daily_totals(),
        heads,
    )
    return tuple(_encode(table).decode() for table in tables)


def _head_row(organisation_id: str, head: Any, integration: Integration) -> Row:
    frontier = b"".join(integration.frontier(organisation_id)).hex()
    return (organisation_id, head.size, head.signature, frontier)

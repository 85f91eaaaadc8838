"""What a batch writes: one statement, five texts. And how logs stand before they grow, under the lock of their rows."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qwed.store.log import Integration, Place, ReadBorder
from qwed.store.writer import Write, as_json, last, sums

Row = tuple[Any, ...]

WRITE_BATCH = "SELECT write_batch(%s::JSONB, %s::JSONB, %s::JSONB, %s::JSONB, %s::JSONB)"
"""Activities, conversations, usages, sums and heads; see the function in `migrations/`. Leaves that are not the next
ones of their logs are a unique_violation, and nothing is written."""
LOCK_LOGS = (
    "SELECT organisation_id, size, border, head FROM logs WHERE organisation_id = ANY(%s) "
    "ORDER BY organisation_id FOR UPDATE"
)
"""How these logs stand, in the order in which everybody locks them. Held to the end of the transaction: whoever has the
rows makes the logs grow."""
_HEX = 64
"""Digits of one hash."""


class Log(NamedTuple):
    """How a log stands: its leaves, the hashes the next one is joined to, in hex, and its newest head."""

    organisation_id: str
    size: int
    border: str = ""
    head: str = ""


def border_of(logs: Mapping[str, Log]) -> ReadBorder:
    """How the sequencer reads logs whose rows are held; it checks that they are what was signed."""

    def read(organisation_id: str, size: int, wanted: Sequence[Place]) -> tuple[list[bytes], str | None]:
        log = logs.get(organisation_id)
        if log is None or log.size != size or len(log.border) != _HEX * len(wanted):
            raise ValueError(f"the log of {organisation_id} does not stand at {size} leaves")
        return [bytes.fromhex(log.border[at : at + _HEX]) for at in range(0, len(log.border), _HEX)], log.head or None

    return read


def batch_values(batch: list[Write], grown: Integration) -> tuple[str, str, str, str, str]:
    """The values of WRITE_BATCH."""
    activities = [row for write in batch for row in write.activities]
    return (
        as_json([(*row, nodes) for row, nodes in zip(activities, grown.nodes, strict=True)]),
        as_json(last(write.conversation for write in batch)),
        as_json(last((write.usage for write in batch), width=1)),
        as_json(sums(batch)),
        as_json([_head_row(log, head, grown) for log, head in grown.heads.items()]),
    )


def _head_row(organisation_id: str, head: Any, grown: Integration) -> Row:
    border = b"".join(grown.border(organisation_id)).hex()
    return (organisation_id, head.size, head.signature, border)

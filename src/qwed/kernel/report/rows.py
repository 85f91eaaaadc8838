"""The activities of a report, one by one as they are read: as JSON objects, as rows of a table."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from qwed.kernel.services import Services
from qwed.kernel.views.record import ActivityView, activity_view
from qwed.ledger import leaf
from qwed.ledger.verifier import leaf_hash
from qwed.reports.csv_format import CsvRow
from qwed.store.protocol import Entry
from qwed.words.money import MICROS_PER_USD

_encode = msgspec.json.Encoder().encode


def json_rows(entries: Iterable[Entry], services: Services) -> Iterator[bytes]:
    """Each activity in the shape of spec 7.1, and with it the leaf whose hash stands in the tree."""
    for entry in entries:
        shown = _encode(activity_view(entry, services))
        yield shown[:-1] + b',"leaf":' + _encode(entry.leaf) + b"}"


def csv_rows(entries: Iterable[Entry], services: Services) -> Iterator[CsvRow]:
    """Each activity as a row."""
    return (_row(entry, activity_view(entry, services)) for entry in entries)


def _row(entry: Entry, view: ActivityView) -> CsvRow:
    # What the leaf knows is taken from there: it is still known where the content is gone.
    kept, change, done = leaf.decode(entry.leaf), view.change or {}, view.execution
    return CsvRow(
        activity_id=view.activity_id,
        timestamp=view.timestamp,
        decision=_text(view.decision),
        event=_text(view.event),
        action_type=_text(view.action_type),
        action=_text(view.action),
        status=_text(kept.status),
        engine=_text(kept.engine),
        risk_level=_text(kept.risk_level),
        error_code=_text(kept.error),
        error_message=_text((view.error or {}).get("message")),
        conversation_id=_text(view.conversation_id),
        step_number=_text(view.step_number),
        user_intent=_text(view.user_intent),
        justification=_text(view.justification or change.get("justification")),
        about=_text(change.get("about")),
        level_before=_text(change.get("level_before")),
        level_after=_text(change.get("level_after")),
        reason=_text(change.get("reason")),
        approver=_text(change.get("approver")),
        self_approved=_text(change.get("self_approved")),
        execution_success=_text(change.get("success") if done is None else done.success),
        result_hash=_text(change.get("result_hash") if done is None else done.result_hash),
        cost_usd=_usd(kept.cost_micros),
        tokens=_text(view.cost.tokens),
        latency_ms=_text(view.latency_ms),
        by=view.by,
        attestation_id=_text(view.attestation_id),
        content=view.content,
        log_index=_text(view.log_index),
        leaf_hash=leaf_hash(entry.leaf.encode()).hex(),
    )


def _usd(micros: int) -> str:
    """An exact decimal, never with an exponent."""
    whole, rest = divmod(micros, MICROS_PER_USD)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".")


def _text(value: Any) -> str:
    """Text as it is, nothing as nothing, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int else _encode(value).decode()

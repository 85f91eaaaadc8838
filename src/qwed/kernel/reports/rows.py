"""Activities of a report, one by one: as JSON objects or as CSV rows."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import ActivityView, activity_view
from qwed.ledger import leaf
from qwed.ledger.verifier import leaf_hash
from qwed.model.money import MICROS_PER_USD
from qwed.reports.csv_format import CsvRow
from qwed.store.protocol import ActivityRecord

_encode = msgspec.json.Encoder().encode


def json_rows(entries: Iterable[ActivityRecord], services: Services) -> Iterator[bytes]:
    """Yield each activity in the format of spec 7.1, with the leaf whose hash is in the tree."""
    for entry in entries:
        encoded = _encode(activity_view(entry, services))
        yield encoded[:-1] + b',"leaf":' + _encode(entry.leaf) + b"}"


def csv_rows(entries: Iterable[ActivityRecord], services: Services) -> Iterator[CsvRow]:
    """Return each activity as a row."""
    return (_row(entry, activity_view(entry, services)) for entry in entries)


def _row(entry: ActivityRecord, view: ActivityView) -> CsvRow:
    # Taken from the leaf where possible: it stays when the content is erased.
    decoded, change, execution = leaf.decode(entry.leaf), view.change or {}, view.execution
    return CsvRow(
        activity_id=view.activity_id,
        timestamp=view.timestamp,
        decision=_text(view.decision),
        event=_text(view.event),
        action_type=_text(view.action_type),
        action=_text(view.action),
        status=_text(decoded.status),
        engine=_text(decoded.engine),
        risk_level=_text(decoded.risk_level),
        error_code=_text(decoded.error),
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
        execution_success=_text(change.get("success") if execution is None else execution.success),
        result_hash=_text(change.get("result_hash") if execution is None else execution.result_hash),
        cost_usd=_usd(decoded.cost_micros),
        tokens=_text(view.cost.tokens),
        latency_ms=_text(view.latency_ms),
        by=view.by,
        attestation_id=_text(view.attestation_id),
        content=view.content,
        log_index=_text(view.log_index),
        leaf_hash=leaf_hash(entry.leaf.encode()).hex(),
    )


def _usd(micros: int) -> str:
    """Return an exact decimal without an exponent."""
    whole, rest = divmod(micros, MICROS_PER_USD)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".")


def _text(value: Any) -> str:
    """Return text unchanged, None as empty, everything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int else _encode(value).decode()

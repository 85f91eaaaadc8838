"""Messages between two agents, and their verdicts."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from qwed_a2a import A2AVerificationInterceptor, AgentMessage, VerificationVerdict

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENDER, RECEIVER, TRACE = "buyer", "seller", "trace-1"

HONEST: dict[str, dict[str, Any]] = {
    "financial_transaction": {
        "data": {
            "claimed_total": "33.00",
            "line_items": [{"amount": "10.00", "quantity": 3}],
            "tax": "3.00",
            "currency": "EUR",
        }
    },
    "logic_assertion": {"assertions": [{"claim": "x > 5"}, {"claim": "y < 3"}]},
    "code_execution": {"code": "total = sum(range(10))\nprint(total)"},
    "data_query": {"query": "everything about everybody"},
    "general": {"text": "good morning"},
}
"""One valid payload of each type."""

WRONG: dict[str, dict[str, Any]] = {
    "financial_transaction": {"data": {"claimed_total": "34.00", "line_items": [{"amount": "10.00", "quantity": 3}]}},
    "logic_assertion": {"assertions": [{"claim": "the door is open"}, {"claim": "the door is open", "negated": True}]},
    "code_execution": {"code": "eval(input())"},
}
"""One invalid payload of each verified type."""


def message(payload: dict[str, Any] | None = None, kind: str | None = None, **more: Any) -> AgentMessage:
    """Return a message from the buyer to the seller at a fixed time, with a valid payload by default."""
    payload = HONEST[kind or "general"] if payload is None else payload
    fields = {"sender_agent_id": SENDER, "receiver_agent_id": RECEIVER, "payload": payload, "timestamp": AT, **more}
    return AgentMessage(**fields if kind is None else {**fields, "payload_type": kind})


def verdict_on(
    interceptor: A2AVerificationInterceptor, sent: AgentMessage | None = None, trace_id: str = TRACE, **more: Any
) -> VerificationVerdict:
    """Return the verdict on one message."""
    return asyncio.run(interceptor.intercept(sent or message(), trace_id, **more))


def outcome_of(verdict: VerificationVerdict) -> tuple[str, str]:
    """Return the status and the engine of a verdict."""
    return str(verdict.status), str(verdict.engine_used)

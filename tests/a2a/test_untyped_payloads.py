"""Ruling 4.14 in a gateway: a payload is what it is, whatever its type says."""

import asyncio
from typing import Any

import pytest

from qwed_a2a import A2AVerificationInterceptor, AgentMessage, InterceptorConfig
from qwed_a2a.attestation import ephemeral_keyring
from qwed_a2a.message import PayloadType
from qwed_a2a.verdict import VerificationVerdict
from tests.support.shared_engine_workers import shared_verdicts

Json = dict[str, Any]
CODE = "import os\nos.system('id')"
KEYS = ephemeral_keyring()
INVOICE = {"claimed_total": 5, "line_items": [{"amount": 1}, {"amount": 2}]}


def _verdict(kind: PayloadType, payload: Json, **config: bool) -> VerificationVerdict:
    interceptor = A2AVerificationInterceptor(InterceptorConfig(**config), signer=KEYS, engines=shared_verdicts())
    message = AgentMessage(sender_agent_id="a", receiver_agent_id="b", payload_type=kind, payload=payload)
    return asyncio.run(interceptor.intercept(message, "trace"))


@pytest.mark.parametrize("kind", [PayloadType.GENERAL, PayloadType.DATA_QUERY])
@pytest.mark.parametrize(
    ("payload", "engine"),
    [
        ({"text": f"```python\n{CODE}\n```"}, "code_guard"),
        ({"code": CODE}, "code_guard"),
        ({"text": CODE}, "code_guard"),
        ({"text": '{"code": "import os\\nos.system(1)"}'}, "code_guard"),
        (INVOICE, "finance_guard"),
        ({"order": {"details": INVOICE}}, "finance_guard"),
    ],
    ids=str,
)
def test_code_and_invoices_are_judged_whatever_the_type_says(kind: PayloadType, payload: Json, engine: str) -> None:
    verdict = _verdict(kind, payload, verify_untyped=True)
    assert (verdict.status, verdict.engine_used) == ("blocked", engine)
    assert _verdict(kind, payload).engine_used == "passthrough"


def test_code_beside_the_code_that_is_declared_is_judged() -> None:
    payload = {"code": "print(1)", "language": "python", "setup": {"code": CODE}}
    verdict = _verdict(PayloadType.CODE_EXECUTION, payload, verify_untyped=True)
    assert (verdict.status, verdict.engine_used) == ("blocked", "code_guard")


@pytest.mark.parametrize(
    "payload", [{"text": "good morning"}, {"query": "SELECT id FROM orders"}, {"a": [1, {"b": None}]}]
)
def test_a_payload_that_is_nothing_else_passes(payload: Json) -> None:
    verdict = _verdict(PayloadType.GENERAL, payload, verify_untyped=True)
    assert (verdict.status, verdict.engine_used) == ("forwarded", "passthrough")


@pytest.mark.parametrize(("block_on_error", "status"), [(True, "blocked"), (False, "forwarded")])
def test_a_payload_that_cannot_be_read_follows_block_on_error(block_on_error: bool, status: str) -> None:
    unreadable = {"text": "```\n" * 20_000}
    verdict = _verdict(PayloadType.GENERAL, unreadable, verify_untyped=True, block_on_error=block_on_error)
    assert (verdict.status, verdict.engine_used) == (status, "error_handler")

"""Configuration reference and error handling (seed 002)."""

import asyncio
import dataclasses
import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

from qwed.engines.pool import EnginePool, PoolFullError
from qwed.engines.registry import ENGINES as ROWS
from qwed.engines.verdict_cache import VerdictCache
from qwed.futures import Future
from qwed_a2a import A2AVerificationInterceptor, InterceptorConfig, PayloadType, verify_attestation
from qwed_a2a.attestation import ephemeral_keyring
from qwed_a2a.guards import GUARDS
from tests.support.a2a_messages import AT, HONEST, WRONG, message, outcome_of, verdict_on
from tests.support.child_processes import children
from tests.support.fault_injection import FailingProxy, ReplacingProxy
from tests.support.shared_engine_workers import shared_verdicts

KEYS = ephemeral_keyring()
SCRIPT = message({"code": "const total = 1 + 1;", "language": "javascript"}, "code_execution")
"""Code that an engine worker checks."""
SECRET_TEXT = "my secret is hunter2"
FAILURES = [
    RuntimeError(SECRET_TEXT),
    ValueError(SECRET_TEXT),
    KeyError(SECRET_TEXT),
    OSError(SECRET_TEXT),
    MemoryError(SECRET_TEXT),
    PoolFullError(SECRET_TEXT),
]


def interceptor(engines: Any = None, **config: Any) -> A2AVerificationInterceptor:
    engines = shared_verdicts() if engines is None else engines
    return A2AVerificationInterceptor(InterceptorConfig(**config), signer=KEYS, engines=engines)


# Configuration reference


def test_the_fields_and_their_defaults_are_those_of_the_table() -> None:
    assert dataclasses.asdict(InterceptorConfig()) == {
        "enable_financial_verification": True,
        "enable_logic_verification": True,
        "enable_code_verification": True,
        "block_on_error": True,
        "max_payload_size_bytes": 1_048_576,
        "trusted_agents": None,
        "verify_untyped": False,
    }
    assert A2AVerificationInterceptor().config == InterceptorConfig()


SWITCHES = {
    "financial_transaction": ("enable_financial_verification", "finance_guard"),
    "logic_assertion": ("enable_logic_verification", "logic_guard"),
    "code_execution": ("enable_code_verification", "code_guard"),
}


def test_every_guard_has_its_switch_and_every_other_payload_passes() -> None:
    assert {str(kind): (row.switch, str(row.engine)) for kind, row in GUARDS.items()} == SWITCHES
    assert set(PayloadType) - set(GUARDS) == {PayloadType.GENERAL, PayloadType.DATA_QUERY}


@pytest.mark.parametrize("kind", SWITCHES)
def test_a_payload_goes_to_its_engine_by_default(kind: str) -> None:
    engine = SWITCHES[kind][1]
    assert outcome_of(verdict_on(interceptor(), message(kind=kind))) == ("forwarded", engine)
    assert outcome_of(verdict_on(interceptor(), message(WRONG[kind], kind))) == ("blocked", engine)


@pytest.mark.parametrize("kind", SWITCHES)
def test_a_guard_that_is_switched_off_lets_its_payloads_pass_and_no_others(kind: str) -> None:
    subject = interceptor(**{SWITCHES[kind][0]: False})
    assert outcome_of(verdict_on(subject, message(WRONG[kind], kind))) == ("forwarded", "passthrough")
    for other in set(SWITCHES) - {kind}:
        assert outcome_of(verdict_on(subject, message(WRONG[other], other))) == ("blocked", SWITCHES[other][1])


@pytest.mark.parametrize("name", ["block_on_error", *(switch for switch, _engine in SWITCHES.values())])
@pytest.mark.parametrize("value", [0, 1, None, "yes"])
def test_a_switch_that_is_neither_on_nor_off_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` must be true or false$"):
        InterceptorConfig(**{name: value})


@pytest.mark.parametrize("size", [1024, 1025, 1_048_576, 10_485_760])
def test_the_size_of_a_payload_lies_between_a_kilobyte_and_ten_megabytes(size: int) -> None:
    assert InterceptorConfig(max_payload_size_bytes=size).max_payload_size_bytes == size


@pytest.mark.parametrize("size", [0, -1, 1023, 10_485_761, 2048.0, True, "2048", None])
def test_any_other_size_is_refused_by_name(size: Any) -> None:
    with pytest.raises(ValueError, match="`max_payload_size_bytes` must be a whole number from 1024 to 10485760"):
        InterceptorConfig(max_payload_size_bytes=size)


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("size", [1024, 100_000])
def test_a_payload_above_the_limit_is_blocked_before_any_guard_whatever_its_type(kind: str, size: int) -> None:
    subject = interceptor(max_payload_size_bytes=size)
    fitting = {"a": "x" * (size - 8)}
    large = verdict_on(subject, message({"a": "x" * (size - 7)}, kind))
    assert (outcome_of(large), large.reason) == (
        ("blocked", "trust_boundary"),
        f"the payload is larger than {size} bytes",
    )
    assert large.details == {"check": "payload_size", "max_payload_size_bytes": size}
    assert verdict_on(subject, message(fitting, kind)).engine_used != "trust_boundary"


def test_a_payload_that_is_no_json_is_blocked_and_signed_as_unread() -> None:
    subject = interceptor()
    for payload in ({"a": float("nan")}, {"a": {1}}, {"a": "\ud800"}, {"a": object()}):
        verdict = verdict_on(subject, message(payload))
        assert outcome_of(verdict) == ("blocked", "trust_boundary")
        valid, claims = verify_attestation(verdict.attestation_jwt or "", subject.jwks(), now=AT.timestamp())
        assert (valid, claims["sub"]) == (True, "unread")


@pytest.mark.parametrize("trusted", ["buyer", b"buyer", [""], [7], [None], [["buyer"]], ["friend", 7]])
def test_trusted_agents_are_a_list_of_names(trusted: Any) -> None:
    with pytest.raises(ValueError, match=r"^`trusted_agents` must be a list of agent ids$"):
        InterceptorConfig(trusted_agents=trusted)


def test_nobody_is_trusted_because_a_list_grew_afterwards() -> None:
    trusted = ["friend"]
    subject = interceptor(trusted_agents=trusted)
    trusted.append("buyer")
    assert outcome_of(verdict_on(subject, message(WRONG["code_execution"], "code_execution"))) == (
        "blocked",
        "code_guard",
    )


# Error handling


@pytest.fixture(params=FAILURES, ids=lambda failure: type(failure).__name__)
def failing(request: pytest.FixtureRequest) -> Any:
    """Engines whose requests all raise an exception."""
    return FailingProxy(shared_verdicts(), "ask", request.param)


def test_an_exception_in_an_engine_blocks_the_message_and_is_named(failing: Any) -> None:
    verdict = verdict_on(interceptor(failing), SCRIPT)
    kind = type(failing.failure).__name__
    assert outcome_of(verdict) == ("blocked", "error_handler")
    assert verdict.reason == f"the code_guard failed: {kind}"
    assert verdict.details == {"error": kind, "engine": "code_guard"}
    assert verdict.attestation_jwt is not None


def test_without_block_on_error_the_message_is_forwarded_and_the_error_is_logged(
    failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    subject = interceptor(failing, block_on_error=False)
    with caplog.at_level(logging.ERROR):
        verdict = verdict_on(subject, SCRIPT)
    kind = type(failing.failure).__name__
    assert outcome_of(verdict) == ("forwarded", "error_handler")
    assert f"a2a code_guard failed, message forwarded unverified: {kind}" in caplog.text
    assert outcome_of(verdict_on(subject)) == ("forwarded", "passthrough")


@pytest.mark.parametrize("block_on_error", [True, False])
def test_what_an_error_says_is_told_to_nobody(
    failing: Any, block_on_error: bool, caplog: pytest.LogCaptureFixture
) -> None:
    verdict = verdict_on(interceptor(failing, block_on_error=block_on_error), SCRIPT)
    assert "hunter2" not in f"{verdict}{caplog.text}"


@pytest.mark.parametrize("block_on_error", [True, False])
def test_errors_are_counted(failing: Any, block_on_error: bool) -> None:
    subject = interceptor(failing, block_on_error=block_on_error)
    verdict_on(subject, SCRIPT)
    counters = subject.metrics.snapshot()
    assert (counters["total_errors"], counters["total_blocked"], counters["by_engine"]) == (
        1,
        int(block_on_error),
        {"error_handler": 1},
    )


@pytest.mark.parametrize("block_on_error", [True, False])
def test_an_error_does_not_undo_what_the_boundary_said(failing: Any, block_on_error: bool) -> None:
    subject = interceptor(failing, block_on_error=block_on_error, max_payload_size_bytes=1024)
    large = message({"code": "a" * 2000, "language": "javascript"}, "code_execution")
    assert outcome_of(verdict_on(subject, large)) == ("blocked", "trust_boundary")


def test_what_a_guard_refuses_without_its_engine_is_refused_though_errors_do_not_block(failing: Any) -> None:
    subject = interceptor(failing, block_on_error=False)
    sent = message({"code": "eval(x)", "language": "javascript"}, "code_execution")
    assert outcome_of(verdict_on(subject, sent)) == ("blocked", "code_guard")


def test_an_engine_that_fails_later_is_an_exception_too() -> None:
    ticket: Future[Any] = Future()
    ticket.set_exception(RuntimeError(SECRET_TEXT))
    ticket.done = True
    verdict = verdict_on(interceptor(ReplacingProxy(shared_verdicts(), ask=ticket)), SCRIPT)
    assert (outcome_of(verdict), verdict.details["error"]) == (("blocked", "error_handler"), "RuntimeError")


def test_whoever_gives_up_waiting_is_not_answered_with_an_error() -> None:
    subject = interceptor(ReplacingProxy(shared_verdicts(), ask=Future()))

    async def cancel_request() -> None:
        task = asyncio.create_task(subject.intercept(SCRIPT, "t"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_request())
    assert subject.metrics.snapshot()["total_intercepts"] == 0


# Its own engines


@pytest.fixture
def own() -> Iterator[A2AVerificationInterceptor]:
    interceptor_with_engines = A2AVerificationInterceptor()
    yield interceptor_with_engines
    interceptor_with_engines.close()


def test_after_its_end_it_says_nothing_about_any_message(own: A2AVerificationInterceptor) -> None:
    assert outcome_of(verdict_on(own)) == ("forwarded", "passthrough")
    own.close()
    own.close()
    for sent in (message(), message(WRONG["code_execution"], "code_execution")):
        with pytest.raises(RuntimeError, match=r"^the interceptor is closed$"):
            verdict_on(own, sent)


@pytest.mark.drill
def test_without_engines_it_starts_its_own_when_one_is_needed_and_ends_them(own: A2AVerificationInterceptor) -> None:
    before = children(os.getpid())
    assert verdict_on(own, message(WRONG["code_execution"], "code_execution")).status == "blocked"
    assert children(os.getpid()) == before
    assert outcome_of(verdict_on(own, SCRIPT)) == ("forwarded", "code_guard")
    assert children(os.getpid()) > before
    own.close()
    assert children(os.getpid()) == before


def test_engines_it_was_given_are_not_ended_with_it() -> None:
    engines = FailingProxy(VerdictCache(EnginePool(ROWS.values()), 10.0), "close", AssertionError("ended"))
    A2AVerificationInterceptor(engines=engines).close()  # type: ignore[arg-type]
    assert engines.calls == 0

"""Seed 002, Configuration reference and Error handling."""

import asyncio
import dataclasses
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from qwed.engines.pool import EnginePool, PoolFull
from qwed.engines.table import ENGINES as ROWS
from qwed.engines.verdicts import Verdicts
from qwed.waiting import Ticket
from qwed_a2a import A2AVerificationInterceptor, InterceptorConfig, PayloadType, verify_attestation
from qwed_a2a.attestation import own_keyring
from qwed_a2a.guards import GUARDS
from tests.support.failing import Failing, Instead
from tests.support.messages import AT, HONEST, WRONG, ask, message, said
from tests.support.workers import shared_verdicts

KEYS = own_keyring()
SCRIPT = message({"code": "const total = 1 + 1;", "language": "javascript"}, "code_execution")
"""Code that a worker looks at."""
LOUD = "my secret is hunter2"
FAILURES = [RuntimeError(LOUD), ValueError(LOUD), KeyError(LOUD), OSError(LOUD), MemoryError(LOUD), PoolFull(LOUD)]


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
    assert said(ask(interceptor(), message(kind=kind))) == ("forwarded", engine)
    assert said(ask(interceptor(), message(WRONG[kind], kind))) == ("blocked", engine)


@pytest.mark.parametrize("kind", SWITCHES)
def test_a_guard_that_is_switched_off_lets_its_payloads_pass_and_no_others(kind: str) -> None:
    asked = interceptor(**{SWITCHES[kind][0]: False})
    assert said(ask(asked, message(WRONG[kind], kind))) == ("forwarded", "passthrough")
    for other in set(SWITCHES) - {kind}:
        assert said(ask(asked, message(WRONG[other], other))) == ("blocked", SWITCHES[other][1])


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
    asked = interceptor(max_payload_size_bytes=size)
    fitting = {"a": "x" * (size - 8)}
    large = ask(asked, message({"a": "x" * (size - 7)}, kind))
    assert (said(large), large.reason) == (("blocked", "trust_boundary"), f"the payload is larger than {size} bytes")
    assert large.details == {"check": "payload_size", "max_payload_size_bytes": size}
    assert ask(asked, message(fitting, kind)).engine_used != "trust_boundary"


def test_a_payload_that_is_no_json_is_blocked_and_signed_as_unread() -> None:
    asked = interceptor()
    for payload in ({"a": float("nan")}, {"a": {1}}, {"a": "\ud800"}, {"a": object()}):
        verdict = ask(asked, message(payload))
        assert said(verdict) == ("blocked", "trust_boundary")
        valid, claims = verify_attestation(verdict.attestation_jwt or "", asked.jwks(), now=AT.timestamp())
        assert (valid, claims["sub"]) == (True, "unread")


@pytest.mark.parametrize("trusted", ["buyer", b"buyer", [""], [7], [None], [["buyer"]], ["friend", 7]])
def test_trusted_agents_are_a_list_of_names(trusted: Any) -> None:
    with pytest.raises(ValueError, match=r"^`trusted_agents` must be a list of agent ids$"):
        InterceptorConfig(trusted_agents=trusted)


def test_nobody_is_trusted_because_a_list_grew_afterwards() -> None:
    trusted = ["friend"]
    asked = interceptor(trusted_agents=trusted)
    trusted.append("buyer")
    assert said(ask(asked, message(WRONG["code_execution"], "code_execution"))) == ("blocked", "code_guard")


# Error handling


@pytest.fixture(params=FAILURES, ids=lambda failure: type(failure).__name__)
def failing(request: pytest.FixtureRequest) -> Any:
    """Engines whose every question ends in an exception."""
    return Failing(shared_verdicts(), "ask", request.param)


def test_an_exception_in_an_engine_blocks_the_message_and_is_named(failing: Any) -> None:
    verdict = ask(interceptor(failing), SCRIPT)
    kind = type(failing._failure).__name__
    assert said(verdict) == ("blocked", "error_handler")
    assert verdict.reason == f"the code_guard failed: {kind}"
    assert verdict.details == {"error": kind, "engine": "code_guard"}
    assert verdict.attestation_jwt is not None


def test_without_block_on_error_the_message_is_forwarded_and_the_error_is_logged(
    failing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asked = interceptor(failing, block_on_error=False)
    with caplog.at_level(logging.ERROR):
        verdict = ask(asked, SCRIPT)
    kind = type(failing._failure).__name__
    assert said(verdict) == ("forwarded", "error_handler")
    assert f"the code_guard failed and the message was forwarded unverified: {kind}" in caplog.text
    assert said(ask(asked)) == ("forwarded", "passthrough")


@pytest.mark.parametrize("block_on_error", [True, False])
def test_what_an_error_says_is_told_to_nobody(
    failing: Any, block_on_error: bool, caplog: pytest.LogCaptureFixture
) -> None:
    verdict = ask(interceptor(failing, block_on_error=block_on_error), SCRIPT)
    assert "hunter2" not in f"{verdict}{caplog.text}"


@pytest.mark.parametrize("block_on_error", [True, False])
def test_errors_are_counted(failing: Any, block_on_error: bool) -> None:
    asked = interceptor(failing, block_on_error=block_on_error)
    ask(asked, SCRIPT)
    found = asked.metrics.snapshot()
    assert (found["total_errors"], found["total_blocked"], found["by_engine"]) == (
        1,
        int(block_on_error),
        {"error_handler": 1},
    )


@pytest.mark.parametrize("block_on_error", [True, False])
def test_an_error_does_not_undo_what_the_boundary_said(failing: Any, block_on_error: bool) -> None:
    asked = interceptor(failing, block_on_error=block_on_error, max_payload_size_bytes=1024)
    large = message({"code": "a" * 2000, "language": "javascript"}, "code_execution")
    assert said(ask(asked, large)) == ("blocked", "trust_boundary")


def test_what_a_guard_refuses_without_its_engine_is_refused_though_errors_do_not_block(failing: Any) -> None:
    asked = interceptor(failing, block_on_error=False)
    sent = message({"code": "eval(x)", "language": "javascript"}, "code_execution")
    assert said(ask(asked, sent)) == ("blocked", "code_guard")


def test_an_engine_that_fails_later_is_an_exception_too() -> None:
    ticket: Ticket[Any] = Ticket()
    ticket.fail(RuntimeError(LOUD))
    ticket.done = True
    verdict = ask(interceptor(Instead(shared_verdicts(), ask=ticket)), SCRIPT)
    assert (said(verdict), verdict.details["error"]) == (("blocked", "error_handler"), "RuntimeError")


def test_whoever_gives_up_waiting_is_not_answered_with_an_error() -> None:
    asked = interceptor(Instead(shared_verdicts(), ask=Ticket()))

    async def given_up() -> None:
        task = asyncio.create_task(asked.intercept(SCRIPT, "t"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(given_up())
    assert asked.metrics.snapshot()["total_intercepts"] == 0


# Its own engines


@pytest.fixture
def own() -> Iterator[A2AVerificationInterceptor]:
    made = A2AVerificationInterceptor()
    yield made
    made.close()


def test_after_its_end_it_says_nothing_about_any_message(own: A2AVerificationInterceptor) -> None:
    assert said(ask(own)) == ("forwarded", "passthrough")
    own.close()
    own.close()
    for sent in (message(), message(WRONG["code_execution"], "code_execution")):
        with pytest.raises(RuntimeError, match=r"^the interceptor is closed$"):
            ask(own, sent)


@pytest.mark.drill
def test_without_engines_it_starts_its_own_when_one_is_needed_and_ends_them(own: A2AVerificationInterceptor) -> None:
    assert ask(own, message(WRONG["code_execution"], "code_execution")).status == "blocked"
    assert own._engines is None or not own._engines._pool.processes
    assert said(ask(own, SCRIPT)) == ("forwarded", "code_guard")
    engines = own._engines
    assert engines is not None
    assert engines._pool.processes
    own.close()
    assert engines._pool.processes == ()


def test_engines_it_was_given_are_not_ended_with_it() -> None:
    given = Failing(Verdicts(EnginePool(ROWS.values()), 10.0), "close", AssertionError("ended"))
    A2AVerificationInterceptor(engines=given).close()  # type: ignore[arg-type]
    assert given.calls == 0

"""Lists of the trust boundary and the order of its checks."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from qwed.model.clock import Clock
from qwed_a2a import PayloadType, TrustBoundary
from qwed_a2a.trust_boundary import PASSED

STILL = Clock(monotonic=lambda: 1000.0)


def boundary(*args: Any, **more: Any) -> TrustBoundary:
    return TrustBoundary(*args, clock=STILL, **more)


def test_by_default_everybody_may_send_to_everybody() -> None:
    trust = boundary()
    assert (trust.max_requests_per_minute, trust.default_allow, trust.strict_mode) == (60, True, False)
    assert trust.evaluate("a", "b", PayloadType.GENERAL) == PASSED


@pytest.mark.parametrize(("side", "pair"), [("sender", ("evil", "b")), ("receiver", ("a", "evil"))])
def test_a_blocked_agent_sends_and_receives_nothing(side: str, pair: tuple[str, str]) -> None:
    trust = boundary()
    trust.block_agent("evil")
    assert trust.evaluate(*pair) == (False, f"the {side} is blocked")
    trust.unblock_agent("evil")
    assert trust.evaluate(*pair) == PASSED


def test_a_blocked_pair_is_blocked_in_its_direction_only() -> None:
    trust = boundary()
    trust.block_pair("a", "b")
    assert trust.evaluate("a", "b") == (False, "the sender is blocked for this receiver")
    assert all(trust.evaluate(*pair)[0] for pair in [("b", "a"), ("a", "c"), ("c", "b")])
    trust.unblock_pair("b", "a")
    assert not trust.evaluate("a", "b")[0]
    trust.unblock_pair("a", "b")
    assert trust.evaluate("a", "b") == PASSED


SPELLINGS = [
    "EVIL-bot",
    "Evil-Bot",
    " evil-bot",
    "evil-bot\u00a0",
    "\uff45vil-bot",
    "evil\ufe63bot",
    "evil-\u200bbot",
    "ev\u0131l-bot",
]


@pytest.mark.parametrize("name", SPELLINGS[:-1])
def test_a_block_holds_for_every_spelling_of_the_name(name: str) -> None:
    trust = boundary()
    trust.block_agent("evil-bot")
    trust.block_pair("a", "seller")
    assert not trust.evaluate(name, "b")[0]
    assert not trust.evaluate("A", "Seller")[0]
    trust.unblock_agent(name)
    assert trust.evaluate("evil-bot", "b")[0]


def test_a_name_of_other_letters_is_another_name() -> None:
    trust = boundary()
    trust.block_agent("evil-bot")
    assert trust.evaluate(SPELLINGS[-1], "b")[0]


@pytest.mark.parametrize("name", ["Friend", " friend", "\uff46riend"])
def test_trust_is_for_the_one_spelling_that_was_trusted(name: str) -> None:
    trust = boundary(strict_mode=True)
    trust.trust_agent("friend")
    assert (trust.trusts("friend"), trust.trusts(name)) == (True, False)
    assert trust.evaluate("friend", "b")[0]
    assert not trust.evaluate(name, "b")[0]


def test_in_strict_mode_only_those_send_who_are_on_the_allowlist() -> None:
    trust = boundary(strict_mode=True)
    assert trust.evaluate("a", "b") == (False, "the sender is not on the allowlist")
    trust.trust_agent("a")
    assert trust.evaluate("a", "b") == PASSED
    assert not trust.evaluate("b", "a")[0]
    trust.revoke_agent("a")
    assert not trust.evaluate("a", "b")[0]


def test_where_nothing_is_allowed_by_default_both_ends_must_be_on_the_allowlist() -> None:
    trust = boundary(default_allow=False)
    trust.trust_agent("a")
    assert trust.evaluate("a", "b") == (False, "the receiver is not on the allowlist")
    trust.trust_agent("b")
    assert trust.evaluate("a", "b") == PASSED
    assert trust.evaluate("b", "a") == PASSED


def test_a_block_wins_over_trust() -> None:
    trust = boundary(strict_mode=True)
    trust.trust_agent("a")
    trust.block_agent("a")
    assert trust.evaluate("a", "b") == (False, "the sender is blocked")


def test_the_order_is_global_block_then_pair_then_allowlist_then_rate() -> None:
    trust, reasons = boundary(1, strict_mode=True), list[str]()
    trust.block_agent("a")
    trust.block_pair("a", "b")
    fixes: list[Callable[[], object]] = [
        lambda: trust.unblock_agent("a"),
        lambda: trust.unblock_pair("a", "b"),
        lambda: trust.trust_agent("a"),
        lambda: None,
        lambda: None,
    ]
    for fix in fixes:
        reasons.append(trust.evaluate("a", "b")[1])
        fix()
    assert reasons == [
        "the sender is blocked",
        "the sender is blocked for this receiver",
        "the sender is not on the allowlist",
        "within the trust boundary",
        "more than 1 messages per minute from this sender to this receiver",
    ]


def test_what_the_lists_refuse_takes_no_token() -> None:
    trust = boundary(1)
    trust.block_agent("a")
    for _ in range(5):
        trust.evaluate("a", "b")
    trust.unblock_agent("a")
    assert trust.evaluate("a", "b") == PASSED


def test_all_spellings_of_a_name_have_one_bucket() -> None:
    trust = boundary(2)
    assert [trust.evaluate(name, "b")[0] for name in ("a", "A", "\uff41", "a ")] == [True, True, False, False]


def test_without_a_limit_nobody_is_too_fast() -> None:
    trust = boundary(None)
    assert all(trust.evaluate("a", "b")[0] for _ in range(1000))


@pytest.mark.parametrize("rate", [0, -1, 100_001, True, 1.5, "60"])
def test_a_rate_that_is_none_is_refused_by_name(rate: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^`max_requests_per_minute` must be a whole number from 1 to 100000, or None"
    ):
        TrustBoundary(rate)


@pytest.mark.parametrize("name", ["default_allow", "strict_mode"])
@pytest.mark.parametrize("value", [0, 1, None, "no"])
def test_a_switch_that_is_neither_on_nor_off_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^`{name}` must be true or false$"):
        TrustBoundary(**{name: value})


@pytest.mark.parametrize("method", ["block_agent", "unblock_agent", "trust_agent", "revoke_agent"])
@pytest.mark.parametrize("name", ["", None, 7])
def test_an_agent_without_a_name_is_refused(method: str, name: Any) -> None:
    with pytest.raises(ValueError, match="must be a text that is not empty"):
        getattr(TrustBoundary(), method)(name)


def test_a_reason_says_no_name_that_somebody_made_up() -> None:
    trust = boundary(1)
    trust.block_agent("hunter2")
    assert "hunter2" not in trust.evaluate("hunter2", "b")[1] + trust.evaluate("b", "hunter2")[1]


def test_lists_may_be_changed_while_messages_pass() -> None:
    trust, results, stop = TrustBoundary(None), set[tuple[bool, str]](), threading.Event()

    def change() -> None:
        while not stop.is_set():
            trust.block_agent("a")
            trust.unblock_agent("a")

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(5000):
        results.add(trust.evaluate("a", "b"))
    stop.set()
    thread.join()
    assert results <= {PASSED, (False, "the sender is blocked")}

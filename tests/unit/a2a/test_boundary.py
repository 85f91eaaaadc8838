"""The lists of the trust boundary, and in which order they are asked."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from qwed.words.clock import Clock
from qwed_a2a import PayloadType, TrustBoundary
from qwed_a2a.boundary import PASSED

STILL = Clock(monotonic=lambda: 1000.0)


def boundary(*given: Any, **more: Any) -> TrustBoundary:
    return TrustBoundary(*given, clock=STILL, **more)


def test_by_default_everybody_may_send_to_everybody() -> None:
    made = boundary()
    assert (made.max_requests_per_minute, made.default_allow, made.strict_mode) == (60, True, False)
    assert made.evaluate("a", "b", PayloadType.GENERAL) == PASSED


@pytest.mark.parametrize(("side", "pair"), [("sender", ("evil", "b")), ("receiver", ("a", "evil"))])
def test_a_blocked_agent_sends_and_receives_nothing(side: str, pair: tuple[str, str]) -> None:
    made = boundary()
    made.block_agent("evil")
    assert made.evaluate(*pair) == (False, f"the {side} is blocked")
    made.unblock_agent("evil")
    assert made.evaluate(*pair) == PASSED


def test_a_blocked_pair_is_blocked_in_its_direction_only() -> None:
    made = boundary()
    made.block_pair("a", "b")
    assert made.evaluate("a", "b") == (False, "the sender is blocked for this receiver")
    assert all(made.evaluate(*pair)[0] for pair in [("b", "a"), ("a", "c"), ("c", "b")])
    made.unblock_pair("b", "a")
    assert not made.evaluate("a", "b")[0]
    made.unblock_pair("a", "b")
    assert made.evaluate("a", "b") == PASSED


SPELLED = [
    "EVIL-bot",
    "Evil-Bot",
    " evil-bot",
    "evil-bot\u00a0",
    "\uff45vil-bot",
    "evil\ufe63bot",
    "evil-\u200bbot",
    "ev\u0131l-bot",
]


@pytest.mark.parametrize("name", SPELLED[:-1])
def test_a_block_holds_for_every_spelling_of_the_name(name: str) -> None:
    made = boundary()
    made.block_agent("evil-bot")
    made.block_pair("a", "seller")
    assert not made.evaluate(name, "b")[0]
    assert not made.evaluate("A", "Seller")[0]
    made.unblock_agent(name)
    assert made.evaluate("evil-bot", "b")[0]


def test_a_name_of_other_letters_is_another_name() -> None:
    made = boundary()
    made.block_agent("evil-bot")
    assert made.evaluate(SPELLED[-1], "b")[0]


@pytest.mark.parametrize("name", ["Friend", " friend", "\uff46riend"])
def test_trust_is_for_the_one_spelling_that_was_trusted(name: str) -> None:
    made = boundary(strict_mode=True)
    made.trust_agent("friend")
    assert (made.trusts("friend"), made.trusts(name)) == (True, False)
    assert made.evaluate("friend", "b")[0]
    assert not made.evaluate(name, "b")[0]


def test_in_strict_mode_only_those_send_who_are_on_the_allowlist() -> None:
    made = boundary(strict_mode=True)
    assert made.evaluate("a", "b") == (False, "the sender is not on the allowlist")
    made.trust_agent("a")
    assert made.evaluate("a", "b") == PASSED
    assert not made.evaluate("b", "a")[0]
    made.revoke_agent("a")
    assert not made.evaluate("a", "b")[0]


def test_where_nothing_is_allowed_by_default_both_ends_must_be_on_the_allowlist() -> None:
    made = boundary(default_allow=False)
    made.trust_agent("a")
    assert made.evaluate("a", "b") == (False, "the receiver is not on the allowlist")
    made.trust_agent("b")
    assert made.evaluate("a", "b") == PASSED
    assert made.evaluate("b", "a") == PASSED


def test_a_block_wins_over_trust() -> None:
    made = boundary(strict_mode=True)
    made.trust_agent("a")
    made.block_agent("a")
    assert made.evaluate("a", "b") == (False, "the sender is blocked")


def test_the_order_is_global_block_then_pair_then_allowlist_then_rate() -> None:
    made, heard = boundary(1, strict_mode=True), list[str]()
    made.block_agent("a")
    made.block_pair("a", "b")
    mending: list[Callable[[], object]] = [
        lambda: made.unblock_agent("a"),
        lambda: made.unblock_pair("a", "b"),
        lambda: made.trust_agent("a"),
        lambda: None,
        lambda: None,
    ]
    for mend in mending:
        heard.append(made.evaluate("a", "b")[1])
        mend()
    assert heard == [
        "the sender is blocked",
        "the sender is blocked for this receiver",
        "the sender is not on the allowlist",
        "within the trust boundary",
        "more than 1 messages per minute from this sender to this receiver",
    ]


def test_what_the_lists_refuse_takes_no_token() -> None:
    made = boundary(1)
    made.block_agent("a")
    for _ in range(5):
        made.evaluate("a", "b")
    made.unblock_agent("a")
    assert made.evaluate("a", "b") == PASSED


def test_all_spellings_of_a_name_have_one_bucket() -> None:
    made = boundary(2)
    assert [made.evaluate(name, "b")[0] for name in ("a", "A", "\uff41", "a ")] == [True, True, False, False]


def test_without_a_limit_nobody_is_too_fast() -> None:
    made = boundary(None)
    assert all(made.evaluate("a", "b")[0] for _ in range(1000))


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


@pytest.mark.parametrize("verb", ["block_agent", "unblock_agent", "trust_agent", "revoke_agent"])
@pytest.mark.parametrize("name", ["", None, 7])
def test_an_agent_without_a_name_is_refused(verb: str, name: Any) -> None:
    with pytest.raises(ValueError, match="must be a text that is not empty"):
        getattr(TrustBoundary(), verb)(name)


def test_a_reason_says_no_name_that_somebody_made_up() -> None:
    made = boundary(1)
    made.block_agent("hunter2")
    assert "hunter2" not in made.evaluate("hunter2", "b")[1] + made.evaluate("b", "hunter2")[1]


def test_lists_may_be_changed_while_messages_pass() -> None:
    made, said, stop = TrustBoundary(None), set[tuple[bool, str]](), threading.Event()

    def change() -> None:
        while not stop.is_set():
            made.block_agent("a")
            made.unblock_agent("a")

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(5000):
        said.add(made.evaluate("a", "b"))
    stop.set()
    thread.join()
    assert said <= {PASSED, (False, "the sender is blocked")}

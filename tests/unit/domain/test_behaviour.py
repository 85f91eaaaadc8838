"""Every boundary of the degradation rules, also against a model that counts by hand (spec 8.3, ruling 4.2)."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.domain.behaviour import NO_BEHAVIOUR, BehaviourFlag, BehaviourWindow, DegradationRule
from qwed.model.clock import HOUR
from tests.support.manual_clock import NOON

LETTERS = {mark.value: mark for mark in BehaviourFlag}
DENIALS, BUDGET, SECURITY = (DegradationRule.DENIALS,), (DegradationRule.BUDGET,), (DegradationRule.SECURITY,)


def _after(
    marks: str, window: BehaviourWindow = NO_BEHAVIOUR
) -> tuple[BehaviourWindow, list[tuple[int, tuple[DegradationRule, ...]]]]:
    """Return the window after these flags, a second apart, and which rules were broken when."""
    broken = []
    for number, letter in enumerate(marks):
        window, offences = window.after(LETTERS[letter], NOON + number)
        if offences:
            broken.append((number, offences))
    return window, broken


# More than one in ten denied, of at least twenty


def test_nineteen_decisions_say_nothing_about_a_rate() -> None:
    assert _after("d" * 19)[1] == []


def test_the_twentieth_decision_does() -> None:
    assert _after("d" * 20)[1] == [(19, DENIALS)]


@pytest.mark.parametrize(("denied", "broken"), [(2, []), (3, [(19, DENIALS)])], ids=["a tenth", "more than a tenth"])
def test_a_tenth_of_twenty_is_allowed_and_more_is_not(
    denied: int, broken: list[tuple[int, tuple[DegradationRule, ...]]]
) -> None:
    assert _after("d" * denied + "." * (20 - denied))[1] == broken


@pytest.mark.parametrize("length", range(20, 101))
def test_a_tenth_is_exactly_a_tenth_at_every_length(length: int) -> None:
    allowed = length // 10
    first = "." * (length - allowed)
    assert _after(first + "d" * allowed)[1] == []
    at_the_end = _after("." * (length - allowed - 1) + "d" * (allowed + 1))[1]
    assert [offences for _number, offences in at_the_end] == [DENIALS]


def test_ten_of_the_last_hundred_are_allowed_and_eleven_are_not() -> None:
    clean, _none = _after("." * 90)
    ten, broken = _after("d" * 10, clean)
    assert (broken, ten.recent_flags) == ([], "." * 90 + "d" * 10)
    assert ten.after(BehaviourFlag.DENIED, NOON)[1] == DENIALS
    assert ten.after(BehaviourFlag.CLEAN, NOON)[1] == ()


def test_what_is_a_hundred_decisions_old_is_forgotten() -> None:
    window = BehaviourWindow(recent_flags="d" * 10 + "." * 90)
    after, broken = window.after(BehaviourFlag.DENIED, NOON)
    assert (broken, after.recent_flags) == ((), "d" * 9 + "." * 90 + "d")


def test_the_rule_rests_for_a_hundred_decisions_and_fires_again_at_the_hundredth() -> None:
    assert _after("d" * 320)[1] == [(19, DENIALS), (119, DENIALS), (219, DENIALS), (319, DENIALS)]


def test_a_rest_that_ends_among_clean_decisions_waits_for_the_next_denials() -> None:
    fired, _broken = _after("d" * 20)
    better, broken = _after("." * 100, fired)
    assert (broken, better.denial_cooldown) == ([], 0)
    assert _after("d" * 11, better)[1] == [(10, DENIALS)]


def test_a_violation_counts_as_a_denial_and_an_exceeded_budget_does_not() -> None:
    assert _after("vvv" + "." * 17)[1] == [(0, SECURITY), (1, SECURITY), (2, SECURITY), (19, DENIALS)]
    assert _after("eeee" + "." * 17)[1] == []


# A violation


def test_every_violation_is_an_offence_of_its_own() -> None:
    assert _after("v.v")[1] == [(0, SECURITY), (2, SECURITY)]


def test_a_violation_that_also_makes_too_many_denials_breaks_both_rules() -> None:
    assert _after("dd" + "." * 17 + "v")[1] == [(19, (DegradationRule.SECURITY, DegradationRule.DENIALS))]


# Budgets


def _exceed(
    *seconds: float, window: BehaviourWindow = NO_BEHAVIOUR
) -> tuple[BehaviourWindow, list[tuple[DegradationRule, ...]]]:
    heard = []
    for second in seconds:
        window, offences = window.after(BehaviourFlag.EXCEEDED, NOON + second)
        heard.append(offences)
    return window, heard


def test_the_fifth_exceeded_budget_within_an_hour_is_abuse_and_counting_begins_anew() -> None:
    window, heard = _exceed(*range(10))
    assert heard == [(), (), (), (), BUDGET] * 2
    assert window.exceeded_times == ""


def test_five_over_a_whole_hour_are_no_abuse_and_a_millisecond_less_is() -> None:
    assert _exceed(0, 1, 2, 3, HOUR)[1][-1] == ()
    assert _exceed(0, 1, 2, 3, HOUR - 0.001)[1][-1] == BUDGET


def test_what_is_an_hour_old_is_dropped() -> None:
    window, _heard = _exceed(0, 1, 2, 3, HOUR + 2)
    assert window.exceeded_times.split() == [str(int((NOON + second) * 1000)) for second in (3, HOUR + 2)]


def test_decisions_in_between_do_not_reset_the_count() -> None:
    assert _after("e.e.e.e.e")[1] == [(8, BUDGET)]


def test_a_clock_that_goes_back_forgives_nothing() -> None:
    assert _exceed(0, 1, 2, 3, -5 * HOUR)[1][-1] == BUDGET


def test_a_fifth_that_also_ends_a_rest_of_denials_breaks_both_rules() -> None:
    window = BehaviourWindow("d" * 30, 1, _exceed(0, 1, 2, 3)[0].exceeded_times)
    after, offences = window.after(BehaviourFlag.EXCEEDED, NOON + 4)
    assert offences == (DegradationRule.DENIALS, DegradationRule.BUDGET)
    assert (after.denial_cooldown, after.exceeded_times) == (100, "")


# Against a model that counts by hand


class _Model:
    def __init__(self) -> None:
        self.marks: list[str] = []
        self.times: list[int] = []
        self.fired_at: int | None = None

    def decide(self, letter: str, at: float) -> set[DegradationRule]:
        self.marks.append(letter)
        broken = {DegradationRule.SECURITY} if letter == "v" else set()
        position = len(self.marks)
        window = self.marks[-100:]
        rested = self.fired_at is None or position - self.fired_at >= 100
        if rested and len(window) >= 20 and Fraction(sum(one in "dv" for one in window), len(window)) > Fraction(1, 10):
            broken.add(DegradationRule.DENIALS)
            self.fired_at = position
        if letter == "e":
            self.times.append(int(at * 1000))
            within = [time for time in self.times if time > at * 1000 - 3_600_000]
            if len(within) >= 5:
                broken.add(DegradationRule.BUDGET)
                self.times.clear()
        return broken


DECISIONS = st.lists(
    st.tuples(st.sampled_from("........ddve"), st.sampled_from([0.0, 0.001, 1.0, 600.0, 899.999, 900.0, 3600.0])),
    max_size=400,
)


@settings(derandomize=True, database=None, deadline=None, max_examples=150)
@given(DECISIONS)
def test_conduct_says_what_a_model_says_that_keeps_everything(decisions: list[tuple[str, float]]) -> None:
    model, window, at = _Model(), NO_BEHAVIOUR, NOON
    for letter, pause in decisions:
        at += pause
        window, offences = window.after(LETTERS[letter], at)
        assert set(offences) == model.decide(letter, at)
        assert len(offences) == len(set(offences))
        assert window.recent_flags == "".join(model.marks[-100:])
        assert len(window.exceeded_times.split()) < 5
        assert 0 <= window.denial_cooldown <= 100

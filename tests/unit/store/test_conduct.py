"""Spec 8.3 and ruling 4.2: every boundary of the rules of conduct, and the same against a model that counts by hand."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.store.conduct import CLEAN_RECORD, PENALTY, Conduct, Mark, Offence
from qwed.words import Decision, Trust
from qwed.words.clock import HOUR
from tests.support.clock import NOON, HandClock
from tests.support.stores import KINDS, Shop, agent_of

LETTERS = {mark.value: mark for mark in Mark}
DENIALS, BUDGET, SECURITY = (Offence.DENIALS,), (Offence.BUDGET,), (Offence.SECURITY,)


def _after(marks: str, conduct: Conduct = CLEAN_RECORD) -> tuple[Conduct, list[tuple[int, tuple[Offence, ...]]]]:
    """The conduct after these marks, a second apart, and at which of them which rules were broken."""
    broken = []
    for number, letter in enumerate(marks):
        conduct, offences = conduct.after(LETTERS[letter], NOON + number)
        if offences:
            broken.append((number, offences))
    return conduct, broken


# More than one in ten denied, of at least twenty


def test_nineteen_decisions_say_nothing_about_a_rate() -> None:
    assert _after("d" * 19)[1] == []


def test_the_twentieth_decision_does() -> None:
    assert _after("d" * 20)[1] == [(19, DENIALS)]


@pytest.mark.parametrize(("denied", "broken"), [(2, []), (3, [(19, DENIALS)])], ids=["a tenth", "more than a tenth"])
def test_a_tenth_of_twenty_is_allowed_and_more_is_not(
    denied: int, broken: list[tuple[int, tuple[Offence, ...]]]
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
    assert (broken, ten.recent) == ([], "." * 90 + "d" * 10)
    assert ten.after(Mark.DENIED, NOON)[1] == DENIALS
    assert ten.after(Mark.CLEAN, NOON)[1] == ()


def test_what_is_a_hundred_decisions_old_is_forgotten() -> None:
    conduct = Conduct(recent="d" * 10 + "." * 90)
    after, broken = conduct.after(Mark.DENIED, NOON)
    assert (broken, after.recent) == ((), "d" * 9 + "." * 90 + "d")


def test_the_rule_rests_for_a_hundred_decisions_and_fires_again_at_the_hundredth() -> None:
    assert _after("d" * 320)[1] == [(19, DENIALS), (119, DENIALS), (219, DENIALS), (319, DENIALS)]


def test_a_rest_that_ends_among_clean_decisions_waits_for_the_next_denials() -> None:
    fired, _broken = _after("d" * 20)
    better, broken = _after("." * 100, fired)
    assert (broken, better.rest) == ([], 0)
    assert _after("d" * 11, better)[1] == [(10, DENIALS)]


def test_a_violation_counts_as_a_denial_and_an_exceeded_budget_does_not() -> None:
    assert _after("vvv" + "." * 17)[1] == [(0, SECURITY), (1, SECURITY), (2, SECURITY), (19, DENIALS)]
    assert _after("eeee" + "." * 17)[1] == []


# A violation


def test_every_violation_is_an_offence_of_its_own() -> None:
    assert _after("v.v")[1] == [(0, SECURITY), (2, SECURITY)]


def test_a_violation_that_also_makes_too_many_denials_breaks_both_rules() -> None:
    assert _after("dd" + "." * 17 + "v")[1] == [(19, (Offence.SECURITY, Offence.DENIALS))]


# Budgets


def _exceed(*seconds: float, conduct: Conduct = CLEAN_RECORD) -> tuple[Conduct, list[tuple[Offence, ...]]]:
    heard = []
    for second in seconds:
        conduct, offences = conduct.after(Mark.EXCEEDED, NOON + second)
        heard.append(offences)
    return conduct, heard


def test_the_fifth_exceeded_budget_within_an_hour_is_abuse_and_counting_begins_anew() -> None:
    conduct, heard = _exceed(*range(10))
    assert heard == [(), (), (), (), BUDGET] * 2
    assert conduct.exceeded == ""


def test_five_over_a_whole_hour_are_no_abuse_and_a_millisecond_less_is() -> None:
    assert _exceed(0, 1, 2, 3, HOUR)[1][-1] == ()
    assert _exceed(0, 1, 2, 3, HOUR - 0.001)[1][-1] == BUDGET


def test_what_is_an_hour_old_is_dropped() -> None:
    conduct, _heard = _exceed(0, 1, 2, 3, HOUR + 2)
    assert conduct.exceeded.split() == [str(int((NOON + second) * 1000)) for second in (3, HOUR + 2)]


def test_decisions_in_between_do_not_reset_the_count() -> None:
    assert _after("e.e.e.e.e")[1] == [(8, BUDGET)]


def test_a_clock_that_goes_back_forgives_nothing() -> None:
    assert _exceed(0, 1, 2, 3, -5 * HOUR)[1][-1] == BUDGET


def test_a_fifth_that_also_ends_a_rest_of_denials_breaks_both_rules() -> None:
    conduct = Conduct("d" * 30, 1, _exceed(0, 1, 2, 3)[0].exceeded)
    after, offences = conduct.after(Mark.EXCEEDED, NOON + 4)
    assert offences == (Offence.DENIALS, Offence.BUDGET)
    assert (after.rest, after.exceeded) == (100, "")


# Against a model that keeps everything and counts by hand


class _Model:
    def __init__(self) -> None:
        self.marks: list[str] = []
        self.times: list[int] = []
        self.fired_at: int | None = None

    def decide(self, letter: str, at: float) -> set[Offence]:
        self.marks.append(letter)
        broken = {Offence.SECURITY} if letter == "v" else set()
        place = len(self.marks)
        window = self.marks[-100:]
        rested = self.fired_at is None or place - self.fired_at >= 100
        if rested and len(window) >= 20 and Fraction(sum(one in "dv" for one in window), len(window)) > Fraction(1, 10):
            broken.add(Offence.DENIALS)
            self.fired_at = place
        if letter == "e":
            self.times.append(int(at * 1000))
            within = [time for time in self.times if time > at * 1000 - 3_600_000]
            if len(within) >= 5:
                broken.add(Offence.BUDGET)
                self.times.clear()
        return broken


DECISIONS = st.lists(
    st.tuples(st.sampled_from("........ddve"), st.sampled_from([0.0, 0.001, 1.0, 600.0, 899.999, 900.0, 3600.0])),
    max_size=400,
)


@settings(derandomize=True, database=None, deadline=None, max_examples=150)
@given(DECISIONS)
def test_conduct_says_what_a_model_says_that_keeps_everything(decisions: list[tuple[str, float]]) -> None:
    model, conduct, at = _Model(), CLEAN_RECORD, NOON
    for letter, pause in decisions:
        at += pause
        conduct, offences = conduct.after(LETTERS[letter], at)
        assert set(offences) == model.decide(letter, at)
        assert len(offences) == len(set(offences))
        assert conduct.recent == "".join(model.marks[-100:])
        assert len(conduct.exceeded.split()) < 5
        assert 0 <= conduct.rest <= 100


# What a store makes of it


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    opened = Shop(request.param, tmp_path / "data", HandClock())
    yield opened
    opened.store.close()


def _mark(shop: Shop, mark: Mark, agent_id: str = "agent_1") -> None:
    decision = Decision.BUDGET_EXCEEDED if mark is Mark.EXCEEDED else Decision.DENIED
    shop.settle(shop.store.find_agent(agent_id), None, decision, mark=mark)


@pytest.mark.parametrize(("before", "after"), [(3, 1), (2, 0), (1, 0), (0, 0)])
def test_a_violation_costs_two_levels_and_never_more_than_there_are(shop: Shop, before: int, after: int) -> None:
    shop.register(replace(agent_of(), trust=Trust(before)))
    _mark(shop, Mark.VIOLATION)
    assert shop.store.find_agent("agent_1").trust == after
    # The decision and the loss are two leaves; where nothing is lost nothing is logged.
    assert shop.next_index("org_1") == (2 if before else 1)


@pytest.mark.parametrize(
    ("marks", "lost"),
    [([Mark.DENIED] * 19, 0), ([Mark.DENIED] * 20, 1), ([Mark.EXCEEDED] * 4, 0), ([Mark.EXCEEDED] * 5, 1)],
    ids=["nineteen denials", "twenty denials", "four budgets", "five budgets"],
)
def test_the_other_offences_cost_one_level(shop: Shop, marks: list[Mark], lost: int) -> None:
    shop.register(replace(agent_of(), trust=Trust.TRUSTED))
    for mark in marks:
        _mark(shop, mark)
    assert shop.store.find_agent("agent_1").trust == 3 - lost


def test_two_offences_of_one_decision_cost_both_penalties_each_with_its_leaf(shop: Shop) -> None:
    shop.register(replace(agent_of(), trust=Trust.TRUSTED))
    for mark in [Mark.DENIED] * 2 + [Mark.CLEAN] * 17:
        _mark(shop, mark)
    _mark(shop, Mark.VIOLATION)
    assert shop.store.find_agent("agent_1").trust == 3 - PENALTY[Offence.SECURITY] - PENALTY[Offence.DENIALS]
    assert shop.next_index("org_1") == 20 + 2


def test_an_answer_that_says_nothing_leaves_conduct_as_it_was(shop: Shop) -> None:
    shop.register(agent_of())
    for _ in range(30):
        _mark(shop, Mark.NONE)
    assert shop.store._live.usage("agent_1").conduct == CLEAN_RECORD


def test_each_agent_has_its_own_conduct(shop: Shop) -> None:
    for name in ("agent_1", "agent_2"):
        shop.register(replace(agent_of(name), trust=Trust.TRUSTED))
    for number in range(20):
        _mark(shop, Mark.DENIED, f"agent_{number % 2 + 1}")
    assert [shop.store.find_agent(f"agent_{number}").trust for number in (1, 2)] == [3, 3]


def test_conduct_lives_through_a_restart(tmp_path: Path) -> None:
    shop = Shop("file", tmp_path / "data", HandClock())
    shop.register(replace(agent_of(), trust=Trust.TRUSTED))
    for number in range(25):
        _mark(shop, Mark.EXCEEDED if number % 6 == 5 else Mark.DENIED)
    before = shop.store._live.usage("agent_1").conduct
    shop.reopened()
    assert shop.store._live.usage("agent_1").conduct == before
    assert (before.rest, len(before.exceeded.split())) == (95, 4)
    _mark(shop, Mark.EXCEEDED)
    assert shop.store.find_agent("agent_1").trust == 3 - 2
    shop.reopened()
    assert shop.store.find_agent("agent_1").trust == 3 - 2
    shop.store.close()

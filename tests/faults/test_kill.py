"""P1-P3 across a power cut: the process is killed at every stage of the pipeline.

Every reported decision is stored, nothing is charged that is not in the log, no step is used twice, and requests in
flight may be repeated at once. `make drill` repeats this many times for each place.
"""

from pathlib import Path

import pytest

import qwed
from tests.faults.crashing_server import AFTER_COMMIT, BEFORE_COMMIT, INSIDE_BATCH
from tests.faults.scenario import CALLERS, CALLS, CrashScenario, retry_everything
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.pipeline_stages import ANSWER, DECISION

COMMITTING = [BEFORE_COMMIT, INSIDE_BATCH, AFTER_COMMIT]
PLACES = [*DECISION, *ANSWER, *COMMITTING]
CENT = 10_000


@pytest.fixture
def scenario(tmp_path: Path) -> CrashScenario:
    return CrashScenario(tmp_path / "data")


def _live_through(scenario: CrashScenario, place: str, rounds: range) -> None:
    for round_ in rounds:
        asked = scenario.end(place, times=1 + (round_ * 5 + 3) % 12, round_=round_)
        books = scenario.require_kept()
        retry_everything(scenario, asked, books)
        after = scenario.require_kept()
        assert len(after.activities) >= len(books.activities)


# The shape of the batch matters where it is written, so both are tried; elsewhere the places alternate.
ROUNDS = {place: range(n % 2, n % 2 + 1) for n, place in enumerate(PLACES)} | {place: range(2) for place in COMMITTING}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_told_is_lost_and_nothing_is_charged_twice_when_the_process_ends_at(
    scenario: CrashScenario, place: str
) -> None:
    _live_through(scenario, place, ROUNDS[place])


IN_A_ROW = 25


@pytest.mark.drill
@campaign("P1 P2 P3 P5", "kills at a named place of the walk")
@pytest.mark.parametrize("place", PLACES)
def test_many_ends_in_a_row_leave_one_story_when_the_process_ends_at(
    scenario: CrashScenario, place: str, figure: Figure
) -> None:
    _live_through(scenario, place, range(IN_A_ROW))
    figure("kills", IN_A_ROW)
    figure("requests", IN_A_ROW * CALLS)
    figure("answers told before a kill", len(scenario.told))


@pytest.mark.parametrize("place", ["reserve", "decide", "commit", BEFORE_COMMIT, INSIDE_BATCH])
def test_a_step_in_flight_when_the_process_ended_is_free_at_the_next_start(scenario: CrashScenario, place: str) -> None:
    asked = scenario.end(place, times=1, round_=0)
    assert [one.heard for one in asked] == [None] * CALLS
    with qwed.open(scenario.directory) as gate:
        first = asked[0]
        assert gate.verify_action(first.agent_id, first.action, first.context).decision == "APPROVED"
        cost = gate.get_agent_budget(first.agent_id)["cost"]
        assert (cost["current_daily_usd"], cost["held_usd"]) == (0.01, 0)


@pytest.mark.parametrize("round_", [0, 1], ids=["several statements", "one statement"])
@pytest.mark.parametrize("place", COMMITTING)
def test_the_first_batch_is_kept_whole_or_not_at_all_when_the_process_ends(
    scenario: CrashScenario, place: str, round_: int
) -> None:
    asked = scenario.end(place, times=1, round_=round_)
    assert [one.heard for one in asked] == [None] * CALLS
    books = scenario.require_kept()
    kept = (
        books.activities,
        books.usage,
        books.daily_totals,
        books.conversations,
        books.approvals,
        books.stored_answers,
    )
    if place == AFTER_COMMIT:
        assert [bool(rows) for rows in kept] == [True, True, True, True, False, round_ == 0]
    else:
        assert not any(kept)


def test_what_became_durable_but_was_never_told_is_told_to_the_retry_and_charged_once(scenario: CrashScenario) -> None:
    asked = scenario.end(AFTER_COMMIT, times=1, round_=0)
    assert [one.heard for one in asked] == [None] * CALLS
    committed = DataDirectoryCheck(scenario.directory).committed()
    assert committed
    with qwed.open(scenario.directory) as gate:
        answers = [one.again(gate) for one in asked[:CALLERS]]
        reported = {answer.action_id for answer in answers if answer.decision in COMMITTED}
        assert {activity.activity_id for activity in committed} <= reported
    books = scenario.require_kept()
    charged = sum(usage["cost_day"] for usage in books.usage.values())
    assert charged == CENT * sum(activity.decision == "APPROVED" for activity in books.committed())

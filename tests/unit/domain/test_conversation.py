"""Step and loop rules of a conversation (spec 9.2, 9.3, LOOP-004)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from qwed.domain.conversation import MAX_REPEATS, MAX_SAME_STATE, WINDOW, ConversationHistory, ConversationStep
from qwed.model import Decision, ErrorCode

steady = settings(derandomize=True, database=None, deadline=None, max_examples=200)


def _after(*steps: ConversationStep, decision: Decision = Decision.APPROVED) -> ConversationHistory:
    history = ConversationHistory()
    for step in steps:
        history = history.after(step, decision)
    return history


def test_a_new_conversation_refuses_nothing_but_the_limit() -> None:
    fresh = ConversationHistory()
    assert [fresh.refuses_step(number, 50) for number in (1, 50)] == [None, None]
    assert fresh.refuses_step(51, 50) is ErrorCode.STEP_LIMIT
    assert fresh.refuses_loop(ConversationStep(1, "f", "s")) is None


def test_gaps_are_allowed_and_going_back_is_not() -> None:
    conversation = _after(ConversationStep(3, "f"))
    assert [conversation.refuses_step(number, 50) for number in (1, 2, 3)] == [ErrorCode.REPLAY] * 3
    assert conversation.refuses_step(7, 50) is None


def test_a_full_conversation_is_full_whatever_the_number() -> None:
    conversation = _after(*(ConversationStep(number, f"f{number}") for number in range(1, 4)))
    assert {conversation.refuses_step(number, 3) for number in (1, 3, 4)} == {ErrorCode.STEP_LIMIT}


def test_of_numbers_that_the_server_chose_only_the_steps_are_counted() -> None:
    conversation = ConversationHistory(last_step=60, steps=2)
    assert conversation.refuses_step(61, 3) is ErrorCode.STEP_LIMIT
    assert conversation.refuses_step(61, 3, auto_numbered=True) is None
    assert conversation.refuses_step(60, 3, auto_numbered=True) is ErrorCode.REPLAY
    assert replace(conversation, steps=3).refuses_step(61, 3, auto_numbered=True) is ErrorCode.STEP_LIMIT


def test_the_third_identical_action_in_a_row_is_a_loop_and_another_one_breaks_it() -> None:
    conversation = _after(ConversationStep(1, "f"), ConversationStep(2, "f"))
    assert conversation.refuses_loop(ConversationStep(3, "f")) is ErrorCode.REPETITION
    assert conversation.refuses_loop(ConversationStep(3, "g")) is None
    conversation = conversation.after(ConversationStep(3, "g"), Decision.APPROVED)
    assert conversation.refuses_loop(ConversationStep(4, "f")) is None


@pytest.mark.parametrize("decision", [Decision.CORRECTED, Decision.PENDING])
def test_only_what_was_approved_is_remembered_as_a_state(decision: Decision) -> None:
    conversation = _after(
        ConversationStep(1, "a", "s"), ConversationStep(2, "b", "s"), ConversationStep(3, "c", "s"), decision=decision
    )
    assert conversation.recent_states == ""
    assert conversation.refuses_loop(ConversationStep(4, "d", "s")) is None


def test_the_third_of_one_state_is_no_progress_until_it_leaves_the_window() -> None:
    conversation = _after(ConversationStep(1, "a", "s"), ConversationStep(2, "b", "s"))
    assert conversation.refuses_loop(ConversationStep(3, "c", "s")) is ErrorCode.NO_PROGRESS
    for number in range(3, 3 + WINDOW - 2):
        conversation = conversation.after(ConversationStep(number, f"f{number}", f"s{number}"), Decision.APPROVED)
    assert conversation.refuses_loop(ConversationStep(30, "c", "s")) is ErrorCode.NO_PROGRESS
    conversation = conversation.after(ConversationStep(30, "x", "s30"), Decision.APPROVED)
    assert conversation.refuses_loop(ConversationStep(31, "c", "s")) is None
    assert len(conversation.recent_states.split()) == WINDOW


def test_repetition_is_said_before_no_progress() -> None:
    conversation = _after(ConversationStep(1, "f", "s"), ConversationStep(2, "f", "s"))
    assert conversation.refuses_loop(ConversationStep(3, "f", "s")) is ErrorCode.REPETITION


steps = st.lists(
    st.builds(
        ConversationStep,
        st.integers(1, 60),
        st.sampled_from("abc"),
        st.none() | st.sampled_from(["s", "t"]),
        st.just(False),
        st.just(False),
    ),
    max_size=60,
)


@steady
@given(steps)
def test_whatever_is_asked_only_what_is_not_refused_ever_commits(asked: list[ConversationStep]) -> None:
    conversation, log = ConversationHistory(), []
    for step in asked:
        if conversation.refuses_step(step.number, 50) or conversation.refuses_loop(step):
            continue
        conversation = conversation.after(step, Decision.APPROVED)
        log.append(step)
    numbers = [step.number for step in log]
    assert numbers == sorted(set(numbers))
    assert len(log) <= 50
    for here in range(len(log)):
        row = [step.fingerprint for step in log[here : here + MAX_REPEATS + 1]]
        assert len(row) <= MAX_REPEATS or len(set(row)) > 1
    states = [step.state_fingerprint for step in log if step.state_fingerprint is not None]
    for here in range(len(states)):
        window = states[max(0, here - WINDOW) : here + 1]
        assert window.count(states[here]) <= MAX_SAME_STATE or len(window) > WINDOW

"""Guide: Conversation controls, How it works, Incrementing steps correctly, Progress-aware doom loop detection."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders
from tests.spec.requests import EMAIL, FALSE, SUM, WRONG_SUM, Json, another, said, settle
from tests.spec.sections import spec
from tests.support.server import Server

STATE = hashlib.sha256(b"the world as it was").hexdigest()
ELSE = hashlib.sha256(b"the world as it is").hexdigest()
SOURCES = ["file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom"]
HALTED = ("DENIED", "QWED-AGENT-LOOP-004")


def _on(state: str = STATE, source: str = "custom") -> Json:
    return {"pre_action_state_hash": state, "state_source": source}


@spec("guide/Conversation controls", "guide/How it works")
@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([(another(1), 51)], "QWED-AGENT-LOOP-001"),
        ([(SUM, 1), (SUM, 1)], "QWED-AGENT-LOOP-002"),
        ([(SUM, 1), (SUM, 2), (SUM, 3)], "QWED-AGENT-LOOP-003"),
    ],
)
def test_each_control_has_its_code(ask: AgentConversation, steps: list[tuple[Json, int]], code: str) -> None:
    answers = [said(ask(action, step)) for action, step in steps]
    assert answers == [("APPROVED", None)] * (len(steps) - 1) + [("DENIED", code)]


@spec("guide/Incrementing steps correctly")
def test_the_example_of_incrementing_steps(ask: AgentConversation) -> None:
    answers = [ask(SUM, step) for step in (1, 2, 3)]
    assert [answer["decision"] for answer in answers] == ["APPROVED", "APPROVED", "DENIED"]
    assert answers[2]["error"]["code"] == "QWED-AGENT-LOOP-003"
    assert ask({"type": "verify_logic", "query": "x > 1"}, 3)["decision"] == "APPROVED"


@spec("guide/Progress-aware doom loop detection (LOOP-004)", "guide/Conversation controls")
def test_the_same_action_on_the_same_state_is_halted_the_third_time(ask: AgentConversation) -> None:
    answers = []
    for turn in range(3):
        answers.append(said(ask(SUM, 2 * turn + 1, **_on())))
        # Another action in between, so that the repetitions are not consecutive.
        ask(another(turn), 2 * turn + 2)
    assert answers == [("APPROVED", None), ("APPROVED", None), HALTED]


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_it_is_halted_every_time_after_that_too(ask: AgentConversation) -> None:
    for step, action in enumerate([SUM, another(1), SUM, another(2)], start=1):
        ask(action, step, **_on())
    assert [said(ask(SUM, 5, **_on())) for _ in range(3)] == [HALTED] * 3
    assert said(ask(another(3), 5, **_on())) == ("APPROVED", None)
    assert said(ask(SUM, 6, **_on())) == HALTED


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_without_a_state_nobody_can_tell_that_nothing_has_changed(ask: AgentConversation) -> None:
    for step in range(1, 13, 2):
        assert said(ask(SUM, step)) == ("APPROVED", None)
        assert said(ask(another(step), step + 1)) == ("APPROVED", None)


@spec("guide/Replay and loop detection", "9.3")
def test_a_state_that_has_changed_excuses_no_repetition_in_a_row(ask: AgentConversation) -> None:
    states = [hashlib.sha256(str(step).encode()).hexdigest() for step in (1, 2, 3)]
    answers = [said(ask(SUM, step, **_on(state))) for step, state in enumerate(states, start=1)]
    assert answers == [("APPROVED", None), ("APPROVED", None), ("DENIED", "QWED-AGENT-LOOP-003")]


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_a_halted_step_may_be_used_for_something_else(ask: AgentConversation) -> None:
    for step, action in enumerate([SUM, another(1), SUM, another(2)], start=1):
        ask(action, step, **_on())
    assert said(ask(SUM, 5, **_on())) == HALTED
    assert said(ask(another(3), 5, **_on())) == ("APPROVED", None)


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_a_state_that_has_changed_is_progress(ask: AgentConversation) -> None:
    for step, action in enumerate([SUM, another(1), SUM, another(2)], start=1):
        ask(action, step, **_on())
    assert said(ask(SUM, 5, **_on(ELSE))) == ("APPROVED", None)


@spec("guide/Progress-aware doom loop detection (LOOP-004)", "guide/Replay and loop detection")
def test_the_same_state_under_the_name_of_another_source_is_no_progress(ask: AgentConversation) -> None:
    for step, action in enumerate([SUM, another(1), SUM, another(2)], start=1):
        ask(action, step, **_on(STATE, "custom"))
    assert said(ask(SUM, 5, **_on(STATE, "git_tree"))) == HALTED


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_each_conversation_has_its_own_window(ask: AgentConversation) -> None:
    for name in "abcd":
        assert said(ask(SUM, 1, conversation=name, **_on())) == ("APPROVED", None)


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_the_window_holds_the_last_twenty(ask: AgentConversation) -> None:
    step = 0
    for action in [SUM, another(100), SUM, *[another(number) for number in range(19)]]:
        step += 1
        assert said(ask(action, step, **_on())) == ("APPROVED", None)
    # Of the two sums only the second is among the last twenty.
    assert said(ask(SUM, step + 1, **_on())) == ("APPROVED", None)


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_a_fingerprint_within_the_last_twenty_still_counts(ask: AgentConversation) -> None:
    step = 0
    for action in [SUM, another(100), SUM, *[another(number) for number in range(17)]]:
        step += 1
        assert said(ask(action, step, **_on())) == ("APPROVED", None)
    assert said(ask(SUM, step + 1, **_on())) == HALTED


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
@pytest.mark.parametrize("action", [EMAIL, FALSE])
def test_denied_and_pending_actions_do_not_affect_the_history(ask: AgentConversation, action: Json) -> None:
    decisions = set()
    for turn in range(4):
        decisions.add(said(ask(action, 2 * turn + 1, **_on()))[1])
        ask(another(turn), 2 * turn + 2, **_on())
    assert "QWED-AGENT-LOOP-004" not in decisions


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
@pytest.mark.parametrize(("action", "decision"), [(WRONG_SUM, "CORRECTED"), (EMAIL, "PENDING")])
def test_what_was_corrected_or_a_person_approved_is_not_in_the_history_either(
    keyholders: Keyholders, action: Json, decision: str
) -> None:
    ask = keyholders.create_agent()
    for turn in range(4):
        answer = ask(action, 2 * turn + 1, **_on())
        assert answer["decision"] == decision
        if decision == "PENDING":
            assert settle(keyholders.approver, answer["approval_id"]).status_code == 200
        ask(another(turn), 2 * turn + 2, **_on())


@spec("guide/Progress-aware doom loop detection (LOOP-004)", "guide/Action context enforcement")
@pytest.mark.parametrize("source", SOURCES)
def test_every_accepted_state_source(ask: AgentConversation, source: str) -> None:
    assert said(ask(SUM, 1, **_on(STATE, source))) == ("APPROVED", None)


BAD_STATES: list[tuple[Json, str]] = [
    ({"pre_action_state_hash": STATE}, "QWED-AGENT-STATE-001"),
    ({"state_source": "custom"}, "QWED-AGENT-STATE-001"),
    ({"pre_action_state_hash": None, "state_source": "custom"}, "QWED-AGENT-STATE-001"),
    ({"pre_action_state_hash": STATE, "state_source": None}, "QWED-AGENT-STATE-001"),
    (_on(STATE[:-1]), "QWED-AGENT-STATE-002"),
    (_on(STATE + "0"), "QWED-AGENT-STATE-002"),
    (_on(STATE.upper()), "QWED-AGENT-STATE-002"),
    (_on("g" * 64), "QWED-AGENT-STATE-002"),
    (_on(""), "QWED-AGENT-STATE-002"),
    (_on("\uff10" * 64), "QWED-AGENT-STATE-002"),
    (_on(STATE[:-1] + "\n"), "QWED-AGENT-STATE-002"),
    ({"pre_action_state_hash": 7, "state_source": "custom"}, "QWED-AGENT-STATE-002"),
    ({"pre_action_state_hash": [STATE], "state_source": "custom"}, "QWED-AGENT-STATE-002"),
    (_on(STATE, "guess"), "QWED-AGENT-STATE-003"),
    (_on(STATE, "CUSTOM"), "QWED-AGENT-STATE-003"),
    (_on(STATE, ""), "QWED-AGENT-STATE-003"),
    ({"pre_action_state_hash": STATE, "state_source": 1}, "QWED-AGENT-STATE-003"),
    ({"pre_action_state_hash": STATE, "state_source": ["custom"]}, "QWED-AGENT-STATE-003"),
]


@spec("guide/Progress-aware doom loop detection (LOOP-004)", "guide/Action context enforcement")
@pytest.mark.parametrize(("state", "code"), BAD_STATES, ids=lambda value: str(value)[:70])
def test_the_validation_rules(ask: AgentConversation, state: Json, code: str) -> None:
    body = {"action": SUM, "context": {"conversation_id": "c", "step_number": 1, **state}}
    response = ask.send(body)
    assert (response.status_code, said(response.json())) == (400, ("DENIED", code))
    assert said(ask(SUM, 1, conversation="c")) == ("APPROVED", None)


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_an_unknown_source_is_refused_with_the_known_ones(ask: AgentConversation) -> None:
    message = ask(SUM, 1, **_on(STATE, "guess"))["error"]["message"]
    assert all(source in message for source in SOURCES)


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_during_rollout_both_fields_are_optional(ask: AgentConversation) -> None:
    assert said(ask(SUM, 1)) == ("APPROVED", None)
    assert said(ask(another(1), 2, pre_action_state_hash=None, state_source=None)) == ("APPROVED", None)


@pytest.fixture(scope="module", params=["DOOM_LOOP_GUARD_REQUIRED", "QWED_DOOM_LOOP_GUARD_REQUIRED"])
def strict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentConversation]:
    server = Server(Path(tmp_path_factory.mktemp("strict")) / "data", **{request.param: "true"})
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as api:
        yield AgentConversation(api, api.post("/agents/register", json={"name": "a", "principal_id": "u"}).json())
    assert server.stop() == 0


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_doom_loop_guard_required_makes_both_fields_mandatory(strict: AgentConversation) -> None:
    missing = ("DENIED", "QWED-AGENT-STATE-001")
    assert said(strict(SUM, 1)) == missing
    assert said(strict(SUM, 1, user_intent="x")) == missing
    assert said(strict(SUM, 1, pre_action_state_hash=STATE)) == missing
    assert said(strict(SUM, 1, **_on())) == ("APPROVED", None)


@spec("guide/Replay and loop detection", "guide/Runtime hardening")
def test_a_loop_leaves_the_conversation_where_it_was(asking: Callable[..., AgentConversation]) -> None:
    ask = asking()
    for step in (1, 2):
        ask(SUM, step)
    assert said(ask(SUM, 3)) == ("DENIED", "QWED-AGENT-LOOP-003")
    assert said(ask(another(3), 3)) == ("APPROVED", None)
    assert said(ask(SUM, 4)) == ("APPROVED", None)


@spec("guide/Runtime hardening")
@pytest.mark.parametrize("option", ["skip_checks", "force", "bypass", "trust_level", "approved"])
def test_nothing_an_agent_sends_bypasses_the_controls(ask: AgentConversation, option: str) -> None:
    ask(SUM, 1)
    body: Json = {"action": SUM, "context": {"conversation_id": ask.conversation, "step_number": 1}}
    for place in ({"options": {option: True}}, {option: True}, {"context": {**body["context"], option: True}}):
        assert ask.send({**body, **place}).json()["decision"] == "DENIED"

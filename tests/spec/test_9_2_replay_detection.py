"""Spec 9.2, Replay Detection."""

from tests.conftest import Asking
from tests.spec.sections import spec

SUM = {"type": "calculate", "query": "2+2"}


@spec("9.2")
def test_a_step_that_was_committed_is_a_replay(ask: Asking) -> None:
    assert ask(SUM, 1)["decision"] == "APPROVED"
    again = ask(SUM, 1)
    assert (again["decision"], again["error"]["code"]) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("9.2")
def test_a_denied_step_may_be_tried_again_with_another_action(ask: Asking) -> None:
    assert ask({"type": "calculate", "query": "x = x + 1"}, 1)["decision"] == "DENIED"
    assert ask({"type": "calculate", "query": "4 = 4"}, 1)["decision"] == "APPROVED"

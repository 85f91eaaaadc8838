"""Records read both ways, are true only for a proof or an approval, and hide secrets (ruling 4.16)."""

import copy
import json
import operator

import pytest

from qwed.model import Record
from qwed_sdk.models import Action, Agent, Answer, ApiRecord, Batch, Result


def test_a_result_reads_both_ways_and_is_a_mapping() -> None:
    result = Result({"status": "VERIFIED", "verified": True, "novelty": 7})
    assert (result.status, result["status"], result.novelty, result["novelty"]) == ("VERIFIED", "VERIFIED", 7, 7)
    assert dict(result) == result.to_dict() == {"status": "VERIFIED", "verified": True, "novelty": 7}
    assert json.loads(json.dumps(result.to_dict())) == result
    assert isinstance(result, Record)
    assert (list(result), len(result), "status" in result) == (["status", "verified", "novelty"], 3, True)


def test_a_member_the_protocol_knows_reads_none_and_one_it_does_not_is_no_attribute() -> None:
    answer = Answer({"decision": "DENIED"})
    assert (answer.attestation, answer.get("attestation")) == (None, None)
    with pytest.raises(KeyError):
        answer["attestation"]
    with pytest.raises(AttributeError, match="decison"):
        _ = answer.decison
    with pytest.raises(AttributeError):
        operator.attrgetter("_private")(answer)


def test_nobody_changes_a_result() -> None:
    answer = Answer({"decision": "DENIED"})
    with pytest.raises(AttributeError):
        answer.decision = "APPROVED"
    with pytest.raises(AttributeError):
        del answer.decision
    with pytest.raises(TypeError):
        answer["decision"] = "APPROVED"  # type: ignore[index]
    assert answer.decision == "DENIED"


@pytest.mark.parametrize("decision", ["DENIED", "PENDING", "CORRECTED", "BUDGET_EXCEEDED", "approved", None, 1])
def test_as_a_condition_an_answer_is_true_for_approved_alone(decision: object) -> None:
    assert not Answer({"decision": decision})
    assert not Action({"decision": decision})
    assert Answer({"decision": "APPROVED"})


def test_a_batch_is_true_when_it_is_over_and_everything_is_verified() -> None:
    def batch(status: str, total: int, verified: int) -> Batch:
        return Batch({"status": status, "summary": {"total": total, "verified": verified}, "items": [{"id": "0"}]})

    assert batch("completed", 2, 2)
    assert not batch("completed", 2, 1)
    assert not batch("processing", 2, 2)
    assert not batch("completed", 0, 0)
    assert not Batch({"status": "completed"})
    assert not Batch({"status": "completed", "summary": [1]})
    assert not Batch({"status": "completed", "summary": {"total": "2", "verified": "2"}})
    assert batch("completed", 1, 1).results == [{"id": "0"}]


def test_a_token_is_not_shown_where_a_record_is_printed() -> None:
    agent = Agent({"agent_id": "agent_1", "agent_token": "qwed_agent_secret"})
    assert "qwed_agent_secret" not in f"{agent!r} {agent}"
    assert agent.agent_token == "qwed_agent_secret"
    assert "qwed_live_secret" not in repr(ApiRecord({"key": "qwed_live_secret", "owner_key": "qwed_live_secret"}))
    assert "qwed_live_secret" not in repr(ApiRecord({"keys": [{"of": {"key": "qwed_live_secret"}}]}))


def test_equality_is_that_of_what_they_say() -> None:
    assert Answer({"decision": "DENIED"}) == {"decision": "DENIED"}
    assert Answer({"decision": "DENIED"}) != Answer({"decision": "APPROVED"})
    assert Answer({}) != 1
    with pytest.raises(TypeError):
        hash(Answer({}))


def test_a_copy_is_a_copy() -> None:
    answer = Answer({"decision": "DENIED", "error": {"code": "x"}})
    assert copy.copy(answer) == copy.deepcopy(answer) == answer

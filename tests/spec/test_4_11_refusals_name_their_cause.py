"""Ruling 4.11: a refusal and a question to a person name the cause, what would pass, and who can grant it."""

from typing import Any

import pytest

from tests.spec.conftest import Keyholders
from tests.spec.requests import Json, question, said
from tests.spec.sections import spec
from tests.support.case_tables import rows

REFUSALS = rows("refusals.jsonl")
LONGEST = 600


def decide(keyholders: Keyholders, row: Json) -> Json:
    """Return the answer to the action of a row."""
    ask = keyholders.create_agent(**(row.get("agent") or {}))
    body = question(row["action"])
    if "options" in row:
        body["options"] = row["options"]
    answer: Json = ask.send(body).json()
    return answer


@spec("2.3")
@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: row["name"])
def test_a_refusal_names_cause_check_and_what_would_pass(keyholders: Keyholders, row: Json) -> None:
    answer = decide(keyholders, row)
    error = answer["error"]
    assert said(answer) == (row["decision"], row["code"]), error
    assert error["check"] == row["check"], error
    assert [text for text in row["says"] if text not in error["message"]] == [], error["message"]
    assert [text for text in row.get("suggestion") or () if text not in error["suggestion"]] == [], error["suggestion"]
    assert _members(error["details"], row.get("details") or {}) == (row.get("details") or {})
    assert [text for text in row.get("silent", ()) if text in str(answer["error"])] == []
    assert len(error["message"]) <= LONGEST
    assert error["message"].isprintable()


@spec("2.3")
@pytest.mark.parametrize("row", [row for row in REFUSALS if row["decision"] == "PENDING"], ids=lambda row: row["name"])
def test_the_verification_lists_the_checks_that_ask(keyholders: Keyholders, row: Json) -> None:
    answer = decide(keyholders, row)
    failed = answer["verification"]["checks_failed"]
    assert row["check"] == "approval_given" or row["check"] in failed
    assert set(answer["error"]["details"].get("checks_failed", ())) <= set(failed)


@spec("4.3")
def test_the_cause_is_kept_with_the_action_and_shown_to_the_approver(keyholders: Keyholders) -> None:
    row = next(row for row in REFUSALS if row["name"] == "a number in the body")
    ask = keyholders.create_agent(**row["agent"])
    answer: Json = ask.send(question(row["action"])).json()
    kept = ask.api.get(f"/agents/{ask.agent_id}/actions/{answer['action_id']}").json()
    assert kept["error"]["message"] == answer["error"]["message"]
    assert kept["error"]["check"] == "no_pii_leakage"


def _members(details: Json, expected: Json) -> dict[str, Any]:
    return {name: details.get(name) for name in expected}

"""UCPVerifier: what adds up passes, what does not is refused by the guard whose business it is."""

import json
import subprocess
import sys
from decimal import Context, Decimal, localcontext
from itertools import pairwise
from typing import Any

import pytest

from qwed.packs.result import CheckStatus
from qwed_ucp import UCPVerifier
from qwed_ucp.result import UCPResult
from qwed_ucp.state_machine import FOLLOWING
from qwed_ucp.ucp_checks import CHECKS
from tests.support.case_tables import each, rows

verifier = UCPVerifier()
CHECKOUT: dict[str, Any] = rows("ucp_true.jsonl")[0]["document"]
GUARDS = ["structure", "currency", "money", "discounts", "tax", "fulfillment", "states"]


def ask(row: dict[str, Any]) -> UCPResult:
    found = CHECKS[row["kind"]].ask(**{row["kind"]: row["document"]})
    assert isinstance(found, UCPResult)
    return found


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


@each("row", rows("ucp_true.jsonl"), ids=name)
def test_what_adds_up_is_verified_by_every_guard(row: dict[str, Any]) -> None:
    found = ask(row)
    assert found.verified, found.error
    assert [each.guard_name for each in found.guards] == GUARDS
    assert all(each.verified and each.error is None for each in found.guards)
    assert found.error is None
    assert found.rule
    assert found.by_hand


@each("row", rows("ucp_false.jsonl"), ids=name)
def test_what_does_not_is_refused_by_the_guard_whose_business_it_is(row: dict[str, Any]) -> None:
    found = ask(row)
    assert found.status is CheckStatus.FAILED, found.message
    refused = [each for each in found.guards if not each.verified]
    assert refused[0].guard_name == row["guard"], refused
    assert row["says"] in str(found.error)
    assert found.error == refused[0].error
    assert found.rule
    assert found.by_hand


@each("row", rows("ucp_hostile.jsonl"), ids=name)
def test_what_cannot_be_judged_is_not(row: dict[str, Any]) -> None:
    found = ask(row)
    assert not found.verified
    if row["says"]:
        assert found.status is CheckStatus.UNVERIFIABLE
        assert row["says"] in found.message


def test_an_unknown_currency_lists_the_known_ones() -> None:
    found = verifier.verify_checkout(CHECKOUT | {"currency": "XYZ"})
    assert "USD" in found.known
    assert "KWD" in found.known


def test_an_unknown_member_is_a_warning_where_that_is_allowed() -> None:
    found = UCPVerifier(strict_mode=False).verify_checkout(CHECKOUT | {"gift": True})
    assert found.verified
    assert found.guards[0].details["warnings"] == ["the document has an unknown member `gift`"]


def test_a_result_reads_as_a_mapping() -> None:
    found = verifier.verify_checkout(json.dumps(CHECKOUT))
    assert found["verified"] is True
    assert found["status"] == "VERIFIED"
    assert found["error"] is None
    assert set(found["guards"][0]) == {"guard_name", "verified", "error", "details"}
    assert found["guards"][2]["details"]["computed_total"] == "49.60"


def test_the_sums_can_be_done_by_hand() -> None:
    assert verifier.verify_checkout(CHECKOUT).by_hand == (
        "2 x 19.99 = 39.98",
        "1 x 5.00 = 5.00",
        "subtotal: 44.98",
        "total: 44.98 + 3.6 + 5 - 4.98 + 1.00 = 49.60",
    )


@pytest.mark.parametrize("before", FOLLOWING)
@pytest.mark.parametrize("after", FOLLOWING)
def test_a_state_follows_another_only_where_the_table_says_so(before: str, after: str) -> None:
    found = verifier.verify_transition(before, after)
    assert found.verified is (before == after or after in FOLLOWING[before])
    whole = verifier.verify_transition(CHECKOUT | {"status": before}, json.dumps(CHECKOUT | {"status": after}))
    assert whole.verified is found.verified


def test_the_way_of_a_checkout_is_the_documented_one() -> None:
    way = ["incomplete", "ready_for_complete", "completed"]
    assert all(verifier.verify_transition(*step).verified for step in pairwise(way))
    for wrong in (
        ("incomplete", "completed"),
        ("completed", "incomplete"),
        ("failed", "completed"),
        ("paid", "completed"),
    ):
        assert verifier.verify_transition(*wrong).status is CheckStatus.FAILED


def test_what_changes_what_must_stay_is_refused() -> None:
    after = {**CHECKOUT, "currency": "EUR", "status": "completed"}
    assert verifier.verify_transition(CHECKOUT, after).error == "`currency` is another than before"
    done = CHECKOUT | {"status": "completed"}
    less = {**done, "line_items": done["line_items"][:1], "totals": [{"type": "total", "amount": "39.98"}]}
    assert verifier.verify_transition(done, less).error == "a checkout that is `completed` does not change"
    wrong = {**CHECKOUT, "totals": [{"type": "total", "amount": 1}]}
    assert verifier.verify_transition(CHECKOUT, wrong).status is CheckStatus.FAILED


def test_nothing_depends_on_the_callers_decimal_context() -> None:
    with localcontext(Context(prec=2, rounding="ROUND_DOWN", traps=[])):
        assert verifier.verify_checkout(CHECKOUT).verified
        exact = {**CHECKOUT, "line_items": [{"id": "a", "quantity": 1, "price": Decimal("44.98")}]}
        assert verifier.verify_checkout(exact).verified


@pytest.mark.parametrize("strange", [object(), 1.5, b"\xff", {1: 2}, {"a": {2: 3}}, {"ucp": object()}, {"ucp": {}}, ()])
@pytest.mark.parametrize("question", sorted(CHECKS))
def test_no_value_makes_a_check_raise(question: str, strange: Any) -> None:
    asked = CHECKS[question]
    assert not asked.ask(**dict.fromkeys(asked.required, strange)).verified


def test_a_document_that_holds_itself_is_not_followed_for_ever() -> None:
    endless: dict[str, Any] = dict(CHECKOUT)
    endless["context"] = endless
    assert verifier.verify_checkout(endless).status is CheckStatus.UNVERIFIABLE


@pytest.mark.parametrize("member", sorted(CHECKOUT))
@pytest.mark.parametrize("value", [None, 0, "", "x", [], {}, [None], [{}], [[]], {"a": 1}, True, 1e308])
def test_any_value_in_the_place_of_any_other_is_answered(member: str, value: Any) -> None:
    assert verifier.verify_checkout(CHECKOUT | {member: value}).status in CheckStatus


@pytest.mark.parametrize("member", ["buyer", "discounts", "fulfillment", "payment", "tax_rate", "order", "messages"])
@pytest.mark.parametrize("value", [None, 0, "", [], {}, [None], [{}], [[1]], {"applied": 5}, {"amount": "x"}, True])
def test_any_value_beside_the_others_is_answered(member: str, value: Any) -> None:
    for document in (CHECKOUT, rows("ucp_true.jsonl")[2]["document"]):
        assert verifier.verify_checkout(document | {member: value}).status in CheckStatus


def test_importing_the_verifier_imports_no_other_pack_and_no_models() -> None:
    others = {"qwed_legal", "qwed_tax", "qwed_finance", "pydantic", "ucp_sdk"}
    program = f"import sys, qwed_ucp.ucp_verifier; print([m for m in sys.modules if m.split('.')[0] in {others}])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

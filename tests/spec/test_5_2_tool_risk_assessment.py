"""Spec 5.2, Tool Risk Assessment."""

from collections.abc import Callable

import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import Json, said
from tests.spec.sections import spec

WEIGHTS = {
    "external_communication": 0.3,
    "pii_in_content": 0.5,
    "destructive_operation": 0.5,
    "credential_in_content": 0.5,
    "financial": 0.4,
    "privileged_target": 0.2,
}
AWS_KEY = "AKIAIOSFODNN0FIXTURE"


def _call(ask: AgentConversation, tool: str, parameters: Json) -> Json:
    return ask({"type": "tool_call", "tool": tool, "parameters": parameters}, 1)


ROWS: list[tuple[str, Json, str, list[str], str]] = [
    ("get_weather", {"city": "Rome"}, "low", [], "low"),
    ("send_email", {"body": "hello"}, "medium", ["external_communication"], "medium"),
    (
        "send_email",
        {"to": "user@example.com", "subject": "Your order status", "body": "Your order #12345 has shipped..."},
        "medium",
        ["external_communication", "pii_in_content"],
        "medium",
    ),
    (
        "api_call",
        {"url": "https://example.com", "body": "the admin is bob@example.com"},
        "medium",
        ["external_communication", "pii_in_content", "privileged_target"],
        "high",
    ),
    ("get_weather", {"city": "admin"}, "low", ["privileged_target"], "low"),
    ("send_money", {"amount": 5}, "critical", ["financial"], "critical"),
    ("delete_files", {"path": "x"}, "critical", ["destructive_operation"], "critical"),
    (
        "send_email",
        {"body": f"key {AWS_KEY}"},
        "medium",
        ["external_communication", "credential_in_content"],
        "critical",
    ),
]


@spec("5.2")
@pytest.mark.parametrize(("tool", "parameters", "base", "factors", "final"), ROWS)
def test_base_risk_factors_and_final_risk(
    asking: Callable[..., AgentConversation], tool: str, parameters: Json, base: str, factors: list[str], final: str
) -> None:
    answer = _call(asking(type="trusted"), tool, parameters)
    assessed = answer["risk_assessment"]
    assert answer["tool_name"] == tool
    assert assessed["base_risk"] == base
    assert {each["factor"]: each["weight"] for each in assessed["factors"]} == {name: WEIGHTS[name] for name in factors}
    assert assessed["final_risk"] == final
    assert assessed["final_risk"] == answer["verification"]["risk_level"]
    assert assessed["requires_approval"] is (answer["decision"] == "PENDING")


@spec("5.2")
def test_the_four_policies_are_checked_and_listed(asking: Callable[..., AgentConversation]) -> None:
    answer = _call(asking(type="autonomous"), "send_email", {"to": "user@example.com", "body": "hello"})
    names = ["no_pii_leakage", "no_secret_leakage", "rate_limit", "tool_allowed"]
    assert answer["policy_checks"] == [{"policy": name, "passed": True} for name in names]


@spec("5.2")
@pytest.mark.parametrize(
    ("parameters", "passed"),
    [
        ({"to": "user@example.com", "body": "hello"}, True),
        ({"to": ["a@example.com", "b@example.com"], "cc": "c@example.com", "body": "hello"}, True),
        ({"to": "user@example.com", "body": "her number is 415-555-2671"}, False),
        ({"to": "user@example.com", "body": "write to bob@example.com"}, False),
        ({"to": "user@example.com", "attachment": {"iban": "DE89370400440532013000"}}, False),
    ],
)
def test_personal_data_that_would_leave_asks_a_person(
    asking: Callable[..., AgentConversation], parameters: Json, passed: bool
) -> None:
    answer = _call(asking(type="trusted"), "send_email", parameters)
    assert {"policy": "no_pii_leakage", "passed": passed} in answer["policy_checks"]
    assert answer["decision"] == ("APPROVED" if passed else "PENDING")


@spec("5.2")
def test_personal_data_that_stays_is_a_factor_and_no_leak(asking: Callable[..., AgentConversation]) -> None:
    answer = _call(asking(type="supervised"), "log_message", {"text": "bob@example.com called"})
    assert said(answer) == ("APPROVED", None)
    assert [each["factor"] for each in answer["risk_assessment"]["factors"]] == ["pii_in_content"]


@spec("5.2")
@pytest.mark.parametrize("tool", ["send_email", "log_message", "get_weather", "api_call"])
@pytest.mark.parametrize(
    "parameters",
    [{"body": AWS_KEY}, {"deep": [{"er": f"x {AWS_KEY} y"}]}, {"password": "hunter2-Tr0ub4dor"}, {AWS_KEY: "as a key"}],
)
def test_a_secret_that_would_leave_is_denied_and_never_repeated(
    asking: Callable[..., AgentConversation], tool: str, parameters: Json
) -> None:
    answer = _call(asking(type="trusted"), tool, parameters)
    assert said(answer) == ("DENIED", "QWED-AGENT-005")
    assert answer["verification"]["status"] == "BLOCKED"
    assert {"policy": "no_secret_leakage", "passed": False} in answer["policy_checks"]
    assert AWS_KEY not in str(answer)
    assert "hunter2" not in str(answer)


@spec("5.2")
def test_a_tool_that_is_not_allowed_says_so_in_the_same_shape(asking: Callable[..., AgentConversation]) -> None:
    answer = _call(asking(type="trusted"), "my_custom_tool", {})
    assert answer["tool_name"] == "my_custom_tool"
    assert {"policy": "tool_allowed", "passed": False} in answer["policy_checks"]


@spec("5.2")
def test_only_answers_about_tools_carry_an_assessment(ask: AgentConversation) -> None:
    answer = ask({"type": "calculate", "query": "2+2"}, 1)
    assert {"tool_name", "risk_assessment", "policy_checks"}.isdisjoint(answer)

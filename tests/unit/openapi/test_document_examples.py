"""Comparison of example responses: it learns ids and distinguishes a right response from a similar one."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.document_examples import ExampleChecker

AGENT, OTHER = "agent_" + "a" * 24, "agent_" + "b" * 24


@pytest.fixture
def judge() -> Iterator[ExampleChecker]:
    with httpx.Client() as client:
        yield ExampleChecker(client, "qwed_live_real")


@pytest.mark.parametrize(
    ("printed", "actual"),
    [
        ({"id": AGENT}, {"id": OTHER}),
        ({"at": "2026-01-15T09:30:00.125Z"}, {"at": "2031-12-31T23:59:59Z"}),
        ({"did": f"did:qwed:agent:{AGENT}", "id": AGENT}, {"did": f"did:qwed:agent:{OTHER}", "id": OTHER}),
        ({"latency_ms": 1.5}, {"latency_ms": 800}),
        ([1, "two", None], [1, "two", None]),
    ],
)
def test_what_two_servers_say_differently_is_the_same(judge: ExampleChecker, printed: Any, actual: Any) -> None:
    assert judge.differences(printed, actual) == []


@pytest.mark.parametrize(
    ("printed", "actual"),
    [
        ({"id": AGENT}, {"id": "act_" + "a" * 24}),
        ({"a": AGENT, "b": AGENT}, {"a": AGENT, "b": OTHER}),
        ({"decision": "APPROVED"}, {"decision": "DENIED"}),
        ({"cost": 0.01}, {"cost": 0.02}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ([1], [1, 2]),
        ({"a": None}, {"a": {}}),
        ({"a": "1"}, {"a": 1}),
        ({"at": "2026-01-15T09:30:00Z"}, {"at": "yesterday"}),
    ],
)
def test_what_is_not_the_same_is_told(judge: ExampleChecker, printed: Any, actual: Any) -> None:
    assert judge.differences(printed, actual) != []


@pytest.mark.parametrize(
    ("printed", "actual"),
    [([1], [1, 2]), ({"a": 1}, {"a": 1, "b": 2}), ({"tools": [{"a": 1}]}, {"tools": [{"a": 1}, 2]})],
)
def test_an_excerpt_may_leave_out_and_not_invent(judge: ExampleChecker, printed: Any, actual: Any) -> None:
    assert judge.differences(printed, actual, excerpt=True) == []
    assert judge.differences({"a": 3}, actual if isinstance(actual, dict) else {}, excerpt=True) != []


def test_an_id_that_was_learnt_stands_for_the_same_thing_in_the_next_answer(judge: ExampleChecker) -> None:
    assert judge.differences({"id": AGENT}, {"id": OTHER}) == []
    assert judge.differences({"id": AGENT}, {"id": AGENT}) != []

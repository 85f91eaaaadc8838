"""The guards return a finding for every payload, and never raise."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.futures import run_in_thread
from qwed_a2a.guards.finance import check_finance
from qwed_a2a.guards.logic import check_logic
from tests.support.shared_engine_workers import shared_verdicts

few = settings(derandomize=True, database=None, deadline=None, max_examples=40)
fewer = settings(few, max_examples=15)

NAMES = ("data", "claimed_total", "line_items", "amount", "quantity", "tax", "discount", "currency", "assertions")
NAMES += ("claim", "negated", "total", "note", "\u0441laim", "")
ODD = (
    0,
    -0.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    10**400,
    True,
    None,
    "",
    "1",
    "1.0",
    "x",
    "USD",
    "\ud800",
    "\x00",
)
SIGNS = (
    "x",
    "5",
    ">",
    "<",
    "=",
    "not ",
    "(",
    ")",
    "->",
    " and ",
    '"',
    "!",
    "~",
    "%",
    ".",
    ",",
    "\u00ac",
    "\u200b",
    "\u00b2",
)

values = st.recursive(
    st.sampled_from(ODD) | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
payloads = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
lines = st.lists(st.fixed_dictionaries({"amount": values}, optional={"quantity": values, "note": values}), max_size=3)
nearly = st.fixed_dictionaries(
    {"claimed_total": values, "line_items": lines},
    optional={"tax": values, "discount": values, "currency": values, "note": values},
)
claims = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=12).map("".join)
assertions = st.lists(
    st.fixed_dictionaries({"claim": claims}, optional={"negated": st.booleans()}), min_size=1, max_size=4
)


def shaped(finding: Any) -> None:
    assert finding.reason
    assert finding.reason.isprintable()
    assert json.dumps(finding.details, allow_nan=False)
    assert not finding.violation


@few
@given(payloads | nearly)
def test_the_finance_guard_has_a_finding_for_every_payload(payload):
    finding = run_in_thread(check_finance(payload, shared_verdicts()), 1)
    shaped(finding)
    assert finding.forwarded is False or finding.details["line_items"] > 0


@few
@given(payloads)
def test_the_logic_guard_has_a_finding_for_every_payload(payload):
    shaped(run_in_thread(check_logic(payload, shared_verdicts()), 30))


@fewer
@given(assertions)
def test_the_logic_guard_has_a_finding_for_every_heap_of_signs(claims):
    shaped(run_in_thread(check_logic({"assertions": claims}, shared_verdicts()), 30))

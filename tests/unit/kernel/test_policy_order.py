"""Order of a decision under policies: deny, then ask, then allow, then the tables; each row is one decision."""

from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import pytest

from qwed.kernel.answer import PolicyCheck
from qwed.kernel.case import Case, Credentials
from qwed.kernel.policies.decide_by_policy import decide_by_policy
from qwed.kernel.request import ActionOptions
from qwed.kernel.tools import ResolvedAction, Tool
from qwed.model import Decision, Effect, EffectKind, Risk, Status, Trust, Verdict
from qwed.model.decision_matrix import STATUS_MATRIX
from qwed.policy import PolicyAnswer, PolicyOutcome
from qwed.policy.analysis.final_decision import Circumstances, final_decision
from tests.support.policy_calls import agent as policy_agent
from tests.support.policy_calls import call
from tests.support.stores import agent_of

APPROVED, CORRECTED, PENDING, DENIED = Decision.APPROVED, Decision.CORRECTED, Decision.PENDING, Decision.DENIED
ALLOW, ASK, DENY = PolicyAnswer.ALLOW, PolicyAnswer.ASK, PolicyAnswer.DENY
BY_TRUST, BY_POLICY, BY_ERROR = "QWED-AGENT-TRUST-001", "QWED-AGENT-POLICY-001", "QWED-AGENT-POLICY-002"
UNRESOLVED = (Effect(EffectKind.UNRESOLVED, "x"),)


class Row(NamedTuple):
    """An analyzed action of an agent, what the policies say of it, and what is decided."""

    then: PolicyAnswer | None
    decision: Decision
    code: str | None = None
    by_rule: bool = True
    """True if the decision is that of the rule."""
    trust: int = 1
    registered: int = 1
    risk: Risk = Risk.LOW
    status: Status = Status.VERIFIED
    outcome: dict[str, Any] = {}  # noqa: RUF012 - a default that is never changed
    tool: dict[str, Any] = {}  # noqa: RUF012 - a default that is never changed
    effects: tuple[Effect, ...] = ()
    threshold: Risk = Risk.CRITICAL
    leaks: bool = False


ROWS: dict[str, Row] = {
    "no rule, low risk": Row(None, APPROVED, by_rule=False),
    "no rule, beyond trust": Row(None, DENIED, BY_TRUST, by_rule=False, risk=Risk.HIGH),
    "no rule, uncertain": Row(None, PENDING, by_rule=False, status=Status.UNCERTAIN),
    # deny
    "deny at low risk": Row(DENY, DENIED, BY_POLICY),
    "deny at every trust": Row(DENY, DENIED, BY_POLICY, trust=3),
    "deny beyond trust": Row(DENY, DENIED, BY_POLICY, risk=Risk.CRITICAL),
    "an error": Row(DENY, DENIED, BY_ERROR, trust=3, outcome={"is_error": True}),
    # ask
    "ask at low risk": Row(ASK, PENDING),
    "ask at every trust": Row(ASK, PENDING, trust=3),
    "ask beyond trust": Row(ASK, DENIED, BY_TRUST, by_rule=False, risk=Risk.HIGH),
    "ask that overrides trust": Row(ASK, PENDING, risk=Risk.CRITICAL, outcome={"overrides_trust": True}),
    "ask that overrides trust at level 0": Row(ASK, PENDING, trust=0, outcome={"overrides_trust": True}),
    "ask about a correction": Row(ASK, PENDING, status=Status.CORRECTED),
    # allow
    "allow beyond trust": Row(ALLOW, APPROVED, risk=Risk.CRITICAL),
    "allow what the table asks": Row(ALLOW, APPROVED, risk=Risk.MEDIUM),
    "allow at level 0": Row(ALLOW, PENDING, by_rule=False, trust=0, registered=0),
    "allow below the registration": Row(ALLOW, DENIED, BY_TRUST, by_rule=False, registered=2, risk=Risk.HIGH),
    "allow above the registration": Row(ALLOW, APPROVED, trust=2, registered=1, risk=Risk.CRITICAL),
    "allow with a lower minimum": Row(ALLOW, APPROVED, registered=2, risk=Risk.HIGH, outcome={"min_trust": 1}),
    "allow with a higher minimum": Row(
        ALLOW, DENIED, BY_TRUST, by_rule=False, risk=Risk.HIGH, outcome={"min_trust": 2}
    ),
    "allow with minimum 0 at level 0": Row(ALLOW, PENDING, by_rule=False, trust=0, outcome={"min_trust": 0}),
    "allow an uncertain result": Row(ALLOW, PENDING, status=Status.UNCERTAIN),
    "allow a correction at low risk": Row(ALLOW, CORRECTED, status=Status.CORRECTED),
    "allow a correction above low risk": Row(ALLOW, PENDING, status=Status.CORRECTED, risk=Risk.MEDIUM),
    "allow a tool that requires approval": Row(ALLOW, PENDING, tool={"requires_approval": True}),
    "allow a tool that requires approval at level 3": Row(ALLOW, APPROVED, trust=3, tool={"requires_approval": True}),
    "allow a dangerous tool": Row(ALLOW, PENDING, trust=3, tool={"dangerous": True}),
    "allow above the threshold of the request": Row(ALLOW, PENDING, risk=Risk.MEDIUM, threshold=Risk.LOW),
    "allow what may leak personal data": Row(ALLOW, PENDING, leaks=True),
    "allow what is unresolved": Row(ALLOW, DENIED, BY_TRUST, by_rule=False, risk=Risk.CRITICAL, effects=UNRESOLVED),
    "allow what is unresolved by its name": Row(
        ALLOW, APPROVED, risk=Risk.CRITICAL, effects=UNRESOLVED, outcome={"names_unresolved": True}
    ),
}


def _case(row: Row) -> Case:
    agent = replace(agent_of(), trust=Trust(row.trust), registered_trust=Trust(row.registered))
    tool = Tool(name="refund", risk_level=row.risk.word, **row.tool)
    return Case(
        agent_id="agent_1",
        credentials=Credentials(),
        action_raw=None,
        now=0.0,
        agent=agent,
        options=ActionOptions(risk_threshold=row.threshold),
        resolved_action=ResolvedAction("refund", tool, "tool", row.risk, None, True),
        verdict=Verdict(status=row.status, engine="tool", effects=row.effects),
        risk=row.risk,
        policies=(PolicyCheck("no_pii_leakage", not row.leaks),),
    )


@pytest.mark.parametrize("name", ROWS)
def test_a_decision_follows_the_order(name: str) -> None:
    row = ROWS[name]
    outcome = PolicyOutcome(then=row.then, policy_id="refunds", rule_id="small", **row.outcome)
    ruling = decide_by_policy(_case(row), outcome, 3)
    decision = ruling.case.decision if ruling.refusal is None else ruling.refusal.decision
    error = None if ruling.refusal is None else ruling.refusal.error
    assert (decision, None if error is None else error.code) == (row.decision, row.code)
    named = None if ruling.rule is None else (ruling.rule.policy, ruling.rule.rule, ruling.rule.version)
    assert named == (("refunds", "small", 3) if row.by_rule else None)


def test_a_refusal_by_trust_names_the_trust_and_not_a_rule_that_only_asks() -> None:
    ruling = decide_by_policy(_case(ROWS["ask beyond trust"]), PolicyOutcome(then=ASK, policy_id="p", rule_id="r"), 1)
    assert ruling.refusal is not None
    assert ruling.refusal.error is not None
    assert ruling.refusal.error.check == "trust_level_sufficient"


def test_what_a_policy_allows_beyond_trust_does_not_pass_the_check_of_trust() -> None:
    def checks(risk: Risk) -> tuple[str, ...]:
        outcome = PolicyOutcome(then=ALLOW, policy_id="p", rule_id="r")
        return decide_by_policy(_case(Row(ALLOW, APPROVED, risk=risk)), outcome, 1).case.checks_passed

    assert checks(Risk.LOW) == ("trust_level_sufficient",)
    assert checks(Risk.CRITICAL) == ()


def test_a_denial_says_what_the_rule_says() -> None:
    outcome = PolicyOutcome(then=DENY, policy_id="refunds", rule_id="large", message="people do that")
    refusal = decide_by_policy(_case(ROWS["deny at low risk"]), outcome, 4).refusal
    assert refusal is not None
    assert refusal.error is not None
    assert refusal.error.message == "people do that"
    assert refusal.error.details == {"policy": "refunds", "rule": "large", "version": 4}
    assert refusal.error.final


def test_proofs_reckon_with_the_decision_that_the_kernel_makes() -> None:
    flags = (False, True)
    for then, status, trust, risk in product((None, *PolicyAnswer), STATUS_MATRIX, Trust, Risk):
        if STATUS_MATRIX[status][risk] is DENIED or (then is ALLOW and trust is Trust.UNTRUSTED):
            continue  # refused before the policies; no rule allows at level 0
        for dangerous, unresolved, overrides, named in product(flags, repeat=4):
            outcome = PolicyOutcome(
                then=then, policy_id="p", rule_id="r", overrides_trust=overrides, names_unresolved=named
            )
            effects = UNRESOLVED if unresolved else ()
            row = Row(
                then,
                DENIED,
                trust=trust,
                registered=trust,
                risk=risk,
                status=status,
                effects=effects,
                tool={"dangerous": dangerous},
            )
            ruling = decide_by_policy(_case(row), outcome, 1)
            decided = ruling.case.decision if ruling.refusal is None else ruling.refusal.decision
            agent = policy_agent(trust=int(trust), registered_trust=int(trust))
            reckoned = final_decision(
                outcome, call("refund", agent=agent, risk=risk, effects=effects), Circumstances(status, dangerous)
            )
            assert reckoned is decided, (then, status, trust, risk, dangerous, unresolved, overrides, named)

"""An answer names the checks that ran: without a check, or before it, nothing says that it passed."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import qwed
from qwed.domain.snapshot import Snapshot
from qwed.gate.gate import Gate
from qwed.kernel.admission import admit, parse, snapshot_keys_of
from qwed.kernel.analysis.assess import ASSESSMENT_STAGES, AssessmentStage, assess
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.case import Case, Credentials
from qwed.kernel.stages.assess_risk import assess_risk
from qwed.kernel.stages.check_permissions import check_permissions
from qwed.kernel.stages.decide import decide
from qwed.kernel.stages.run_engine import run_engine
from tests.support.agent_names import unique_name

BUDGET = ("within_budget", "rate_limit")
"""Checks of the budget that an admission names."""
WEATHER = {"type": "tool_call", "tool": "get_weather", "parameters": {"city": "Oslo"}}
SUM = {"type": "calculate", "query": "2 + 2 = 4"}


@pytest.fixture
def gate() -> Iterator[Gate]:
    with qwed.open() as opened:
        yield opened


def admitted(gate: Gate, action: dict[str, Any], without: tuple[str, ...] = (), **permissions: Any) -> Case:
    """Return an admitted case, as if some of the checks of the admission did not exist."""
    agent, services = gate.register_agent(name=unique_name(), principal_id="u", permissions=permissions), gate.services
    case = Case(
        agent_id=agent.agent_id,
        credentials=Credentials(organisation_id=gate.organisation_id),
        action_raw=action,
        context_raw={"conversation_id": "c", "step_number": 1},
        now=services.clock.now(),
    )
    case = parse(case, services.settings, services.vault)
    snapshot = services.store.load(snapshot_keys_of(case, services.vault))
    assert isinstance(snapshot, Snapshot)
    admission = admit(case, snapshot, services.settings)
    assert admission.refusal is None
    passed = tuple(name for name in admission.case.checks_passed if name not in without)
    return msgspec.structs.replace(admission.case, checks_passed=passed)


def assessed(
    gate: Gate,
    action: dict[str, Any],
    without: tuple[str, ...] = (),
    stages: tuple[AssessmentStage, ...] = ASSESSMENT_STAGES,
    **permissions: Any,
) -> Assessment:
    assessment = assess(admitted(gate, action, without, **permissions), gate.services, stages)
    assert isinstance(assessment, Assessment)
    return assessment


def without_stage(removed: AssessmentStage) -> tuple[AssessmentStage, ...]:
    return tuple(stage for stage in ASSESSMENT_STAGES if stage is not removed)


def checks_of(assessment: Assessment) -> tuple[str, ...]:
    assert assessment.verification is not None
    return assessment.verification.checks_passed


def policies_of(assessment: Assessment) -> list[str]:
    return [check.policy for check in assessment.policy_checks or () if check.passed]


def test_all_checks_that_ran_are_named_in_their_order(gate: Gate) -> None:
    whole = assessed(gate, SUM)
    assert checks_of(whole)[-3:] == ("agent_active", "within_budget", "trust_level_sufficient")
    tool = assessed(gate, WEATHER)
    assert checks_of(tool)[:2] == ("tool_allowed", "tool_not_blocked")
    assert policies_of(tool) == ["no_pii_leakage", "no_secret_leakage", "rate_limit", "tool_allowed"]


@pytest.mark.parametrize(("removed", "missing"), [(("agent_active",), "agent_active"), (BUDGET, "within_budget")])
@pytest.mark.parametrize("action", [SUM, WEATHER])
def test_a_check_that_did_not_run_is_not_named(
    gate: Gate, removed: tuple[str, ...], missing: str, action: dict[str, Any]
) -> None:
    named = checks_of(assessed(gate, action))
    assert missing in named
    assert checks_of(assessed(gate, action, removed)) == tuple(name for name in named if name != missing)


@pytest.mark.parametrize("action", [SUM, WEATHER])
def test_trust_that_was_not_checked_is_not_named(gate: Gate, action: dict[str, Any]) -> None:
    named = checks_of(assessed(gate, action))
    assert "trust_level_sufficient" in named
    unchecked = checks_of(assessed(gate, action, stages=without_stage(decide)))
    assert unchecked == tuple(name for name in named if name != "trust_level_sufficient")


def test_a_policy_that_did_not_run_is_not_named(gate: Gate) -> None:
    assert policies_of(assessed(gate, WEATHER, BUDGET)) == ["no_pii_leakage", "no_secret_leakage", "tool_allowed"]
    assert assessed(gate, WEATHER, stages=without_stage(assess_risk)).policy_checks == ()


def test_a_tool_names_the_permissions_that_were_checked_before_it(gate: Gate) -> None:
    def forget(case: Case, services: Any) -> Any:
        permitted = check_permissions(case, services)
        return msgspec.structs.replace(permitted, checks_passed=case.checks_passed)

    case = admitted(gate, WEATHER)
    assessment = assess(case, gate.services, (forget, run_engine, assess_risk, decide))
    assert isinstance(assessment, Assessment)
    assert not {"tool_allowed", "tool_not_blocked"} & {*checks_of(assessment), *policies_of(assessment)}


@pytest.mark.parametrize(
    ("removed", "named", "policies"),
    [((), ("agent_active", "within_budget"), ["rate_limit"]), (BUDGET, ("agent_active",), [])],
)
def test_a_refused_tool_names_what_ran_before_it(
    gate: Gate, removed: tuple[str, ...], named: tuple[str, ...], policies: list[str]
) -> None:
    refused = assessed(gate, WEATHER, removed, blocked_tools=["get_weather"])
    assert (checks_of(refused), policies_of(refused)) == (named, policies)


def test_an_assessment_is_not_reused_for_other_checks(gate: Gate) -> None:
    case = admitted(gate, SUM)
    assessment = assess(case, gate.services)
    assert isinstance(assessment, Assessment)
    cache = gate.services.assessments
    cache.keep(case, assessment)
    assert cache.find(case) is assessment
    assert cache.find(msgspec.structs.replace(case, checks_passed=())) is None

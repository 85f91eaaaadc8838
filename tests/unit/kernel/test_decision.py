"""The pure decision: what a request, a snapshot and an assessment give. Snapshots are made by hand.

A table lists every refusal in the order of the checks, and properties say that nothing else is needed: the same
arguments give the same outcome, and what is permitted commits on a store in that state.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from qwed.domain.agent import Agent, AgentStatus, Key
from qwed.domain.behaviour import BehaviourFlag, BehaviourWindow, DegradationRule, TrustEvidence
from qwed.domain.budget import NO_COST, ONE_REQUEST, RequestCost, Usage, UsageCounters
from qwed.domain.change_parts import ApprovalRequest
from qwed.domain.conversation import MAX_REPEATS, ConversationHistory
from qwed.domain.credentials import API_KEY, NewCredential, mint
from qwed.domain.snapshot import ChainEnd, Snapshot, StoredAnswer
from qwed.domain.transition import usage_after
from qwed.domain.write_set import ChainLink, Committed, Reservation
from qwed.kernel.admission import parse
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.answer import denied
from qwed.kernel.case import Case, Credentials
from qwed.kernel.decision import Outcome, decide
from qwed.kernel.privacy.payload import Payload
from qwed.ledger.attest import Chain
from qwed.model import Decision, ErrorCode, Risk
from qwed.model.clock import DAY, HOUR
from qwed.settings import Settings
from qwed.store import sql
from qwed.store.columns import insert
from qwed.store.commit_plan import usage_row
from tests.support.manual_clock import NOON, ManualClock
from tests.support.stores import ORGANISATION, StoreFixture, agent_of

SUM = {"type": "calculate", "query": "2+2"}
TOOL = {"type": "tool_call", "tool": "get_weather", "parameters": {"city": "Oslo"}}
CENT = 10_000
KEY, OTHER_KEY = mint(API_KEY), mint(API_KEY)


class Names:
    """Keyed names, without a key."""

    def fingerprint(self, text: str) -> str:
        return f"keyed:{text}"


NAMES: Any = Names()


@dataclass
class Arguments:
    """Arguments of one decision, to be changed by a row of the table."""

    case: dict[str, Any] = field(default_factory=lambda: {"credentials": Credentials(organisation_id=ORGANISATION)})
    context: Any = field(default_factory=lambda: {"conversation_id": "c", "step_number": 3})
    action: dict[str, Any] = field(default_factory=lambda: dict(SUM))
    options: dict[str, Any] | None = None
    agent: Agent | None = field(default_factory=agent_of)
    snapshot: dict[str, Any] = field(default_factory=dict)
    assessment: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def limit(self, **limits: int) -> None:
        """Give the agent further limits."""
        assert self.agent is not None
        self.agent = dataclasses.replace(self.agent, limits=msgspec.structs.replace(self.agent.limits, **limits))

    def spend(self, **counters: int) -> None:
        """Set counters of the agent."""
        usage = self.snapshot.get("usage", Usage())
        self.snapshot["usage"] = replace(usage, counters=replace(usage.counters.at(NOON), **counters))

    def remember(self, **history: Any) -> None:
        """Set the history of the conversation."""
        before = self.snapshot.get("history", ConversationHistory())
        self.snapshot["history"] = replace(before, **history)

    def decide(self) -> tuple[Case, Outcome]:
        chosen = Settings(**self.settings)
        case = Case(
            agent_id="agent_1",
            action_raw=self.action,
            context_raw=self.context,
            options_raw=self.options,
            now=NOON,
            **self.case,
        )
        snapshot = Snapshot(agent=self.agent, **self.snapshot)
        return decide(parse(case, chosen, NAMES), snapshot, assessment_of(**self.assessment), chosen)


def assessment_of(**fields: Any) -> Assessment:
    verdict = {"decision": Decision.APPROVED, "refusal": None, "risk": Risk.LOW, "violation": False}
    nothing = dict.fromkeys(
        ("verification", "verified_query", "corrected", "policy_hash", "tool_name", "risk_assessment", "policy_checks")
    )
    return Assessment(
        **{**nothing, **verdict, "has_secret": False, "payload": Payload(), "encoded_payload": "{}", **fields}
    )


def key_of(credential: NewCredential = KEY, role: str = "owner", organisation_id: str = ORGANISATION) -> Key:
    return Key(
        key_id="key_1",
        organisation_id=organisation_id,
        name="k",
        role=role,
        prefix=credential.prefix,
        digest=credential.digest,
        created_at=0.0,
    )


class Row(NamedTuple):
    """Change of the arguments, and the refusal that it causes."""

    change: Callable[[Arguments], None]
    code: ErrorCode
    decision: Decision = Decision.DENIED


def _row(code: ErrorCode, decision: Decision = Decision.DENIED) -> Callable[[Callable[[Arguments], None]], None]:
    def add(change: Callable[[Arguments], None]) -> None:
        ROWS[change.__name__.removeprefix("_").replace("_", " ")] = Row(change, code, decision)

    return add


ROWS: dict[str, Row] = {}
"""Refusals in the order of the checks."""


@_row(ErrorCode.UNKNOWN_CREDENTIAL)
def _a_key_that_nobody_has(to: Arguments) -> None:
    to.case["credentials"], to.snapshot["key"] = Credentials(api_key=KEY.text), None


@_row(ErrorCode.UNKNOWN_CREDENTIAL)
def _a_key_with_another_secret(to: Arguments) -> None:
    to.case["credentials"], to.snapshot["key"] = Credentials(api_key=KEY.text), key_of(OTHER_KEY)


@_row(ErrorCode.ROLE_NOT_SUFFICIENT)
def _a_key_that_may_not_call(to: Arguments) -> None:
    to.case["credentials"], to.snapshot["key"] = Credentials(api_key=KEY.text), key_of(role="metrics")


@_row(ErrorCode.INVALID_AGENT_TOKEN)
def _a_token_of_another(to: Arguments) -> None:
    to.case["credentials"] = Credentials(agent_token="qwed_agent_0123456789ab")


@_row(ErrorCode.INVALID_AGENT_TOKEN)
def _no_credential(to: Arguments) -> None:
    to.case["credentials"] = Credentials()


@_row(ErrorCode.AGENT_NOT_REGISTERED)
def _an_agent_of_another_organisation(to: Arguments) -> None:
    to.case["credentials"] = Credentials(organisation_id="org_2")


@_row(ErrorCode.AGENT_NOT_REGISTERED)
def _an_agent_that_is_not_registered(to: Arguments) -> None:
    to.case["credentials"], to.agent = Credentials(organisation_id=ORGANISATION), None


@_row(ErrorCode.MALFORMED)
def _another_agent_in_the_body(to: Arguments) -> None:
    to.case["stated_agent_id"] = "agent_2"


@_row(ErrorCode.AGENT_SUSPENDED)
def _a_suspended_agent(to: Arguments) -> None:
    to.agent = dataclasses.replace(to.agent or agent_of(), status=AgentStatus.SUSPENDED)


@_row(ErrorCode.AGENT_SUSPENDED)
def _a_halted_organisation(to: Arguments) -> None:
    to.snapshot["halted"] = True


@_row(ErrorCode.MALFORMED)
def _a_body_that_is_malformed(to: Arguments) -> None:
    to.case["malformed"] = "an unknown field"


@_row(ErrorCode.MISSING_CONTEXT)
def _no_context(to: Arguments) -> None:
    to.context = None


@_row(ErrorCode.BAD_OPTION)
def _an_option_that_is_none(to: Arguments) -> None:
    to.options = {"risk_threshold": "none at all"}


@_row(ErrorCode.BAD_OPTION)
def _a_key_that_is_too_long(to: Arguments) -> None:
    to.case["idempotency_key"] = "k" * 256


@_row(ErrorCode.KEY_REUSED)
def _a_key_in_flight(to: Arguments) -> None:
    to.case["idempotency_key"] = "k"
    to.snapshot |= {"key_in_flight": True, "stored_answer": None}


@_row(ErrorCode.KEY_REUSED)
def _a_key_of_another_request(to: Arguments) -> None:
    to.case["idempotency_key"] = "k"
    to.snapshot["stored_answer"] = StoredAnswer("another body", b"{}", "act_1")


@_row(ErrorCode.STEP_LIMIT)
def _a_step_beyond_the_limit(to: Arguments) -> None:
    to.settings["max_steps"] = 2


@_row(ErrorCode.STEP_LIMIT)
def _a_conversation_that_is_full(to: Arguments) -> None:
    to.remember(steps=50)


@_row(ErrorCode.REPLAY)
def _a_step_that_is_committed(to: Arguments) -> None:
    to.remember(last_step=3)


@_row(ErrorCode.REPLAY)
def _a_step_that_is_reserved(to: Arguments) -> None:
    to.snapshot["reserved_steps"] = frozenset({3})


@_row(ErrorCode.REPETITION)
def _the_same_action_again_and_again(to: Arguments) -> None:
    fingerprint = _case_of(to).step.fingerprint
    to.remember(fingerprint=fingerprint, repeats=MAX_REPEATS)


@_row(ErrorCode.NO_PROGRESS)
def _the_same_state_again_and_again(to: Arguments) -> None:
    state = {"pre_action_state_hash": "a" * 64, "state_source": "custom"}
    to.context = {"conversation_id": "c", "step_number": 3, **state}
    seen = _case_of(to).step.state_fingerprint
    to.remember(recent_states=f"{seen} {seen}")


def _case_of(to: Arguments) -> Case:
    context = to.context or {"conversation_id": "c", "step_number": 3}
    case = Case(agent_id="agent_1", credentials=Credentials(), action_raw=to.action, context_raw=context, now=NOON)
    return parse(case, Settings(), NAMES)


@_row(ErrorCode.COST_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _a_cost_above_that_of_one_request(to: Arguments) -> None:
    to.limit(cost_per_request=CENT - 1)


@_row(ErrorCode.TOKENS_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _tokens_above_those_of_one_request(to: Arguments) -> None:
    to.action["cost"] = {"usd": 0, "tokens": 8}
    to.limit(tokens_per_request=7)


@_row(ErrorCode.COST_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _a_day_whose_cost_is_spent(to: Arguments) -> None:
    to.limit(daily_cost=3 * CENT - 1)
    to.spend(cost_day=CENT, pending_cost=CENT)


@_row(ErrorCode.RATE_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _an_hour_whose_requests_are_reserved(to: Arguments) -> None:
    to.limit(requests_per_hour=1)
    to.snapshot["reserved"] = ONE_REQUEST


@_row(ErrorCode.RATE_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _a_day_whose_requests_are_spent(to: Arguments) -> None:
    to.limit(requests_per_day=0)


@_row(ErrorCode.RATE_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _an_hour_whose_tool_calls_are_spent(to: Arguments) -> None:
    to.action = {**TOOL, **({"cost": to.action["cost"]} if "cost" in to.action else {})}
    to.limit(tool_calls_per_hour=0)


@_row(ErrorCode.TOKENS_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _a_day_whose_tokens_are_spent(to: Arguments) -> None:
    to.action["cost"] = {"usd": 0, "tokens": 8}
    to.limit(tokens_per_day=7)


@_row(ErrorCode.TOOL_NOT_ALLOWED)
def _a_tool_that_is_not_allowed(to: Arguments) -> None:
    to.assessment |= {"decision": Decision.DENIED, "refusal": denied(ErrorCode.TOOL_NOT_ALLOWED)}


@_row(ErrorCode.INSUFFICIENT_TRUST)
def _too_little_trust(to: Arguments) -> None:
    to.assessment |= {"decision": Decision.DENIED, "refusal": denied(ErrorCode.INSUFFICIENT_TRUST)}


@_row(ErrorCode.RATE_EXCEEDED, Decision.BUDGET_EXCEEDED)
def _a_day_whose_calls_of_high_risk_are_spent(to: Arguments) -> None:
    to.assessment |= {"risk": Risk.HIGH, "refusal": None}
    to.limit(high_risk_calls_per_day=2)
    to.spend(high_risk_day=1, pending_high_risk=1)


@_row(ErrorCode.APPROVALS_FULL)
def _too_many_open_approvals(to: Arguments) -> None:
    to.assessment |= {"decision": Decision.PENDING, "refusal": None}
    to.settings["max_open_approvals"] = 2
    to.spend(open_approvals=2)


rows = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


def _code(outcome: Outcome) -> tuple[Decision, str | None]:
    return outcome.decision, None if outcome.error is None else outcome.error.code


def test_without_any_of_it_the_action_is_approved() -> None:
    case, outcome = Arguments().decide()
    assert outcome == Outcome(
        Decision.APPROVED, charge=RequestCost(cost=CENT, requests=1), behaviour_flag=BehaviourFlag.CLEAN
    )
    assert case.checks_passed == ("agent_active", "within_budget", "rate_limit")


@rows
def test_each_of_it_is_refused_with_its_code(row: Row) -> None:
    arguments = Arguments()
    row.change(arguments)
    _case, outcome = arguments.decide()
    assert _code(outcome) == (row.decision, row.code.code)


@pytest.mark.parametrize("pair", list(combinations(ROWS, 2)), ids=" before ".join)
def test_of_two_refusals_the_earlier_check_is_named(pair: tuple[str, str]) -> None:
    first, second = (ROWS[name] for name in pair)
    arguments = Arguments()
    second.change(arguments)
    first.change(arguments)
    _case, outcome = arguments.decide()
    assert _code(outcome) == (first.decision, first.code.code)


STRANGER = list(ROWS)[: [*ROWS].index("a suspended agent")]


@pytest.mark.parametrize("name", STRANGER)
def test_a_stranger_is_charged_nothing_and_names_no_agent(name: str) -> None:
    arguments = Arguments()
    ROWS[name].change(arguments)
    case, outcome = arguments.decide()
    assert (case.agent, outcome.charge) == (None, NO_COST)


CHARGED = {
    "the same action again and again": ONE_REQUEST,
    "the same state again and again": ONE_REQUEST,
    "a tool that is not allowed": RequestCost(cost=CENT, requests=1),
    "too little trust": RequestCost(cost=CENT, requests=1),
    "too many open approvals": RequestCost(cost=CENT, requests=1),
}
"""Refusals that count; at commit, a refused action costs its request and no money."""


@rows
def test_a_refusal_counts_once_it_was_admitted_and_a_loop_counts_as_a_request(row: Row) -> None:
    arguments = Arguments()
    row.change(arguments)
    name = next(name for name, one in ROWS.items() if one is row)
    assert arguments.decide()[1].charge == CHARGED.get(name, NO_COST)


@rows
def test_a_refusal_says_what_it_means_for_trust(row: Row) -> None:
    arguments = Arguments()
    row.change(arguments)
    flag = BehaviourFlag.NONE
    if row.decision is Decision.BUDGET_EXCEEDED:
        flag = BehaviourFlag.EXCEEDED
    elif row.code.final and row.code.http == 200:
        flag = BehaviourFlag.REFUSED
    assert arguments.decide()[1].behaviour_flag is flag


def test_misconduct_is_a_denial() -> None:
    refusal = denied(ErrorCode.VERIFICATION_FAILED)
    arguments = Arguments(assessment={"decision": Decision.DENIED, "refusal": refusal, "misconduct": True})
    assert arguments.decide()[1].behaviour_flag is BehaviourFlag.DENIED


def test_a_broken_security_rule_is_a_violation() -> None:
    refusal = denied(ErrorCode.TOOL_NOT_ALLOWED)
    arguments = Arguments(assessment={"decision": Decision.DENIED, "refusal": refusal, "violation": True})
    _case, outcome = arguments.decide()
    assert (outcome.behaviour_flag, outcome.broken_rules) == (BehaviourFlag.VIOLATION, (DegradationRule.SECURITY,))


def test_a_stored_answer_to_the_same_request_is_remembered() -> None:
    arguments = Arguments(case={"credentials": Credentials(organisation_id=ORGANISATION), "idempotency_key": "k"})
    body_hash = arguments.decide()[0].body_hash
    stored = StoredAnswer(body_hash, b"{}", "act_1")
    arguments.snapshot |= {"stored_answer": stored, "key_in_flight": True}
    assert arguments.decide()[0].remembered == stored


# What is permitted

ATTESTED: list[tuple[Decision, Risk, dict[str, Any], bool]] = [
    (Decision.APPROVED, Risk.LOW, {}, False),
    (Decision.APPROVED, Risk.MEDIUM, {}, False),
    (Decision.APPROVED, Risk.HIGH, {}, True),
    (Decision.APPROVED, Risk.CRITICAL, {}, True),
    (Decision.APPROVED, Risk.LOW, {"require_attestation": True}, True),
    (Decision.APPROVED, Risk.LOW, {"chain_id": "ch"}, True),
    (Decision.CORRECTED, Risk.LOW, {}, False),
    (Decision.CORRECTED, Risk.HIGH, {}, True),
    (Decision.PENDING, Risk.HIGH, {"chain_id": "ch", "require_attestation": True}, False),
]


@pytest.mark.parametrize(("decision", "risk", "options", "attested"), ATTESTED)
def test_high_risk_is_attested_and_the_rest_when_asked(
    decision: Decision, risk: Risk, options: dict[str, Any], attested: bool
) -> None:
    end = ChainEnd(4, "att_4")
    arguments = Arguments(options=options, assessment={"decision": decision, "risk": risk}, snapshot={"chain": end})
    _case, outcome = arguments.decide()
    assert (outcome.decision, outcome.error, outcome.is_attested) == (decision, None, attested)
    chain = Chain(id="ch", index=4, previous="att_4") if attested and "chain_id" in options else None
    assert outcome.chain == chain


@pytest.mark.parametrize("limit", [None, 5])
@pytest.mark.parametrize("risk", Risk)
def test_a_call_of_high_risk_is_counted_where_it_is_limited(limit: int | None, risk: Risk) -> None:
    arguments = Arguments(assessment={"risk": risk})
    if limit is not None:
        arguments.limit(high_risk_calls_per_day=limit)
    counted = limit is not None and risk >= Risk.HIGH
    assert arguments.decide()[1].charge == RequestCost(CENT, 0, 1, 0, int(counted))


@pytest.mark.parametrize(
    ("action", "charge"),
    [
        (SUM, RequestCost(CENT, 0, 1, 0)),
        (TOOL, RequestCost(CENT, 0, 1, 1)),
        ({**SUM, "cost": {"usd": 0.5, "tokens": 7}}, RequestCost(500_000, 7, 1, 0)),
        ({**SUM, "cost": {"usd": 0.001}}, RequestCost(CENT, 0, 1, 0)),
    ],
)
def test_an_action_costs_what_it_states_and_at_least_the_price_of_the_engine(
    action: dict[str, Any], charge: RequestCost
) -> None:
    assert Arguments(action=action).decide()[1].charge == charge


@pytest.mark.parametrize("window", [HOUR, DAY])
def test_a_new_window_has_a_new_budget(window: float) -> None:
    arguments = Arguments()
    arguments.limit(requests_per_hour=1, requests_per_day=1)
    full = Usage(replace(UsageCounters().at(NOON - window), requests_hour=1, requests_day=1))
    arguments.snapshot["usage"] = full
    assert arguments.decide()[1].decision is (Decision.APPROVED if window == DAY else Decision.BUDGET_EXCEEDED)


def test_a_decision_that_tips_the_rate_of_denials_breaks_the_rule() -> None:
    window = BehaviourWindow("d" * 3 + "." * 16)
    arguments = Arguments(snapshot={"usage": Usage(behaviour=window)})
    assert arguments.decide()[1].broken_rules == (DegradationRule.DENIALS,)


# Properties

steady = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
few, steps = st.integers(0, 6), st.integers(0, 6)
counters = st.builds(
    UsageCounters,
    st.sampled_from([int(NOON // HOUR), int(NOON // HOUR) - 1]),
    st.sampled_from([int(NOON // DAY), int(NOON // DAY) - 1]),
    *[few] * 10,
)
behaviour = st.builds(
    BehaviourWindow,
    st.text(".dve", max_size=30),
    st.integers(0, 2),
    st.lists(st.integers(0, 2 * int(HOUR)), max_size=4).map(
        lambda ages: " ".join(str(int((NOON - age) * 1000)) for age in sorted(ages, reverse=True))
    ),
)
usages = st.builds(Usage, counters, behaviour, st.builds(TrustEvidence, st.just(0.0), few, st.just(0), st.just(0)))
histories = st.builds(
    ConversationHistory, steps, steps, st.sampled_from(["", "keyed:other"]), st.integers(0, 2), st.just("")
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "daily_cost": st.integers(0, 8),
        "requests_per_hour": few,
        "requests_per_day": few,
        "tokens_per_day": st.integers(0, 8),
        "tool_calls_per_hour": few,
        "high_risk_calls_per_day": few,
    },
)
assessments = st.sampled_from(
    [
        {},
        {"risk": Risk.HIGH},
        {"decision": Decision.PENDING, "risk": Risk.HIGH},
        {"decision": Decision.CORRECTED},
        {"decision": Decision.DENIED, "refusal": denied(ErrorCode.TOOL_NOT_ALLOWED)},
        {"decision": Decision.DENIED, "refusal": denied(ErrorCode.TOOL_NOT_ALLOWED), "violation": True},
    ]
)
options = st.sampled_from([None, {"chain_id": "ch"}, {"require_attestation": True}])
actions = st.sampled_from([{**SUM, "cost": {"tokens": 3}}, TOOL])
chains = st.sampled_from([ChainEnd(), ChainEnd(2, "att_2")])


@steady
@given(usages, histories, limits, assessments, options, actions, chains, st.sets(steps), few)
def test_the_same_arguments_give_the_same_outcome_and_stay_as_they_were(
    usage: Usage,
    history: ConversationHistory,
    limit: dict[str, int],
    assessment: dict[str, Any],
    option: dict[str, Any] | None,
    action: dict[str, Any],
    chain: ChainEnd,
    reserved_steps: set[int],
    reserved: int,
) -> None:
    chosen = Settings(engine_price_usd=1, max_open_approvals=5, max_steps=6)
    snapshot = Snapshot(
        agent=agent_of(**limit),
        usage=usage,
        history=history,
        chain=chain,
        reserved=replace(ONE_REQUEST, cost=reserved),
        reserved_steps=frozenset(reserved_steps),
    )
    case = Case(
        agent_id="agent_1",
        credentials=Credentials(organisation_id=ORGANISATION),
        action_raw=action,
        context_raw={"conversation_id": "c", "step_number": 3},
        options_raw=option,
        now=NOON,
    )
    parsed, judged = parse(case, chosen, NAMES), assessment_of(**assessment)
    before = copy.deepcopy((parsed, snapshot, judged))
    first, second = (decide(parsed, snapshot, judged, chosen) for _ in range(2))
    assert first == second
    case_before, snapshot_before, judged_before = before
    assert (parsed, judged) == (case_before, judged_before)
    assert snapshot.access_lists.entries == snapshot_before.access_lists.entries
    assert snapshot == msgspec.structs.replace(snapshot_before, access_lists=snapshot.access_lists)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreFixture]:
    """Store for all examples, each of which has an agent of its own."""
    store_fixture = StoreFixture(
        "file", tmp_path_factory.mktemp("decided") / "data", ManualClock(), max_open_approvals=5, max_steps=6
    )
    yield store_fixture
    store_fixture.store.close()


class Prepared(NamedTuple):
    """Store whose agent is in a given state."""

    store_fixture: StoreFixture
    agent: Agent
    snapshot: Snapshot


def _prepare(
    store_fixture: StoreFixture, usage: Usage, history: ConversationHistory, chain: ChainEnd, limit: dict[str, int]
) -> Prepared:
    """Write the rows of a state and load it."""
    agent_id = f"agent_{next(_agents)}"
    agent = store_fixture.register(agent_of(agent_id, **limit))
    store_fixture.write(insert("usage"), *usage_row(agent_id, usage))
    if history.steps:
        store_fixture.write(insert("conversations"), agent_id, "c", *astuple(history))
    if chain.links:
        store_fixture.write(sql.PUT_CHAIN, ORGANISATION, agent_id, *chain)
    snapshot = store_fixture.load(agent_id, "c", chain_id=agent_id)
    assert (snapshot.agent, snapshot.usage, snapshot.chain) == (agent, usage, chain)
    return Prepared(store_fixture, agent, snapshot)


_agents = iter(range(1, 1_000_000))


@steady
@given(usages, histories, limits, assessments, options, actions, chains)
def test_what_is_permitted_on_a_snapshot_commits_on_a_store_in_that_state(
    shared_store: StoreFixture,
    usage: Usage,
    history: ConversationHistory,
    limit: dict[str, int],
    assessment: dict[str, Any],
    option: dict[str, Any] | None,
    action: dict[str, Any],
    chain: ChainEnd,
) -> None:
    history = history if history.steps else ConversationHistory()
    prepared = _prepare(shared_store, usage, history, chain, limit)
    chosen = Settings(engine_price_usd=1, max_open_approvals=5, max_steps=6)
    raw = Case(
        agent_id=prepared.agent.agent_id,
        credentials=Credentials(organisation_id=ORGANISATION),
        action_raw=action,
        context_raw={"conversation_id": "c", "step_number": 3},
        options_raw=option,
        now=NOON,
    )
    case, outcome = decide(parse(raw, chosen, NAMES), prepared.snapshot, assessment_of(**assessment), chosen)
    _require_commits(prepared, case, outcome)


def _require_commits(prepared: Prepared, case: Case, outcome: Outcome) -> None:
    """Require that the outcome commits, and that the state afterwards is the one that the rules predict."""
    store_fixture, agent, snapshot = prepared
    reservation, approval, link = None, None, None
    if outcome.decision.commits:
        reservation = Reservation(agent.agent_id, "c", case.step, case.charge, NOON)
        assert store_fixture.store.reserve(reservation, snapshot) is None
    if outcome.decision is Decision.PENDING:
        amounts = (outcome.charge.cost, outcome.charge.tokens, outcome.charge.high_risk_calls)
        approval = ApprovalRequest(f"apr_of_{agent.agent_id}", *amounts, NOON, NOON + 60)
    if outcome.chain is not None:
        link = ChainLink(agent.agent_id, outcome.chain.index, outcome.chain.previous, f"att_of_{agent.agent_id}")
    write_set = store_fixture.write_set(
        agent,
        reservation,
        outcome.decision,
        outcome.charge,
        mark=outcome.behaviour_flag,
        attested=outcome.is_attested,
        approval=approval,
        link=link,
        activity_id=f"act_of_{agent.agent_id}",
    )
    effects = write_set.effects
    assert effects is not None
    assert effects.broken_rules == outcome.broken_rules
    committed = store_fixture.outcome(store_fixture.store.commit(write_set))
    assert isinstance(committed, Committed), committed
    predicted, rules = usage_after(snapshot.usage, effects, NOON, attested=outcome.is_attested)
    assert rules == outcome.broken_rules
    if effects.degradations:
        predicted = replace(predicted, evidence=TrustEvidence(level_since=NOON))
    after = store_fixture.load(agent.agent_id, "c", chain_id=agent.agent_id)
    history = snapshot.history.after(case.step, outcome.decision) if outcome.decision.commits else snapshot.history
    assert (after.usage, after.history, after.reserved) == (predicted, history, NO_COST)
    assert after.chain.links == snapshot.chain.links + (link is not None)
    assert committed.usage == predicted.counters

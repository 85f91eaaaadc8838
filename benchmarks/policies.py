"""Cost of policies, compared with the decision without them, with Cedar and with one bare CEL evaluation, by CPU time.

Cedar evaluates the same rules, parsed before. A rule concerns the call if it is about its tool.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import cedarpy

import qwed
from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute
from qwed.model.decision import Risk
from qwed.policy import (
    CompiledPolicies,
    PolicyAgent,
    PolicyAnswer,
    PolicyInput,
    PolicySource,
    PolicyTool,
    compile_policies,
    evaluate,
)

TOOL, AMOUNT = "lookup", 20
DECISIONS, EVALUATIONS = 500, 200
CHART = "decision with policies / without"
WITHOUT, BARE_CEL = "decision without policies", "one bare CEL evaluation"
_PER_POLICY = 100
_numbers = itertools.count(1)


class Case(NamedTuple):
    """Size of a set, and how many of its rules concern the call."""

    rules: int
    concerned: int

    def __str__(self) -> str:
        return f"{self.rules:,} rules, {self.concerned} of the call"

    def tools(self) -> list[str]:
        """Return the tool of each rule; those of the call are spread over the set."""
        step = self.rules // max(1, self.concerned)
        ours = {number * step for number in range(self.concerned)}
        return [TOOL if number in ours else f"other{number}" for number in range(self.rules)]


MOST = 1000
CASES = [Case(rules, concerned) for rules in (10, 100, MOST) for concerned in (0, 1, 10)]


def rows(rounds: int, say: Say) -> list[Row]:
    """Compare decisions with and without policies, and evaluations with Cedar and CEL."""
    running = contenders()
    for run in running.values():
        run()  # trigger late imports
    seen = interleaved(running, rounds, say)
    cases = [Case(0, 0), *CASES]
    return [
        *(
            Row(f"{_decision(case)} / without", ratio(seen[_decision(case)], seen[WITHOUT]), chart=CHART)
            for case in cases
        ),
        *_ratios(seen, [(_ours(case), _cedar(case)) for case in CASES]),
        *_ratios(seen, [(_ours(case), BARE_CEL) for case in CASES if case.rules == MOST]),
        *(absolute(f"{name}, us of CPU", values) for name, values in seen.items()),
    ]


def _ratios(seen: Mapping[str, list[float]], pairs: Iterable[tuple[str, str]]) -> list[Row]:
    return [Row(f"{ours} / {peer}", ratio(seen[ours], seen[peer])) for ours, peer in pairs]


def _decision(case: Case) -> str:
    return f"decision, {case}"


def _ours(case: Case) -> str:
    return f"evaluation, {case}"


def _cedar(case: Case) -> str:
    return f"Cedar, {case}"


def contenders() -> dict[str, Callable[[], float]]:
    """Return functions that measure microseconds of CPU time per decision or evaluation."""
    found = {WITHOUT: _deciding(None), _decision(Case(0, 0)): _deciding(Case(0, 0))}
    found |= {_decision(case): _deciding(case) for case in CASES}
    found |= {_ours(case): _evaluating(case) for case in CASES}
    found |= {_cedar(case): _cedar_evaluating(case) for case in CASES}
    return found | {BARE_CEL: _cel_evaluating()}


def _documents(case: Case) -> dict[str, str]:
    """Return the policies of a set: a policy is about one tool."""
    rules: dict[str, list[str]] = {}
    for number, tool in enumerate(case.tools()):
        condition = f"args.amount > 0 && args.amount <= {1000 + number}"
        rules.setdefault(tool, []).append(f"  - {{id: r{number}, when: {condition}, then: allow}}\n")
    others = [(tool, lines) for tool, lines in rules.items() if tool != TOOL]
    texts = {"p-call.yaml": _document("p-call", [TOOL], rules[TOOL])} if TOOL in rules else {}
    for number, start in enumerate(range(0, len(others), _PER_POLICY)):
        some = others[start : start + _PER_POLICY]
        tools, lines = [tool for tool, _ in some], [line for _, lines in some for line in lines]
        texts[f"p{number}.yaml"] = _document(f"p{number}", tools, lines)
    return texts


def _document(name: str, tools: list[str], lines: list[str]) -> str:
    head = f"policy: {name}\nfacts: 1\napplies_to: {{tools: [{', '.join(tools)}]}}\nargs: {{amount: number}}\nrules:\n"
    return head + "".join(lines)


def _deciding(case: Case | None) -> Callable[[], float]:
    gate = qwed.open()
    gate.put_tool(TOOL, "low")
    if case is not None:
        gate.apply_policies(_documents(case))
    budget = {"max_daily_cost_usd": 1_000_000}
    agent = gate.register_agent(name="bench", principal_id="bench", type="autonomous", budget=budget)

    def decide() -> None:
        conversation = f"c{next(_numbers)}_"
        for number in range(DECISIONS):
            context = {"conversation_id": f"{conversation}{number // 50}", "step_number": number % 50 + 1}
            parameters = {"amount": AMOUNT + number % 7}
            answer = gate.verify_tool_call(agent.agent_id, TOOL, parameters, context, agent_token=agent.agent_token)
            if answer.decided != "APPROVED":
                raise RuntimeError(f"not approved: {dict(answer)}")

    return lambda: _cpu(decide, DECISIONS)


def _compiled(case: Case) -> CompiledPolicies:
    policies = compile_policies(PolicySource(name, text) for name, text in _documents(case).items())
    if not isinstance(policies, CompiledPolicies):
        raise RuntimeError("\n".join(problem.render() for problem in policies))
    return policies


def _call() -> PolicyInput:
    return PolicyInput(
        action_type="tool_call",
        tool=PolicyTool(name=TOOL, registered=True),
        args={"amount": AMOUNT},
        risk=Risk.LOW,
        agent=PolicyAgent(agent_id="bench", trust=2, registered_trust=2),
        now=datetime(2026, 3, 2, 12, tzinfo=UTC),
    )


def _evaluating(case: Case) -> Callable[[], float]:
    policies, call = _compiled(case), _call()
    expected = PolicyAnswer.ALLOW if case.concerned else None

    def run() -> None:
        for _ in range(EVALUATIONS):
            if evaluate(policies, call).then is not expected:
                raise RuntimeError("another answer than expected")

    return lambda: _cpu(run, EVALUATIONS)


def _cedar_evaluating(case: Case) -> Callable[[], float]:
    rules = [
        f'permit(principal, action == Action::"{tool}", resource) '
        f"when {{ context.amount > 0 && context.amount <= {1000 + number} }};"
        for number, tool in enumerate(case.tools())
    ]
    policies, entities = cedarpy.PolicySet.from_str("\n".join(rules)), cedarpy.Entities.from_json_str("[]")
    request = {
        "principal": 'Agent::"bench"',
        "action": f'Action::"{TOOL}"',
        "resource": 'Tool::"any"',
        "context": {"amount": AMOUNT},
    }

    def run() -> None:
        for _ in range(EVALUATIONS):
            if cedarpy.is_authorized(request, policies, entities).allowed != bool(case.concerned):
                raise RuntimeError("another answer than expected")

    return lambda: _cpu(run, EVALUATIONS)


def _cel_evaluating() -> Callable[[], float]:
    from cel_expr_python import cel

    environment = cel.NewEnv(variables={"args": cel.Type.DYN})
    program = environment.compile("args.amount > 0 && args.amount <= 1000")

    def run() -> None:
        for _ in range(EVALUATIONS):
            activation: Any = environment.Activation({"args": {"amount": AMOUNT}})
            if program.eval(activation).value() is not True:
                raise RuntimeError("the condition does not hold")

    return lambda: _cpu(run, EVALUATIONS)


def _cpu(work: Callable[[], None], times: int) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) / times * 1e6

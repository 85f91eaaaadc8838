"""Conditions: an expression that is checked once and evaluated often."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qwed.policy.argument_types import ArgumentTypes
from qwed.policy.cel_ast import Node, read_checked_expression
from qwed.policy.cel_environment import agent_checker, evaluation_environment, rule_checker
from qwed.policy.checker_errors import Finding, read_checker_errors
from qwed.policy.condition_checks import ConditionChecks
from qwed.policy.document import ConditionText, UsageKey
from qwed.policy.exact_arithmetic import decimal_calls, use_decimals
from qwed.policy.facts_schema import AGENT_VARIABLES, GROUPS, VARIABLES
from qwed.policy.iterations import Loop, loops_of
from qwed.policy.presence import check_presence
from qwed.policy.problem import Position

_UNRESOLVED = "UNRESOLVED"
_MISSING = re.compile(r'Key not found in map : "([^"]*)"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A checked expression and what it reads."""

    program: Any
    groups: frozenset[str]
    """Groups of facts that it reads."""
    variables: frozenset[str]
    arguments: frozenset[str]
    labels: frozenset[str]
    usage: frozenset[UsageKey]
    loops: tuple[Loop, ...]
    names_unresolved: bool
    """True if it names the effect UNRESOLVED."""
    tools: frozenset[str] | None
    """Tools for which alone it can hold, where that is plain to see."""
    action_types: frozenset[str] | None
    effects: frozenset[str] | None
    """Kinds of effects of which one is needed."""
    constant: bool | None
    """Its value, if it is a constant."""

    def run(self, activation: Any) -> bool | str:
        """Return whether it holds, or why it cannot be evaluated."""
        try:
            value = self.program.eval(activation)
            if str(value.type()) != "BOOL":
                return _reason(str(value.value()))
            return bool(value.value())
        # The runtime reports some failures, such as text that is not valid Unicode, as exceptions of its own.
        except (RuntimeError, ValueError, TypeError, OverflowError) as error:
            return _reason(str(error))


class ConditionError(Exception):
    """A condition is refused; carries what was found."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__(findings[0].message)
        self.findings = findings


def compile_condition(text: str, arguments: ArgumentTypes) -> Condition:
    """Return the condition of a rule; raise ConditionError if it is not well typed or not safe."""
    return _compile(text, rule_checker(arguments), arguments, agent=False)


def compile_agent_condition(text: str) -> Condition:
    """Return the condition of `applies_to.agents`."""
    return _compile(text, agent_checker(), {}, agent=True)


def _compile(text: str, checker: Any, arguments: ArgumentTypes, *, agent: bool) -> Condition:
    variables = AGENT_VARIABLES if agent else {**VARIABLES, "args": "", "usage": ""}
    try:
        checked = checker.compile(text)
        root = read_checked_expression(checked.serialize())
        program = checked if agent else _program(text, root)
    except (RuntimeError, ValueError) as error:
        raise ConditionError(read_checker_errors(str(error), arguments, variables)) from None
    findings: list[Finding] = []

    def report(node: Node, message: str) -> None:
        findings.append(_finding(text, node.position, message))

    checks = ConditionChecks(text, evaluate_literal, report, agent=agent)
    checks.check(root)
    check_presence(root, report)
    if findings:
        raise ConditionError(sorted(set(findings)))
    return Condition(
        program=program,
        groups=frozenset() if agent else frozenset(checks.variables & set(GROUPS)),
        variables=frozenset(checks.variables),
        arguments=frozenset(checks.arguments),
        labels=frozenset(checks.labels),
        usage=frozenset(checks.usage),
        loops=loops_of(root),
        names_unresolved=any(node.kind == "const" and node.value == _UNRESOLVED for node in root.walk()),
        tools=_required(root, "tool.name"),
        action_types=_required(root, "action.type"),
        effects=_required_effects(root),
        constant=root.value if root.kind == "const" else None,
    )


def _program(text: str, root: Node) -> Any:
    """Return the expression as it is evaluated."""
    program = evaluation_environment().compile(text, disable_check=True)
    calls = decimal_calls(root)
    if not calls:
        return program
    return evaluation_environment().deserialize(use_decimals(program.serialize(), calls))


def _finding(text: str, offset: int, message: str) -> Finding:
    before = text[:offset]
    return Finding(before.count("\n") + 1, offset - before.rfind("\n"), message)


def evaluate_literal(expression: str) -> str | None:
    """Return the error of an expression of literals, or None if it has a value."""
    try:
        value = evaluation_environment().compile(expression, disable_check=True).eval(data={})
    except RuntimeError as error:
        return _reason(str(error))
    return _reason(str(value.value())) if str(value.type()) == "ERROR" else None


def position_in(condition: ConditionText, finding: Finding) -> Position:
    """Return the position in the document of a finding in a condition."""
    before = condition.text.split("\n")[: finding.line - 1]
    offset = sum(len(line) + 1 for line in before) + finding.column - 1
    earlier = [(start, at) for start, at in condition.lines if start <= offset]
    if not earlier:
        return condition.at
    start, at = earlier[-1]
    return Position(at.line, at.column + offset - start)


def _reason(text: str) -> str:
    """Return the error of the runtime in one short line."""
    for prefix in ("INVALID_ARGUMENT: ", "UNKNOWN: ", "NOT_FOUND: ", "OUT_OF_RANGE: "):
        text = text.removeprefix(prefix)
    if match := _MISSING.match(text):
        return f"the call has no `{match[1]}`: ask `has(...)` first"
    return text.splitlines()[0][:200] if text else "the expression has no value"


def _conjuncts(node: Node) -> Iterator[Node]:
    if node.name == "_&&_":
        for part in node.children:
            yield from _conjuncts(part)
    else:
        yield node


def _required(root: Node, path: str) -> frozenset[str] | None:
    """Return the texts of which the value at this path must be one, or None if it can be any."""
    for node in _conjuncts(root):
        if (texts := _compared(node, path)) is not None:
            return texts
    return None


def _compared(node: Node, path: str) -> frozenset[str] | None:
    if node.name not in ("_==_", "@in") or node.kind != "call":
        return None
    left, right = node.children
    if node.name == "_==_" and right.path == path:
        left, right = right, left
    parts = right.children if node.name == "@in" and right.kind == "list" else (right,)
    if left.path != path or any(part.kind != "const" for part in parts):
        return None
    return frozenset(str(part.value) for part in parts)


def _required_effects(root: Node) -> frozenset[str] | None:
    for node in _conjuncts(root):
        if node.kind != "exists" or node.children[0].path != "effects":
            continue
        if (kinds := _required(node.children[1], f"{node.name}.kind")) is not None:
            return kinds
    return None

"""Compiler of policies: documents to checked rules, or every problem with its position."""

from collections.abc import Iterable, Mapping
from typing import Any

from qwed.policy.argument_types import ArgumentType, ArgumentTypes, types_from_schema
from qwed.policy.compiled_policies import CompiledPolicies, CompiledPolicy, CompiledRule
from qwed.policy.condition import (
    Condition,
    ConditionError,
    compile_agent_condition,
    compile_condition,
    position_in,
)
from qwed.policy.document import ConditionText, Policy, PolicyMode, PolicyRule, PolicySource
from qwed.policy.document_reader import read_policy
from qwed.policy.problem import PolicyProblem, Position, shown

MAX_POLICIES = 500
"""Documents of a set."""
MAX_RULES_OF_SET = 5_000
"""Rules of all documents of a set."""


def compile_policies(
    documents: Iterable[PolicySource], tool_schemas: Mapping[str, Mapping[str, Any]] | None = None
) -> CompiledPolicies | tuple[PolicyProblem, ...]:
    """Return the checked policies of these documents, or every problem found in them.

    `tool_schemas` has the JSON Schema of the arguments of each tool that has a released one.
    """
    compiler = _Compiler(tool_schemas or {})
    for number, document in enumerate(documents):
        if number >= MAX_POLICIES:
            return (PolicyProblem(file=document.name, message=f"a set may have at most {MAX_POLICIES} policies"),)
        compiler.add(document)
    if compiler.problems:
        return tuple(compiler.problems)
    return CompiledPolicies(compiler.policies, compiler.rules)


class _Compiler:
    def __init__(self, tool_schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._tool_types = {name: types_from_schema(schema) for name, schema in tool_schemas.items()}
        self._files: dict[str, str] = {}
        self._types: dict[tuple[tuple[str, ArgumentType], ...], ArgumentTypes] = {}
        self.policies: list[CompiledPolicy] = []
        self.rules: list[CompiledRule] = []
        self.problems: list[PolicyProblem] = []

    def add(self, document: PolicySource) -> None:
        policy = read_policy(document)
        if isinstance(policy, tuple):
            self.problems.extend(policy)
            return
        other = self._files.setdefault(policy.policy_id, document.name)
        if other is not document.name or any(known.policy.policy_id == policy.policy_id for known in self.policies):
            message = f"the policy {shown(policy.policy_id)} is already in {shown(other)}: give it another name"
            self.problems.append(policy.source.problem(Position(), message, policy=policy.policy_id))
            return
        if len(self.rules) + len(policy.rules) > MAX_RULES_OF_SET:
            message = f"a set may have at most {MAX_RULES_OF_SET} rules"
            self.problems.append(policy.source.problem(Position(), message, policy=policy.policy_id))
            return
        self._compile(policy)

    def _compile(self, policy: Policy) -> None:
        known = [name for name in policy.tools if name in self._tool_types]
        types = {name: self._shared({**policy.args, **self._tool_types[name]}) for name in known}
        agents = None
        if policy.agents is not None:
            agents = self._checked(policy, None, policy.agents)
        owner = CompiledPolicy(policy, agents, types, self._shared(policy.args))
        self.policies.append(owner)
        for rule in policy.rules:
            if (compiled := self._rule(owner, rule)) is not None:
                self.rules.append(compiled)

    def _shared(self, types: ArgumentTypes) -> ArgumentTypes:
        """Return the one object for these types, so that the arguments of a call are bound once for all policies."""
        return self._types.setdefault(tuple(sorted(types.items())), types)

    def _rule(self, owner: CompiledPolicy, rule: PolicyRule) -> CompiledRule | None:
        policy = owner.policy
        conditions, broken = _compile_by_tool(rule.when.text, owner.tool_types)
        if not conditions or any(name not in owner.tool_types for name in policy.tools):
            condition = self._checked(policy, rule, rule.when)
        else:
            condition = conditions[0]
        if condition is None:
            return None
        return CompiledRule(owner, rule, condition, broken, policy.mode is PolicyMode.SHADOW)

    def _checked(self, policy: Policy, rule: PolicyRule | None, text: ConditionText) -> Condition | None:
        try:
            return compile_agent_condition(text.text) if rule is None else compile_condition(text.text, policy.args)
        except ConditionError as error:
            for finding in error.findings:
                at = position_in(text, finding)
                rule_id = rule.rule_id if rule else ""
                message = finding.message if text.lines else f"{finding.message} (character {finding.column})"
                problem = policy.source.problem(at, message, policy=policy.policy_id, rule=rule_id)
                self.problems.append(problem)
            return None


def _compile_by_tool(text: str, types: Mapping[str, ArgumentTypes]) -> tuple[list[Condition], dict[str, str]]:
    """Return the conditions that fit the schema of a tool, and the reason for each tool that they do not fit."""
    conditions: list[Condition] = []
    broken: dict[str, str] = {}
    for name, arguments in types.items():
        try:
            conditions.append(compile_condition(text, arguments))
        except ConditionError as error:
            broken[name] = error.findings[0].message
    return conditions, broken

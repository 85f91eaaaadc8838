"""Compiled policies: checked rules with an index by tool, action type, facts and effects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qwed.policy.argument_types import ArgumentTypes
from qwed.policy.condition import Condition
from qwed.policy.document import Policy, PolicyRule, UsageKey
from qwed.policy.facts_schema import GROUPS
from qwed.policy.policy_input import PolicyInput


@dataclass(frozen=True, eq=False, slots=True)
class CompiledPolicy:
    """A policy with its checked conditions."""

    policy: Policy
    agents: Condition | None
    tool_types: Mapping[str, ArgumentTypes]
    """Types of the arguments of the tools that have a schema."""
    types: ArgumentTypes
    """Types of the arguments of all other tools; equal ones are the same object in all policies of a set."""

    def argument_types(self, tool: str) -> ArgumentTypes:
        """Return the types of the arguments of a tool."""
        return self.tool_types.get(tool, self.types)


@dataclass(frozen=True, eq=False, slots=True)
class CompiledRule:
    """A rule with its checked condition."""

    owner: CompiledPolicy
    rule: PolicyRule
    condition: Condition
    broken_tools: Mapping[str, str] = field(default_factory=dict)
    """Tools whose schema the condition does not fit, with the reason; calls of them are denied."""
    is_shadow: bool = False
    """True if it decides nothing."""

    @property
    def key(self) -> tuple[str, str]:
        """Policy and rule id: the order in which rules are named, whatever the order of the files."""
        return self.owner.policy.policy_id, self.rule.rule_id


Buckets = dict[str, list[CompiledRule]]


class RuleIndex:
    """Finds the few rules that can concern a call among many."""

    def __init__(self, rules: Iterable[CompiledRule]) -> None:
        self._always: list[CompiledRule] = []
        self._by_name: Buckets = {}
        self._by_tool: Buckets = {}
        self._by_action: Buckets = {}
        self._by_group: Buckets = {}
        self._by_effect: Buckets = {}
        for rule in sorted(rules, key=lambda rule: rule.key):
            self._add(rule)

    def _add(self, rule: CompiledRule) -> None:
        condition = rule.condition
        for bucket, names in (
            (self._by_name, rule.owner.policy.tools),
            (self._by_tool, condition.tools),
            (self._by_action, condition.action_types),
            (self._by_group, sorted(condition.groups)[:1]),
            (self._by_effect, condition.effects),
        ):
            if names:
                for name in names:
                    bucket.setdefault(name, []).append(rule)
                return
        self._always.append(rule)

    def rules_for(self, call: PolicyInput) -> list[CompiledRule]:
        """Return the rules that can concern the call, by policy and rule id."""
        tool, action = call.tool.name, call.action_type
        found = [
            self._always,
            self._by_name.get(tool, ()),
            self._by_tool.get(tool, ()),
            self._by_action.get(action, ()),
        ]
        if action != tool:
            found.append(self._by_name.get(action, ()))
        if self._by_group:
            found.extend(self._by_group.get(name, ()) for name in GROUPS if getattr(call.facts, name) is not None)
        if self._by_effect:
            found.extend(self._by_effect.get(kind, ()) for kind in {effect.kind for effect in call.effects})
        rules = dict.fromkeys(rule for part in found for rule in part)
        return [rule for rule in rules if _can_concern(rule.condition, tool, action)]


def _tools_named_by(rule: CompiledRule) -> frozenset[str]:
    condition = rule.condition
    return frozenset({*rule.owner.policy.tools, *(condition.tools or ()), *(key.tool for key in condition.usage)})


def _can_concern(condition: Condition, tool: str, action: str) -> bool:
    if condition.tools is not None and tool not in condition.tools:
        return False
    return condition.action_types is None or action in condition.action_types


class CompiledPolicies:
    """A set of policies, ready to be evaluated."""

    def __init__(self, policies: Iterable[CompiledPolicy], rules: Iterable[CompiledRule]) -> None:
        self.policies = tuple(sorted(policies, key=lambda compiled: compiled.policy.policy_id))
        self.rules = tuple(sorted(rules, key=lambda rule: rule.key))
        self.index = RuleIndex(self.rules)
        conditions = [rule.condition for rule in self.rules]
        conditions += [compiled.agents for compiled in self.policies if compiled.agents is not None]
        self.labels = frozenset().union(*(condition.labels for condition in conditions))
        """Labels that rules read; a missing one reads as an empty text."""
        self.usage: frozenset[UsageKey] = frozenset().union(*(condition.usage for condition in conditions))
        """Counters that rules read; the caller of the evaluator gives their values."""
        self._summing: Buckets = {}
        for rule in self.rules:
            for tool in sorted({key.tool for key in rule.condition.usage if key.measure == "sum"}):
                self._summing.setdefault(tool, []).append(rule)
        self._names = frozenset().union(*map(_tools_named_by, self.rules))
        self._spellings = {name.lower(): name for name in sorted(self._names)}

    def spelling_of(self, tool: str) -> str:
        """Return the tool as the policies spell it: as in the registry, the case of letters does not matter."""
        if tool in self._names or not tool.isascii():
            return tool
        return self._spellings.get(tool.lower(), tool)

    def rules_for(self, call: PolicyInput) -> tuple[list[CompiledRule], list[CompiledRule]]:
        """Return the rules that can concern a call, and the others that add up one of its arguments."""
        rules, summing = self.index.rules_for(call), self._summing.get(call.tool.name)
        if summing is None:
            return rules, []
        concerned = {rule.key for rule in rules}
        return rules, [rule for rule in summing if rule.key not in concerned]


NO_POLICIES = CompiledPolicies((), ())

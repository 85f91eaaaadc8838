"""Rolling usage of a call: the values that rules read about it, and what it adds (DESIGN 11)."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from qwed.domain.snapshot import SnapshotKeys
from qwed.domain.usage_window import CountedCall, UncountableArgument, UsageKey, Use, uses_of
from qwed.kernel.case import Case
from qwed.kernel.policies.action_input import arguments_of, tool_name_of
from qwed.policy import CompiledPolicies
from qwed.policy.compiled_policies import CompiledRule

_MAX_NAMES = 4_096


class UsageOfTool(NamedTuple):
    """Keys of a policy set that concern the calls of one tool."""

    read: tuple[UsageKey, ...] = ()
    """Values that rules in force can read about a call."""
    shadow_read: tuple[UsageKey, ...] = ()
    """Values that only policies in shadow read; they decide nothing."""
    counted: tuple[UsageKey, ...] = ()
    """Values that grow with a call and that rules in force read, about this tool or others."""
    shadow_counted: tuple[UsageKey, ...] = ()

    @property
    def all_read(self) -> tuple[UsageKey, ...]:
        """Values that an evaluation needs."""
        return self.read + self.shadow_read


_NONE = UsageOfTool()


def usage_of_call(compiled: CompiledPolicies, basis: Case) -> UsageOfTool:
    """Return the keys that concern an analyzed action."""
    if not compiled.usage:
        return _NONE
    action = basis.executable or basis.action
    return _usage_of_tool(compiled, compiled.spelling_of(tool_name_of(basis, action)), action.type)


@lru_cache(_MAX_NAMES)
def _usage_of_tool(compiled: CompiledPolicies, tool: str, action_type: str) -> UsageOfTool:
    names = {tool, action_type}
    rules = [rule for rule in compiled.rules if rule.condition.usage]
    own = [rule for rule in rules if _can_concern(rule, tool, action_type)]
    return UsageOfTool(
        *_split(own),
        *(tuple(key for key in keys if key.tool in names) for keys in _split(rules)),
    )


def _can_concern(rule: CompiledRule, tool: str, action_type: str) -> bool:
    stated, condition = rule.owner.policy.tools, rule.condition
    return (
        (not stated or tool in stated or action_type in stated)
        and (condition.tools is None or tool in condition.tools)
        and (condition.action_types is None or action_type in condition.action_types)
    )


def _split(rules: Iterable[CompiledRule]) -> tuple[tuple[UsageKey, ...], tuple[UsageKey, ...]]:
    """Return the keys of rules in force, and those that only rules in shadow have."""
    enforced: set[UsageKey] = set()
    shadow: set[UsageKey] = set()
    for rule in rules:
        (shadow if rule.is_shadow else enforced).update(rule.condition.usage)
    return tuple(sorted(enforced)), tuple(sorted(shadow - enforced))


def usage_keys_of(basis: Case, keys: UsageOfTool, now: float) -> SnapshotKeys:
    """Return the names under which the store loads the values."""
    return SnapshotKeys(basis.agent_id, now=now, usage=keys.all_read)


def uses_of_call(basis: Case, keys: UsageOfTool) -> tuple[Use, ...] | UncountableArgument:
    """Return what an analyzed action adds: the repaired one, where there is one."""
    action, agent = basis.executable or basis.action, basis.agent
    names = frozenset(key.tool for key in keys.counted + keys.shadow_counted)
    call = CountedCall(agent.agent_id, agent.organisation_id, names, arguments_of(action))
    uses = uses_of(keys.counted, call)
    if isinstance(uses, UncountableArgument):
        return uses
    found = dict(uses)
    for key in keys.shadow_counted:
        # An argument that only a policy in shadow adds up refuses nothing.
        shadow = uses_of((key,), call)
        if not isinstance(shadow, UncountableArgument):
            found.update(shadow)
    return tuple(Use(*use) for use in found.items())

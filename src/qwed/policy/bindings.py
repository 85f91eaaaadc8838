"""Bindings: the values of one call as the expressions of rules see them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from qwed.model.effect import Effect
from qwed.model.facts import ShellCommand
from qwed.policy.argument_types import ArgumentTypes, bind_arguments
from qwed.policy.cel_environment import evaluation_environment
from qwed.policy.facts_schema import GROUPS
from qwed.policy.iterations import ListSizes
from qwed.policy.policy_input import PolicyAgent, PolicyInput

_NONE: frozenset[str] = frozenset()


class BoundArguments:
    """Arguments of the call under one set of types."""

    def __init__(self, call: PolicyInput, variables: Mapping[str, Any], types: ArgumentTypes) -> None:
        self.mismatches: Mapping[str, str] = {}
        self.data = dict(variables)
        if types:
            bound, self.mismatches = bind_arguments(call.args, types)
            self.data["args"] = bound
        else:
            self.data["args"] = {}
        self.sizes = ListSizes(self.data)
        self._activations: dict[frozenset[str], Any] = {}

    def activation(self, without: frozenset[str] = _NONE) -> Any:
        """Return the values for the runtime, without these groups."""
        found = self._activations.get(without)
        if found is None:
            data = {name: value for name, value in self.data.items() if name not in without} if without else self.data
            found = self._activations[without] = evaluation_environment().Activation(data)
        return found


class Bindings:
    """Values of one call, built as far as its rules read them."""

    def __init__(self, call: PolicyInput, variables: frozenset[str], labels: frozenset[str]) -> None:
        self._call = call
        self._labels = labels
        self._variables = {name: _VALUES[name](call, labels) for name in variables if name in _VALUES}
        self._by_types: dict[int, BoundArguments] = {}
        self._agent: Any = None

    def arguments(self, types: ArgumentTypes) -> BoundArguments:
        """Return the values with arguments of these types."""
        found = self._by_types.get(id(types))
        if found is None:
            found = self._by_types[id(types)] = BoundArguments(self._call, self._variables, types)
        return found

    def agent_activation(self) -> Any:
        """Return the values of `applies_to.agents`."""
        if self._agent is None:
            self._agent = evaluation_environment().Activation(
                {f"agent.{name}": value for name, value in agent_values(self._call.agent, self._labels).items()}
            )
        return self._agent


def agent_values(agent: PolicyAgent, labels: frozenset[str]) -> dict[str, Any]:
    """Return the fields of an agent; a missing label reads as an empty text."""
    return {
        "id": agent.agent_id,
        "name": agent.name,
        # An enumeration is no value of an expression.
        "type": str(agent.type),
        "trust": int(agent.trust),
        "labels": {name: agent.labels.get(name, "") for name in labels},
        "principal": agent.principal,
    }


def _effect_values(effect: Effect) -> dict[str, str]:
    return {"kind": effect.kind.value, "target": effect.target}


def _group_values(group: Any) -> dict[str, Any]:
    found = {}
    for name in (part.name for part in fields(group)):
        value = getattr(group, name)
        if isinstance(value, tuple):
            found[name] = [_element(item) for item in value]
        elif value is not None:
            found[name] = value
    return found


def _element(item: Any) -> Any:
    if isinstance(item, Effect):
        return _effect_values(item)
    return _group_values(item) if isinstance(item, ShellCommand) else item


def _tool_values(call: PolicyInput, _labels: frozenset[str]) -> dict[str, Any]:
    return {"name": call.tool.name, "server": call.tool.server, "registered": call.tool.registered}


def _group_reader(name: str) -> Any:
    def read(call: PolicyInput, _labels: frozenset[str]) -> dict[str, Any]:
        group = getattr(call.facts, name)
        return {} if group is None else _group_values(group)

    return read


_VALUES: dict[str, Any] = {
    "action": lambda call, _labels: {"type": call.action_type},
    "tool": _tool_values,
    "effects": lambda call, _labels: [_effect_values(effect) for effect in call.effects],
    "risk": lambda call, _labels: call.risk.word,
    "checks_failed": lambda call, _labels: list(call.checks_failed),
    "agent": lambda call, labels: agent_values(call.agent, labels),
    "now": lambda call, _labels: call.now,
    **{name: _group_reader(name) for name in GROUPS},
}

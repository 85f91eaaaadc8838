"""Policy documents: what a policy states, as typed values."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from qwed.policy.argument_types import ArgumentType
from qwed.policy.problem import Position, SourceText


class PolicyAnswer(StrEnum):
    """What a rule that matches answers, from weak to strong."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PolicyMode(StrEnum):
    """Whether a policy decides, or only reports what it would have decided."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A policy document that is not read yet."""

    name: str
    """File name or policy id; problems name it."""
    text: str


@dataclass(frozen=True, slots=True)
class ConditionText:
    """An expression with its position in the document."""

    text: str
    at: Position
    lines: tuple[tuple[int, Position], ...] = ()
    """Offsets in the text at which a line of the document begins, with its position; empty if it is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyRule:
    """One rule of a policy."""

    rule_id: str
    at: Position
    when: ConditionText
    then: PolicyAnswer
    approvers: tuple[str, ...] = ()
    """Groups of which one person each must approve."""
    overrides_trust: bool = False
    """True if a person may answer although the trust of the agent would refuse."""
    min_trust: int | None = None
    """Trust from which an allow applies, in place of the agent's level of registration."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class UsageKey:
    """A counter that a rule reads: calls of a tool, or the sum of an argument, within the last seconds."""

    scope: str
    """`agent` or `organisation`."""
    measure: str
    """`count` or `sum`."""
    tool: str
    argument: str
    """Empty for a count."""
    seconds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyTest:
    """A call, and what the policy must answer it."""

    at: Position
    action: Mapping[str, Any]
    expect: PolicyAnswer | None
    agent: Mapping[str, Any]
    now: str | None = None
    usage: Mapping[UsageKey, Decimal]
    name: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """One policy document."""

    policy_id: str
    source: SourceText
    description: str = ""
    tools: tuple[str, ...] = ()
    """Tools and action types it applies to; empty for all."""
    agents: ConditionText | None = None
    """Condition over the agent; None for all."""
    args: Mapping[str, ArgumentType]
    mode: PolicyMode = PolicyMode.ENFORCE
    rules: tuple[PolicyRule, ...]
    tests: tuple[PolicyTest, ...] = ()

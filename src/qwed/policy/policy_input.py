"""Input and outcome of an evaluation: plain values, so that a decision can be made again from what was recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from qwed.model.decision import Risk
from qwed.model.effect import Effect
from qwed.model.facts import NO_FACTS, Facts
from qwed.policy.document import PolicyAnswer, UsageKey


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyTool:
    """The tool that is called; for an action without one, its name is empty."""

    name: str = ""
    server: str = ""
    registered: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyAgent:
    """The agent that acts."""

    agent_id: str
    name: str = ""
    type: str = "supervised"
    trust: int
    registered_trust: int
    """Level at which it was registered or raised by a person; an allow applies only at or above it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    principal: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyInput:
    """Everything that rules see of one action."""

    action_type: str
    tool: PolicyTool = PolicyTool()
    args: Mapping[str, Any] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    risk: Risk
    checks_failed: tuple[str, ...] = ()
    facts: Facts = NO_FACTS
    agent: PolicyAgent
    now: datetime
    """Time of the decision, with a time zone."""
    usage: Mapping[UsageKey, Decimal | int] = field(default_factory=dict)
    """Value of every counter in `CompiledPolicies.usage`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowOutcome:
    """What one policy in shadow mode would have answered."""

    policy_id: str
    rule_id: str
    then: PolicyAnswer
    is_error: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyOutcome:
    """What the rules of an organisation answer for one action."""

    then: PolicyAnswer | None = None
    """None if no rule matched: the tables of trust and risk decide."""
    policy_id: str = ""
    rule_id: str = ""
    message: str = ""
    approvers: tuple[str, ...] = ()
    """For `ask`: groups of which one person each must approve; empty for any approver."""
    overrides_trust: bool = False
    """For `ask`: True if a person may answer although the trust of the agent would refuse."""
    min_trust: int | None = None
    """For `allow`: trust from which it applies; None for the agent's level of registration."""
    names_unresolved: bool = False
    """For `allow`: True if a rule that matched names the effect UNRESOLVED."""
    is_error: bool = False
    """True if a rule could not be evaluated, which denies."""
    is_incomplete: bool = False
    """For `ask`: True if it asks only because the analysis could not finish."""
    shadow: tuple[ShadowOutcome, ...] = ()
    """What policies in shadow mode would have answered; it decides nothing."""


NO_OUTCOME = PolicyOutcome()

"""Snapshot: everything that one decision depends on, each value as it was at some moment after the request began.

A decision is a pure function of a request and a snapshot. A store makes one with `load`; a simulation or a test makes
one by hand.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from qwed.domain.access_lists import NO_LISTS, AccessLists
from qwed.domain.agent import Agent, AgentLimits, AgentStatus, Key
from qwed.domain.budget import EMPTY_USAGE, NO_COST, LimitExceeded, RequestCost, Usage, exceeded_limit
from qwed.domain.conversation import EMPTY_HISTORY, ConversationHistory, ConversationStep
from qwed.domain.policy_set import NO_POLICIES, PolicySet
from qwed.domain.usage_window import NO_USAGE_VALUES, UsageKey, UsageValues
from qwed.model import ErrorCode

NO_TOOLS: Mapping[str, bytes] = {}
NO_STEPS: frozenset[int] = frozenset()


class StoredAnswer(NamedTuple):
    """Stored answer for an idempotency key."""

    body_hash: str
    answer: bytes
    activity_id: str


class ChainEnd(NamedTuple):
    """Number of attestations in a chain, and the last one."""

    links: int = 0
    last: str | None = None


NO_CHAIN = ChainEnd()


class SnapshotKeys(msgspec.Struct, frozen=True, gc=False):
    """Names of the state that a decision reads."""

    agent_id: str
    key_prefix: str | None = None
    """Public prefix of the caller's API key."""
    conversation_id: str | None = None
    """Keyed name of the conversation."""
    idempotency_key: str | None = None
    """Keyed name of the idempotency key."""
    chain_id: str | None = None
    """Keyed name of the chain of attestations."""
    receiver_id: str | None = None
    """Receiver of a message, whose last step in the conversation is the state that the sender answers to."""
    organisation_id: str | None = None
    """Organisation of a sender that is not a registered agent."""
    now: float = 0.0
    usage: tuple[UsageKey, ...] = ()
    """Values of rolling usage that policies read about this call."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """State of one agent, its organisation and one conversation."""

    agent: Agent | None = None
    key: Key | None = None
    """The caller's API key, unless it is revoked."""
    halted: bool = False
    """True if the kill switch of the organisation is on."""
    tools: Mapping[str, bytes] = NO_TOOLS
    """The organisation's own tool definitions by name."""
    policies: PolicySet = NO_POLICIES
    """The organisation's policy set that is in force."""
    access_lists: AccessLists = NO_LISTS
    usage: Usage = EMPTY_USAGE
    usage_values: UsageValues = NO_USAGE_VALUES
    """Rolling usage, without this call; a value for every key that was asked for."""
    reserved: RequestCost = NO_COST
    """Cost that requests of this agent in flight have reserved."""
    history: ConversationHistory = EMPTY_HISTORY
    reserved_steps: frozenset[int] = NO_STEPS
    """Steps of the conversation that requests in flight have reserved."""
    receiver_fingerprint: str = ""
    """Fingerprint of the receiver's last message in the conversation."""
    stored_answer: StoredAnswer | None = None
    key_in_flight: bool = False
    """True if a request with the same idempotency key is in flight."""
    chain: ChainEnd = NO_CHAIN

    def refuses(
        self, step: ConversationStep, charge: RequestCost, limits: AgentLimits, now: float, max_steps: int
    ) -> ErrorCode | LimitExceeded | None:
        """Return the rule that refuses a step (LOOP-001 to LOOP-004) or its cost (spec 6.2), or None."""
        if not step.standalone:
            code = self.history.refuses_step(step.number, max_steps, auto_numbered=step.auto_numbered)
            if code is not None:
                return code
            if step.number in self.reserved_steps:
                return ErrorCode.REPLAY
            code = self.history.refuses_loop(step)
            if code is not None:
                return code
        return exceeded_limit(self.usage.counters.at(now), self.reserved, charge, limits)

    @property
    def stopped(self) -> bool:
        """True if the agent is not active or its whole organisation is halted."""
        return self.halted or (self.agent is not None and self.agent.status is not AgentStatus.ACTIVE)

    def next_step(self) -> int:
        """Return the lowest step number that is neither committed nor reserved."""
        number = self.history.last_step + 1
        while number in self.reserved_steps:
            number += 1
        return number

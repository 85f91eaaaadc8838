"""Model of one organisation: its keys, its kill switch, and its approvals. See `model.py`."""

from dataclasses import dataclass, field

from tests.property.model import (
    ANYONE,
    BAD_KEY,
    CONFLICT,
    MATRIX,
    OPTION,
    OWN_REQUEST,
    OWNERS,
    PEOPLE,
    ROLE,
    SUSPENDED,
    ModelAgent,
    ModelApproval,
    ModelDecision,
    Rules,
)


@dataclass
class ModelOrganisation:
    """One organisation: its keys, its kill switch and its approvals. Each operation returns its error code, or None."""

    now: float
    rules: Rules
    keys: dict[str, str] = field(default_factory=dict)
    """Role by name; a revoked key is in `revoked`."""
    revoked: set[str] = field(default_factory=set)
    halted: bool = False
    agents: list[ModelAgent] = field(default_factory=list)
    approvals: list[ModelApproval] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)

    def register(self, key: str, trust: int, limits: tuple[int | None, int | None, int | None]) -> str | None:
        """Register an agent; only an owner may grant the highest trust."""
        refusal = self._refuse(key, ANYONE if trust < 3 else OWNERS)
        if refusal is None:
            agent = ModelAgent(self, trust, self.now, *limits, registered_by=key)
            agent.turn(self.now)
            self.agents.append(agent)
            agent.record_change("registered", key, (trust,))
        return refusal

    def may_decide(self, key: str, agent: ModelAgent) -> bool:
        """Return True if a key decides on behalf of the agent: a member's only for those it registered."""
        return self.keys.get(key) != "member" or (agent.trust < 3 and agent.registered_by == key)

    def _refuse(self, key: str, roles: tuple[str, ...]) -> str | None:
        if key in self.revoked:
            return BAD_KEY
        return None if self.keys[key] in roles else ROLE

    def pass_time(self, seconds: float) -> None:
        """Advance the time: counters reset, and overdue approvals expire and release their cost."""
        self.now += seconds
        for agent in self.agents:
            agent.turn(self.now)
        for waiting in sorted(self.approvals, key=lambda each: each.expires):
            if waiting.state == "pending" and waiting.expires <= self.now:
                self._settle(waiting, "expired", "expired", "qwed")

    def _settle(self, waiting: ModelApproval, state: str, event: str, by: str, *levels: int) -> None:
        waiting.state = state
        agent = waiting.agent
        agent.held_cents -= waiting.cents
        agent.held_tokens -= waiting.tokens
        agent.record_change(event, by, levels)

    def approve(self, waiting: ModelApproval, key: str) -> str | None:
        """Approve with another key than the requester's, and only what would still be permitted (ruling 4.10)."""
        refusal = self._refuse(key, PEOPLE) or self._refuse_own(waiting, key)
        if refusal is not None:
            return refusal
        agent = waiting.agent
        if not agent.active or waiting.erased:
            return CONFLICT
        if waiting.kind == "trust_elevation":
            return self._elevate(waiting, key)
        if MATRIX[agent.trust][waiting.risk] == "DENIED":
            return CONFLICT
        self._settle(waiting, "approved", "approved", key)
        agent.spend(waiting.cents, waiting.tokens)
        agent.evidence_counts.attestations += 1
        return None

    def _refuse_own(self, waiting: ModelApproval, key: str) -> str | None:
        if waiting.state != "pending":
            return CONFLICT
        others = self.keys.keys() - self.revoked - {key}
        return OWN_REQUEST if waiting.asked_by == key and others else None

    def _elevate(self, waiting: ModelApproval, key: str) -> str | None:
        agent, (before, after) = waiting.agent, waiting.levels
        if agent.trust != before:
            return CONFLICT
        if after == 3 and self.keys[key] != "owner":
            return ROLE
        if not agent.has_proven_itself():
            return CONFLICT
        agent.reach(after)
        self._settle(waiting, "approved", "trust_raised", key, before, after)
        return None

    def reject(self, waiting: ModelApproval, key: str) -> str | None:
        """Reject a request; the requester may do so too."""
        refusal = self._refuse(key, PEOPLE)
        if refusal is not None:
            return refusal
        if waiting.state != "pending":
            return CONFLICT
        self._settle(waiting, "rejected", "rejected", key)
        # A rejection counts against the agent; an expiry does not.
        if waiting.kind == "action":
            waiting.agent.evidence_counts.reject()
        return None

    def request_trust(self, agent: ModelAgent, to: int, by: str) -> str | None:
        """Request one level, on evidence, one request at a time (spec 8.2)."""
        if by in self.revoked:
            return BAD_KEY
        if to != agent.trust + 1 or to > 3:
            return OPTION
        if not agent.active:
            return SUSPENDED
        asked = any(w.agent is agent and w.kind != "action" and w.state == "pending" for w in self.approvals)
        if asked or not agent.has_proven_itself():
            return CONFLICT
        expires = self.now + self.rules.approval_seconds
        self.approvals.append(ModelApproval(agent, "trust_elevation", by, expires, levels=(agent.trust, to)))
        agent.record_change("trust_requested", by, (agent.trust, to))
        return None

    def reduce_trust(self, agent: ModelAgent, to: int, key: str) -> str | None:
        """Lower the trust at once."""
        if key in self.revoked:
            return BAD_KEY
        if to >= agent.trust:
            return OPTION
        refusal = self._refuse(key, PEOPLE)
        if refusal is None:
            agent.record_change("trust_lowered", key, (agent.trust, to))
            agent.reach(to)
        return refusal

    def stop(self, agent: ModelAgent, event: str, key: str) -> str | None:
        """Suspend an agent or file a complaint, with any key; a complaint is always recorded."""
        refusal = self._refuse(key, ANYONE)
        if refusal is None and (event == "complaint" or not agent.suspended):
            agent.suspended = True
            agent.record_change(event, key)
        return refusal

    def reactivate(self, agent: ModelAgent, key: str) -> str | None:
        """Reactivate a suspended agent; it is an error if only the kill switch stops it."""
        refusal = self._refuse(key, PEOPLE)
        if refusal is None and self.halted and not agent.suspended:
            return CONFLICT
        if refusal is None and agent.suspended:
            agent.suspended = False
            agent.record_change("reactivated", key)
        return refusal

    def rotate(self, agent: ModelAgent, key: str) -> str | None:
        """Issue a new token."""
        refusal = self._refuse(key, PEOPLE)
        if refusal is None:
            agent.record_change("token_rotated", key)
        return refusal

    def halt(self, halt: bool, key: str) -> str | None:
        """Set or release the kill switch: any key may set it, people release it."""
        refusal = self._refuse(key, ANYONE if halt else PEOPLE)
        if refusal is None and self.halted is not halt:
            self.halted = halt
            self.changes.append(("halted" if halt else "resumed", key))
        return refusal

    def add_key(self, name: str, role: str, key: str) -> str | None:
        """Create a key as an owner."""
        refusal = self._refuse(key, OWNERS)
        if refusal is None:
            self.keys[name] = role
            self.changes.append(("key_added", key))
        return refusal

    def revoke(self, name: str, key: str) -> str | None:
        """Revoke a key as an owner, once, and never the last owner key."""
        refusal = self._refuse(key, OWNERS)
        if refusal is not None:
            return refusal
        owners = [each for each, role in self.keys.items() if role == "owner" and each not in self.revoked]
        if name in self.revoked or owners == [name]:
            return CONFLICT
        self.revoked.add(name)
        self.changes.append(("key_revoked", key))
        return None

    def erase(self, key: str) -> str | None:
        """Erase all content about the principal, whom all agents share."""
        refusal = self._refuse(key, OWNERS)
        if refusal is None:
            for agent in self.agents:
                agent.erased = len(agent.log)
            for waiting in self.approvals:
                waiting.erased = True
        return refusal

    def execute(self, agent: ModelAgent, action: ModelDecision, by: str) -> str | None:
        """Report an execution once, of a permitted action; others are refused and recorded (spec 7.1)."""
        if by in self.revoked:
            return BAD_KEY
        if action.now not in ("APPROVED", "CORRECTED"):
            agent.record_change("executed_unpermitted", by)
            return CONFLICT
        if action.executed:
            return CONFLICT
        action.executed = True
        agent.record_change("executed", by)
        return None

"""The model of one organisation: its people, its keys, its kill switch, and what waits for them. See `model.py`."""

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
    Action,
    ModelAgent,
    Rules,
    Waiting,
)


@dataclass
class House:
    """One organisation: its keys, its kill switch, what waits for people. Each verb gives its error code, if any."""

    now: float
    rules: Rules
    keys: dict[str, str] = field(default_factory=dict)
    """Role by name; a revoked key is in `revoked`."""
    revoked: set[str] = field(default_factory=set)
    halted: bool = False
    agents: list[ModelAgent] = field(default_factory=list)
    approvals: list[Waiting] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)

    def register(self, key: str, trust: int, limits: tuple[int | None, int | None, int | None]) -> str | None:
        """A new agent; the highest trust is an owner's to give."""
        refusal = self._refuse(key, ANYONE if trust < 3 else OWNERS)
        if refusal is None:
            agent = ModelAgent(self, trust, self.now, *limits)
            agent.turn(self.now)
            self.agents.append(agent)
            agent.happens("registered", key, (trust,))
        return refusal

    def _refuse(self, key: str, roles: tuple[str, ...]) -> str | None:
        if key in self.revoked:
            return BAD_KEY
        return None if self.keys[key] in roles else ROLE

    def pass_time(self, seconds: float) -> None:
        """Hours and days turn over; what nobody decided about in time has run out, and frees what it held."""
        self.now += seconds
        for agent in self.agents:
            agent.turn(self.now)
        for waiting in sorted(self.approvals, key=lambda each: each.expires):
            if waiting.state == "pending" and waiting.expires <= self.now:
                self._settle(waiting, "expired", "expired", "qwed")

    def _settle(self, waiting: Waiting, state: str, event: str, by: str, *levels: int) -> None:
        waiting.state = state
        agent = waiting.agent
        agent.held_cents -= waiting.cents
        agent.held_tokens -= waiting.tokens
        agent.happens(event, by, levels)

    def approve(self, waiting: Waiting, key: str) -> str | None:
        """Ruling 4.10: another key than the one that asked, and only what would still be let through."""
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
        agent.merit.attestations += 1
        return None

    def _refuse_own(self, waiting: Waiting, key: str) -> str | None:
        if waiting.state != "pending":
            return CONFLICT
        others = self.keys.keys() - self.revoked - {key}
        return OWN_REQUEST if waiting.asked_by == key and others else None

    def _elevate(self, waiting: Waiting, key: str) -> str | None:
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

    def reject(self, waiting: Waiting, key: str) -> str | None:
        """Whoever asked may also take it back."""
        refusal = self._refuse(key, PEOPLE)
        if refusal is not None:
            return refusal
        if waiting.state != "pending":
            return CONFLICT
        self._settle(waiting, "rejected", "rejected", key)
        # What a person would not let happen speaks against the agent; what nobody looked at does not.
        if waiting.kind == "action":
            waiting.agent.merit.reject()
        return None

    def request_trust(self, agent: ModelAgent, to: int, by: str) -> str | None:
        """Spec 8.2: one level at a time, on evidence, one request at a time."""
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
        self.approvals.append(Waiting(agent, "trust_elevation", by, expires, levels=(agent.trust, to)))
        agent.happens("trust_requested", by, (agent.trust, to))
        return None

    def reduce_trust(self, agent: ModelAgent, to: int, key: str) -> str | None:
        """People lower trust at once."""
        if key in self.revoked:
            return BAD_KEY
        if to >= agent.trust:
            return OPTION
        refusal = self._refuse(key, PEOPLE)
        if refusal is None:
            agent.happens("trust_lowered", key, (agent.trust, to))
            agent.reach(to)
        return refusal

    def stop(self, agent: ModelAgent, event: str, key: str) -> str | None:
        """Any key may stop an agent or complain about it; a complaint is always written down."""
        refusal = self._refuse(key, ANYONE)
        if refusal is None and (event == "complaint" or not agent.suspended):
            agent.suspended = True
            agent.happens(event, key)
        return refusal

    def reactivate(self, agent: ModelAgent, key: str) -> str | None:
        """People let it go on; where all are stopped and not this one, that is not what would help."""
        refusal = self._refuse(key, PEOPLE)
        if refusal is None and self.halted and not agent.suspended:
            return CONFLICT
        if refusal is None and agent.suspended:
            agent.suspended = False
            agent.happens("reactivated", key)
        return refusal

    def rotate(self, agent: ModelAgent, key: str) -> str | None:
        """People give it a new token."""
        refusal = self._refuse(key, PEOPLE)
        if refusal is None:
            agent.happens("token_rotated", key)
        return refusal

    def halt(self, halt: bool, key: str) -> str | None:
        """The kill switch: anyone throws it, people put it back."""
        refusal = self._refuse(key, ANYONE if halt else PEOPLE)
        if refusal is None and self.halted is not halt:
            self.halted = halt
            self.changes.append(("halted" if halt else "resumed", key))
        return refusal

    def add_key(self, name: str, role: str, key: str) -> str | None:
        """An owner makes a key."""
        refusal = self._refuse(key, OWNERS)
        if refusal is None:
            self.keys[name] = role
            self.changes.append(("key_added", key))
        return refusal

    def revoke(self, name: str, key: str) -> str | None:
        """An owner revokes a key, once, and never the last owner's."""
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
        """An owner has everything forgotten that was said about the principal, whom all agents have in common."""
        refusal = self._refuse(key, OWNERS)
        if refusal is None:
            for agent in self.agents:
                agent.erased = len(agent.log)
            for waiting in self.approvals:
                waiting.erased = True
        return refusal

    def execute(self, agent: ModelAgent, action: Action, by: str) -> str | None:
        """Spec 7.1: told once, of what was permitted; the rest is refused and written down."""
        if by in self.revoked:
            return BAD_KEY
        if action.now not in ("APPROVED", "CORRECTED"):
            agent.happens("executed_unpermitted", by)
            return CONFLICT
        if action.executed:
            return CONFLICT
        action.executed = True
        agent.happens("executed", by)
        return None

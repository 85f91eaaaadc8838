"""Inputs of an agent's trust: its recent behaviour, the rules that lower trust (spec 8.3, ruling 4.2), and the
evidence for a higher level (spec 8.2).

Only decisions count. A refusal before a decision, and a failure of the server, do not.
"""

from enum import Enum, StrEnum

import msgspec
from msgspec.structs import replace

from qwed.model.clock import HOUR

WINDOW = 100
MIN_DECISIONS = 20
"""Decisions needed before the denial rate is checked."""
MAX_DENIAL_RATE = 0.10
MAX_EXCEEDED_PER_HOUR = 5


class BehaviourFlag(Enum):
    """Effect of one decision on the behaviour window; the value is the stored letter."""

    NONE = ""
    CLEAN = "."
    DENIED = "d"
    REFUSED = "r"
    """Denied for what the agent may not do yet, not for what it does wrong: no rule counts it (ruling 4.24)."""
    EXCEEDED = "e"
    VIOLATION = "v"

    letter: str
    is_denial: bool
    """True if it counts as one of the repeated denials."""
    is_denied: bool
    """True if the action was denied, for whatever reason."""
    is_action: bool
    """True if an action was decided: an exceeded budget is neither a safe action nor a denial."""


for _flag in BehaviourFlag:
    # Attributes, because hashing a member is slow and every decision has a flag.
    _flag.letter = _flag.value
    _flag.is_denial = _flag in (BehaviourFlag.DENIED, BehaviourFlag.VIOLATION)
    _flag.is_denied = _flag.is_denial or _flag is BehaviourFlag.REFUSED
    _flag.is_action = _flag.is_denied or _flag is BehaviourFlag.CLEAN


class DegradationRule(StrEnum):
    """Rules of spec 8.3 that lower trust automatically."""

    SECURITY = "security_policy_violation"
    DENIALS = "repeated_denials"
    BUDGET = "budget_abuse"


_EXCEEDED, _VIOLATION, _REFUSED = BehaviourFlag.EXCEEDED, BehaviourFlag.VIOLATION, BehaviourFlag.REFUSED
LEVELS_LOST: dict[DegradationRule, int] = {
    DegradationRule.SECURITY: 2,
    DegradationRule.DENIALS: 1,
    DegradationRule.BUDGET: 1,
}
"""Trust levels lost per rule (spec 8.3)."""


class BehaviourWindow(msgspec.Struct, frozen=True, gc=False):
    """Recent behaviour of an agent, as stored."""

    recent_flags: str = ""
    """Flags of the last decisions, oldest first."""
    denial_cooldown: int = 0
    """Decisions left before the denial rule applies again."""
    exceeded_times: str = ""
    """Times the budget was exceeded since the rule last applied, in milliseconds, separated by blanks."""

    def after(self, flag: BehaviourFlag, at: float) -> tuple["BehaviourWindow", tuple[DegradationRule, ...]]:
        """Return the window after this decision, and the rules it broke."""
        if flag is _REFUSED:
            # Not in the window at all: refusals must not make up for denials either.
            return self, ()
        flags = (self.recent_flags + flag.letter)[-WINDOW:]
        cooldown = self.denial_cooldown - 1 if self.denial_cooldown else 0
        rules: tuple[DegradationRule, ...] = (DegradationRule.SECURITY,) if flag is _VIOLATION else ()
        # Without a denial the rate does not rise: it is checked only when the rule first applies, or applies again.
        is_checked = cooldown == 0 and (flag.is_denial or self.denial_cooldown or len(flags) == MIN_DECISIONS)
        if is_checked and _too_many_denials(flags):
            rules, cooldown = (*rules, DegradationRule.DENIALS), WINDOW
        if flag is not _EXCEEDED:
            return BehaviourWindow(flags, cooldown, self.exceeded_times), rules
        times = [*_within_an_hour(self.exceeded_times, at), str(int(at * 1000))]
        if len(times) >= MAX_EXCEEDED_PER_HOUR:
            # Once per window: the next five start a new count.
            return BehaviourWindow(flags, cooldown, ""), (*rules, DegradationRule.BUDGET)
        return BehaviourWindow(flags, cooldown, " ".join(times)), rules


def _too_many_denials(recent: str) -> bool:
    denied = recent.count("d") + recent.count("v")
    return len(recent) >= MIN_DECISIONS and denied > MAX_DENIAL_RATE * len(recent)


def _within_an_hour(times: str, at: float) -> list[str]:
    earliest = (at - HOUR) * 1000
    return [time for time in times.split() if int(time) > earliest]


NO_BEHAVIOUR = BehaviourWindow()


class TrustEvidence(msgspec.Struct, frozen=True, gc=False):
    """Counts since the last change of the trust level, as stored. A new level, up or down, starts new evidence."""

    level_since: float = 0.0
    """Time of the last change of the level; 0 for an agent that still has its first one."""
    actions: int = 0
    denied: int = 0
    """Denials by the server or by a person."""
    attestations: int = 0

    def after(self, flag: BehaviourFlag, attested: bool) -> "TrustEvidence":
        """Return the evidence after this decision."""
        if not flag.is_action:
            return self
        return TrustEvidence(
            self.level_since, self.actions + 1, self.denied + flag.is_denied, self.attestations + attested
        )

    def after_resolution(self, state: str) -> "TrustEvidence":
        """Return the evidence once a pending action, counted when it was requested, is resolved."""
        if state == "approved":
            return replace(self, attestations=self.attestations + 1)
        if state != "rejected":
            return self
        # An action requested at another level may be rejected at this one: never more denials than actions.
        return replace(self, denied=min(self.denied + 1, self.actions))


NO_EVIDENCE = TrustEvidence()

"""State of a conversation, and the step and loop rules that use it (spec 9.2 and 9.3, guide LOOP-004)."""

import msgspec

from qwed.model import Decision, ErrorCode

MAX_REPEATS = 2
WINDOW = 20
MAX_SAME_STATE = 2

_APPROVED = Decision.APPROVED


class ConversationStep(msgspec.Struct, frozen=True, gc=False):
    """Action with its number in a conversation."""

    number: int
    fingerprint: str
    state_fingerprint: str | None = None
    auto_numbered: bool = False
    """True if the server chose the number, as the next free one."""
    state_observed: bool = False
    """True if the server observed the state itself: then the state alone tells a loop from progress."""
    standalone: bool = False
    """True outside a conversation: then it has no history."""


class ConversationHistory(msgspec.Struct, frozen=True, gc=False):
    """Committed steps of a conversation, as stored. Each rule is checked twice: early, to refuse cheaply, and again at
    commit, because other steps may have committed meanwhile."""

    last_step: int = 0
    steps: int = 0
    fingerprint: str = ""
    repeats: int = 0
    recent_states: str = ""
    """Last fingerprints of action and state, oldest first, separated by blanks."""

    def refuses_step(self, number: int, max_steps: int, *, auto_numbered: bool = False) -> ErrorCode | None:
        """Return the refusal of a step number (LOOP-001, LOOP-002), or None."""
        # Numbers that the server chose have gaps where steps overtook each other: only the steps are counted.
        if self.steps >= max_steps or (number > max_steps and not auto_numbered):
            return ErrorCode.STEP_LIMIT
        return ErrorCode.REPLAY if number <= self.last_step else None

    def refuses_loop(self, step: ConversationStep) -> ErrorCode | None:
        """Return the refusal of a repeated step (LOOP-003, LOOP-004), or None."""
        if step.fingerprint == self.fingerprint and self.repeats >= MAX_REPEATS and not step.state_observed:
            return ErrorCode.REPETITION
        if (
            step.state_fingerprint is not None
            and self.recent_states.split().count(step.state_fingerprint) >= MAX_SAME_STATE
        ):
            return ErrorCode.NO_PROGRESS
        return None

    def after(self, step: ConversationStep, decision: Decision) -> "ConversationHistory":
        """Return the history after this step; only APPROVED steps count for LOOP-004."""
        states = self.recent_states
        if step.state_fingerprint is not None and decision is _APPROVED:
            states = " ".join([*states.split(), step.state_fingerprint][-WINDOW:])
        repeats = self.repeats + 1 if step.fingerprint == self.fingerprint else 1
        return ConversationHistory(max(step.number, self.last_step), self.steps + 1, step.fingerprint, repeats, states)


EMPTY_HISTORY = ConversationHistory()

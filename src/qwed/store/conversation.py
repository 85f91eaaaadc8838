"""Spec 9.2 and 9.3, guide LOOP-004: what a conversation remembers, and what it refuses because of it."""

from dataclasses import dataclass
from typing import NamedTuple

from qwed.words import Decision, ErrorCode

MAX_REPEATS = 2
WINDOW = 20
MAX_SAME_STATE = 2

_APPROVED = Decision.APPROVED


class Step(NamedTuple):
    """One action at its place in a conversation."""

    number: int
    fingerprint: str
    state_fingerprint: str | None = None
    allotted: bool = False
    """Whether the store chooses its number: then it commits after a later one as well."""
    witnessed: bool = False
    """Whether we saw the state ourselves: then it alone tells a loop from progress."""
    alone: bool = False
    """Whether it stands in no conversation: then there is nothing to remember."""


class Past(NamedTuple):
    """What was committed, as it stands on disk. Every question is asked of it twice: early, to refuse cheaply, and
    again when a step commits, because others may have committed meanwhile."""

    last_step: int = 0
    steps: int = 0
    fingerprint: str = ""
    repeats: int = 0
    window: str = ""
    """The last fingerprints of action and state, oldest first, with a blank between them."""

    def refuses_step(self, number: int, max_steps: int, *, allotted: bool = False) -> ErrorCode | None:
        """LOOP-001 and LOOP-002, from the past alone; a number that was allotted is nobody else's."""
        if number > max_steps or self.steps >= max_steps:
            return ErrorCode.STEP_LIMIT
        if number <= self.last_step and not allotted:
            return ErrorCode.REPLAY
        return None

    def refuses_loop(self, step: Step) -> ErrorCode | None:
        """LOOP-003 and LOOP-004."""
        if step.fingerprint == self.fingerprint and self.repeats >= MAX_REPEATS and not step.witnessed:
            return ErrorCode.REPETITION
        if step.state_fingerprint is not None and self.window.split().count(step.state_fingerprint) >= MAX_SAME_STATE:
            return ErrorCode.NO_PROGRESS
        return None

    def after(self, step: Step, decision: Decision) -> "Past":
        """The past once this step has committed; only APPROVED is remembered for LOOP-004."""
        window = self.window
        if step.state_fingerprint is not None and decision is _APPROVED:
            window = " ".join([*window.split(), step.state_fingerprint][-WINDOW:])
        repeats = self.repeats + 1 if step.fingerprint == self.fingerprint else 1
        return Past(max(step.number, self.last_step), self.steps + 1, step.fingerprint, repeats, window)


NO_PAST = Past()


@dataclass(slots=True)
class Conversation:
    """A conversation in memory."""

    past: Past = NO_PAST
    reserved: int = 0
    """How many requests hold a step of it; while any does, it stays in memory."""
    written: int = 0
    """Which write carries this state; only what is durable may be forgotten."""

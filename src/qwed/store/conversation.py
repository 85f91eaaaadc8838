"""Spec 9.2 and 9.3, guide LOOP-004: what a conversation remembers, and what it refuses because of it."""

from dataclasses import dataclass
from typing import NamedTuple

from qwed.words import Decision, ErrorCode

MAX_REPEATS = 2
WINDOW = 20
MAX_SAME_STATE = 2


class Step(NamedTuple):
    """One action at its place in a conversation."""

    number: int
    fingerprint: str
    state_fingerprint: str | None = None


@dataclass(slots=True)
class Conversation:
    """Its committed past. Every question is asked of it twice: early, to refuse cheaply, and again when it commits."""

    last_step: int = 0
    steps: int = 0
    fingerprint: str = ""
    repeats: int = 0
    window: tuple[str, ...] = ()
    reserved: int = 0
    """How many requests hold a step of it; while any does, it stays in memory."""
    written: int = 0
    """Which write carries this state; only what is durable may be forgotten."""

    def refuses_step(self, number: int, max_steps: int) -> ErrorCode | None:
        """LOOP-001 and LOOP-002, from the past alone."""
        if number > max_steps or self.steps >= max_steps:
            return ErrorCode.STEP_LIMIT
        if number <= self.last_step:
            return ErrorCode.REPLAY
        return None

    def refuses_loop(self, step: Step) -> ErrorCode | None:
        """LOOP-003 and LOOP-004."""
        if step.fingerprint == self.fingerprint and self.repeats >= MAX_REPEATS:
            return ErrorCode.REPETITION
        if step.state_fingerprint is not None and self.window.count(step.state_fingerprint) >= MAX_SAME_STATE:
            return ErrorCode.NO_PROGRESS
        return None

    def commit(self, step: Step, decision: Decision) -> None:
        """Advance; only APPROVED is remembered for LOOP-004."""
        self.repeats = self.repeats + 1 if step.fingerprint == self.fingerprint else 1
        self.fingerprint = step.fingerprint
        self.last_step = step.number
        self.steps += 1
        if step.state_fingerprint is not None and decision is Decision.APPROVED:
            self.window = (*self.window, step.state_fingerprint)[-WINDOW:]

    def past(self) -> tuple[int, int, str, int, tuple[str, ...], int]:
        """Everything it remembers, for `restore`."""
        return self.last_step, self.steps, self.fingerprint, self.repeats, self.window, self.written

    def restore(self, past: tuple[int, int, str, int, tuple[str, ...], int]) -> None:
        """Remember `past` and nothing since."""
        self.last_step, self.steps, self.fingerprint, self.repeats, self.window, self.written = past

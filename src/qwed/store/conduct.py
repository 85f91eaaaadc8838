"""Spec 8.3 and ruling 4.2: how an agent has behaved of late, and which rules of conduct it broke.

Only what we decided counts. A refusal before there was a decision, and a failure of our own, say nothing about it.
"""

from enum import Enum, StrEnum
from typing import NamedTuple

from qwed.words.clock import HOUR

WINDOW = 100
ENOUGH = 20
"""Fewer decisions than this say nothing about a rate."""
MOST_DENIED = 0.10
ABUSES = 5


class Mark(Enum):
    """What one answer says about conduct; the letter is how it is kept."""

    NONE = ""
    CLEAN = "."
    DENIED = "d"
    EXCEEDED = "e"
    VIOLATION = "v"

    letter: str
    denies: bool
    """Whether it counts against the agent."""
    counts: bool
    """Whether there was an action at all: a full budget is neither safe operation nor a denial."""


for _mark in Mark:
    # Attributes, because hashing a member is a call of its own, and every decision has a mark.
    _mark.letter = _mark.value
    _mark.denies = _mark in (Mark.DENIED, Mark.VIOLATION)
    _mark.counts = _mark.denies or _mark is Mark.CLEAN


class Offence(StrEnum):
    """Spec 8.3, the rows that lower trust by themselves."""

    SECURITY = "security_policy_violation"
    DENIALS = "repeated_denials"
    BUDGET = "budget_abuse"


_EXCEEDED, _VIOLATION = Mark.EXCEEDED, Mark.VIOLATION
PENALTY: dict[Offence, int] = {Offence.SECURITY: 2, Offence.DENIALS: 1, Offence.BUDGET: 1}
"""Spec 8.3: levels lost."""


class Conduct(NamedTuple):
    """What is remembered of an agent's decisions, as it stands on disk."""

    recent: str = ""
    """The marks of the last decisions, oldest first."""
    rest: int = 0
    """How many more decisions pass before the rule of denials is asked again."""
    exceeded: str = ""
    """When the budget was last exceeded, in whole milliseconds with a blank between, since the rule last fired."""

    def after(self, mark: Mark, at: float) -> tuple["Conduct", tuple[Offence, ...]]:
        """The conduct once this decision counts, and the rules it broke."""
        recent = (self.recent + mark.letter)[-WINDOW:]
        rest = self.rest - 1 if self.rest else 0
        offences: tuple[Offence, ...] = (Offence.SECURITY,) if mark is _VIOLATION else ()
        # What is no denial raises no rate: it matters only where the rule is asked for the first time, or again.
        asked = rest == 0 and (mark.denies or self.rest or len(recent) == ENOUGH)
        if asked and _too_many_denials(recent):
            offences, rest = (*offences, Offence.DENIALS), WINDOW
        if mark is not _EXCEEDED:
            return Conduct(recent, rest, self.exceeded), offences
        times = [*_within_an_hour(self.exceeded, at), str(int(at * 1000))]
        if len(times) >= ABUSES:
            # Once per window: the next five count anew.
            return Conduct(recent, rest, ""), (*offences, Offence.BUDGET)
        return Conduct(recent, rest, " ".join(times)), offences


def _too_many_denials(recent: str) -> bool:
    denied = recent.count("d") + recent.count("v")
    return len(recent) >= ENOUGH and denied > MOST_DENIED * len(recent)


def _within_an_hour(times: str, at: float) -> list[str]:
    earliest = (at - HOUR) * 1000
    return [time for time in times.split() if int(time) > earliest]


CLEAN_RECORD = Conduct()

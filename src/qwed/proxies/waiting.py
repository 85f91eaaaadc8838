"""Questions that wait for a person, kept between sessions: the same call made again finds its answer, and once only."""

from typing import NamedTuple

from qwed_sdk.hook.steps import held, name_of


class Noted(NamedTuple):
    """A question that was left to a person."""

    action_id: str
    approval_id: str


class Waiting:
    """What one agent waits for. Files are touched only where somebody waits: most calls are answered at once."""

    def __init__(self, protocol: str, *whose: str) -> None:
        self._name = name_of(protocol, *whose)
        with held(self._name) as kept:
            self._known = dict(kept.waiting)

    @property
    def empty(self) -> bool:
        """Whether nobody is waited for."""
        return not self._known

    def noted(self, question: str) -> Noted | None:
        """The open question of this name."""
        found = self._known.get(question)
        return None if found is None else Noted(*found.split(" ", 1))

    def note(self, question: str, noted: Noted) -> None:
        """Keep it."""
        self._known[question] = " ".join(noted)
        with held(self._name) as kept:
            kept.waiting.pop(question, None)
            kept.waiting[question] = " ".join(noted)
            kept.save()

    def claim(self, question: str, action_id: str) -> bool:
        """Take the answer, which nobody can take a second time; whether it was still there."""
        self._known.pop(question, None)
        with held(self._name) as kept:
            mine = kept.waiting.get(question, "").split(" ", 1)[0] == action_id
            if mine:
                del kept.waiting[question]
                kept.save()
        return mine

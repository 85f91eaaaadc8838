"""What is refused of a pair that is over its rate leaves one leaf a minute; the others are counted, not written.

Everything else that becomes of a message is a leaf of its own. A flood would otherwise fill the disk with the word no.
"""

from collections import OrderedDict
from threading import Lock
from typing import Any, NamedTuple

from qwed.kernel.messages.message import Carried, Ruled

REMEMBERED = 10_000
MINUTE = 60.0

Place = tuple[str, str, str]
"""Organisation, sender and receiver."""


class _Told(NamedTuple):
    activity_id: str
    log_index: int
    at: float


class Floods:
    """The floods of late. Safe to use from any thread."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[Place, str], _Told] = OrderedDict()
        self._unsaid: OrderedDict[Place, int] = OrderedDict()
        self._lock = Lock()

    def join(self, place: Place, why: str, ruled: Ruled, now: float) -> Carried | None:
        """The leaf that stands for one more refusal, which is counted; None where there is none of this minute."""
        with self._lock:
            told = self._told.get((place, why))
            if told is None or not 0 <= now - told.at < MINUTE:
                return None
            self._unsaid[place] = self._unsaid.get(place, 0) + 1
            _forget_oldest(self._unsaid)
            return Carried(ruled, *told)

    def unsaid(self, place: Place) -> int:
        """How many were counted that no leaf tells of; the next leaf of the pair does, so they are counted no more."""
        if not self._unsaid:
            return 0
        with self._lock:
            return self._unsaid.pop(place, 0)

    def begin(self, place: Place, why: str, carried: Carried) -> None:
        """A refusal that is durable now, and stands for those of the same minute and reason."""
        with self._lock:
            self._told[place, why] = _Told(carried.activity_id, carried.log_index, carried.at)
            self._told.move_to_end((place, why))
            _forget_oldest(self._told)


def _forget_oldest(known: OrderedDict[Any, Any]) -> None:
    if len(known) > REMEMBERED:
        known.popitem(last=False)

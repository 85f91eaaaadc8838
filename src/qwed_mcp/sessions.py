"""Which sessions of the protocol a caller has open over HTTP: one caller's many leave room for another's.

Clients often leave without ending theirs. So whoever opens one too many loses the one they have not used for longest.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

MAX_OF_CALLER = 64
MAX_CALLERS = 1_024


class Sessions:
    """Everything here runs on the event loop, so nothing is locked."""

    def __init__(self, most: int = MAX_OF_CALLER) -> None:
        self._most = most
        self._of: OrderedDict[str, OrderedDict[str, int]] = OrderedDict()
        """By caller: ids with the number of their requests under way, the one that was used last at the end."""

    def opened(self, caller: str, session_id: str) -> None:
        """Remember a session of the caller."""
        self._of.setdefault(caller, OrderedDict())[session_id] = 0
        self._of.move_to_end(caller)
        while len(self._of) > MAX_CALLERS:
            self._of.popitem(last=False)

    def ended(self, caller: str, session_id: str) -> None:
        """Forget it."""
        self._own(caller).pop(session_id, None)

    def too_many(self, caller: str) -> str | None:
        """The one to end before the caller opens another: the longest unused, and rather one that nobody waits on."""
        own = self._own(caller)
        if len(own) < self._most:
            return None
        return next((each for each, under_way in own.items() if not under_way), next(iter(own)))

    @contextmanager
    def used(self, caller: str, session_id: str) -> Iterator[None]:
        """While a request of it is answered."""
        own = self._own(caller)
        self._count(own, session_id, 1)
        try:
            yield
        finally:
            self._count(own, session_id, -1)

    def _own(self, caller: str) -> OrderedDict[str, int]:
        return self._of.get(caller, OrderedDict())

    @staticmethod
    def _count(own: OrderedDict[str, int], session_id: str, by: int) -> None:
        if session_id in own:
            own[session_id] += by
            own.move_to_end(session_id)

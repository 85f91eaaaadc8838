"""What a server that is one of several knows of the others on its machine, and shows them of itself."""

from collections.abc import Sequence

import msgspec

from qwed.api.slates import Slate


class Manned(msgspec.Struct, frozen=True):
    """How many workers there are, of those there are to be."""

    up: int
    of: int


class Crew:
    """Worker `number` of those that have these slates: the supervisor's first, then one for each worker."""

    def __init__(self, number: int, descriptors: Sequence[int]) -> None:
        self.number = number
        supervisor, *workers = (Slate(descriptor) for descriptor in descriptors)
        self._supervisor = supervisor
        self.own = workers.pop(number)
        self.others = workers

    @property
    def manned(self) -> Manned:
        """What the supervisor wrote last."""
        text = self._supervisor.read()
        return msgspec.json.decode(text, type=Manned) if text else Manned(0, 1 + len(self.others))

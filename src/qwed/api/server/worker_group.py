"""Shared-memory view of the sibling worker processes of one server."""

from collections.abc import Sequence

import msgspec

from qwed.api.server.shared_memory import SharedCell


class WorkerCount(msgspec.Struct, frozen=True):
    """Running workers and configured workers."""

    up: int
    of: int


class WorkerGroup:
    """Worker `number` of a group; the first descriptor is the supervisor's cell, then one per worker."""

    def __init__(self, number: int, descriptors: Sequence[int]) -> None:
        self.number = number
        supervisor, *workers = (SharedCell(descriptor) for descriptor in descriptors)
        self._supervisor = supervisor
        self.own = workers.pop(number)
        self.others = workers

    @property
    def worker_count(self) -> WorkerCount:
        """Last counts written by the supervisor."""
        text = self._supervisor.read()
        return msgspec.json.decode(text, type=WorkerCount) if text else WorkerCount(0, 1 + len(self.others))

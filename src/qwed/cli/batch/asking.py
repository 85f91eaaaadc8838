"""Who is asked about the items: a server, or engines of this process that keep nothing for long."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from qwed.cli.asking import Where, engines_told, is_local, open_engines, server
from qwed.cli.batch.running import Jobs

if TYPE_CHECKING:
    from qwed.gate import Gate

MOST_KEPT = 32 << 20
"""Bytes of jobs that one Gate is given."""
_EACH = 1 << 10
"""What an answer takes beside its item."""


@contextmanager
def jobs(where: Where, *, fail_fast: bool) -> Iterator[Jobs]:
    """Whoever is meant; what they refuse ends the command, but for a job that is refused as it stands."""
    if is_local(where):
        from qwed.gate import GateError

        with engines_told(), closing(Gates()) as gates:
            yield Jobs(gates.verify_batch, gates.get_batch_status, GateError, fail_fast)
        return
    from qwed_sdk import QWEDRequestError

    with server(where) as client:
        yield Jobs(client.verify_batch, client.get_batch_status, QWEDRequestError, fail_fast)


class Gates:
    """A Gate, and now and then a new one: it keeps the answers of its jobs, and a batch may be of any length."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept = 0
        self._gate: Gate | None = None

    def verify_batch(self, items: list[dict[str, Any]], options: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """One job."""
        self._kept += len(json.dumps(items)) + _EACH * len(items)
        if self._kept > self._most:
            self.close()
        if self._gate is None:
            self._gate = open_engines(watched=False)
        return self._gate.verify_batch(items, options)

    def get_batch_status(self, job_id: str) -> Mapping[str, Any]:
        """A job as it stands, while it is the last one."""
        if self._gate is None:
            raise LookupError(job_id)
        return self._gate.get_batch_status(job_id)

    def close(self) -> None:
        """End the engines; the next job opens them anew."""
        gate, self._gate, self._kept = self._gate, None, 0
        if gate is not None:
            gate.close()

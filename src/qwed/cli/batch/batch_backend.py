"""Backend of a batch: a server, or local engines that are reopened to limit memory."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from qwed.cli.backend import Target, exit_on_engine_error, is_local, open_engines, server_client
from qwed.cli.batch.runner import JobClient

if TYPE_CHECKING:
    from qwed.gate import Gate

MAX_KEPT_BYTES = 32 << 20
"""Bytes of jobs that one Gate processes before it is replaced."""
_ANSWER_BYTES = 1 << 10
"""Estimated bytes of an answer in addition to its item."""


@contextmanager
def open_jobs(target: Target, *, fail_fast: bool) -> Iterator[JobClient]:
    """Yield the job client; an error of the backend exits, except a refused job."""
    if is_local(target):
        from qwed.gate import GateError

        with exit_on_engine_error(), closing(RecyclingGate()) as gates:
            yield JobClient(gates.verify_batch, gates.get_batch_status, GateError, fail_fast)
        return
    from qwed_sdk import QWEDRequestError

    with server_client(target) as client:
        yield JobClient(client.verify_batch, client.get_batch_status, QWEDRequestError, fail_fast)


class RecyclingGate:
    """Gate that is replaced now and then: a Gate keeps the answers of its jobs, and a batch may be of any length."""

    def __init__(self, most: int = MAX_KEPT_BYTES) -> None:
        self._most = most
        self._kept = 0
        self._gate: Gate | None = None

    def verify_batch(self, items: list[dict[str, Any]], options: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Start one job."""
        self._kept += len(json.dumps(items)) + _ANSWER_BYTES * len(items)
        if self._kept > self._most:
            self.close()
        if self._gate is None:
            self._gate = open_engines(show_spinner=False)
        return self._gate.verify_batch(items, options)

    def get_batch_status(self, job_id: str) -> Mapping[str, Any]:
        """Return the status of the last job."""
        if self._gate is None:
            raise LookupError(job_id)
        return self._gate.get_batch_status(job_id)

    def close(self) -> None:
        """Close the engines; the next job reopens them."""
        gate, self._gate, self._kept = self._gate, None, 0
        if gate is not None:
            gate.close()

"""Log of executed calls: outcomes are collected and logged after their answers were returned."""

import logging
from typing import NamedTuple

import anyio
import anyio.to_thread
from mcp_types import CallToolResult
from pydantic import BaseModel

from qwed.model import CanonicalJsonError, sha256_of
from qwed.proxies.backend import DecisionBackend
from qwed_sdk.errors import QWEDError
from qwed_sdk.operations.tool_check import MAX_RESULT_CHARS
from qwed_sdk.permits import Permit
from qwed_sdk.to_json import NotJsonSerializableError, to_plain_json

log = logging.getLogger(__name__)
QUIET_SECONDS = 0.2
"""Seconds without a call before logging starts, so that a series of calls does not wait for the log."""
MAX_DELAY_SECONDS = 2.0
"""Seconds after which outcomes are logged in any case."""
_MAX_CONCURRENT = 8


class _Execution(NamedTuple):
    permit: Permit
    success: bool
    result: BaseModel | None


class ExecutionLog:
    """Queue of outcomes to be logged."""

    def __init__(self, backend: DecisionBackend) -> None:
        self._backend = backend
        self._pending: list[_Execution] = []
        self._added = anyio.Event()
        self._lock = anyio.Lock()

    def add(self, permit: Permit, result: BaseModel | None) -> None:
        """Queue the outcome of a permitted call; None if it produced no result."""
        success = result is not None and not (isinstance(result, CallToolResult) and bool(result.is_error))
        self._pending.append(_Execution(permit, success, result))
        self._added.set()

    async def run(self) -> None:
        """Log queued outcomes until cancelled."""
        while True:
            await self._added.wait()
            deadline, seen = anyio.current_time() + MAX_DELAY_SECONDS, 0
            while len(self._pending) > seen and anyio.current_time() < deadline:
                seen = len(self._pending)
                await anyio.sleep(QUIET_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Log all queued outcomes."""
        limit = anyio.CapacityLimiter(_MAX_CONCURRENT)
        async with self._lock, anyio.create_task_group() as group:
            self._added = anyio.Event()
            pending, self._pending = self._pending, []
            hashes = await anyio.to_thread.run_sync(_result_hashes, pending)
            for execution, hashed in zip(pending, hashes, strict=True):
                group.start_soon(self._log, execution, hashed, limit)

    async def _log(self, execution: _Execution, hashed: str | None, limit: anyio.CapacityLimiter) -> None:
        permit = execution.permit
        try:
            async with limit:
                await self._backend.log_execution(permit.action_id, execution.success, hashed, permit.attestation)
        except QWEDError as error:
            # The tool has run, and an error to its caller would mean that it had not.
            log.warning("the outcome of %s (%s) was not logged: %s", permit.tool, permit.action_id, error)


def _result_hashes(executions: list[_Execution]) -> list[str | None]:
    return [None if execution.result is None else _result_hash(execution.result) for execution in executions]


def _result_hash(result: BaseModel) -> str | None:
    """Return the hash of the result, the only part of it that leaves the process; None if it is too large."""
    members = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    try:
        return f"sha256:{sha256_of(to_plain_json(members, 'result', MAX_RESULT_CHARS))}"
    except (NotJsonSerializableError, CanonicalJsonError):
        return None

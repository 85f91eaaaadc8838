"""What became of permitted calls, logged after their answers were given back: gathered for a moment, then written."""

import logging
from typing import NamedTuple

import anyio
import anyio.to_thread
from mcp_types import CallToolResult
from pydantic import BaseModel

from qwed.proxies.kernel import Kernel
from qwed.words import NotCanonical, sha256_of
from qwed_sdk.calls.checks import LARGEST_RESULT, Permit
from qwed_sdk.errors import QWEDError
from qwed_sdk.plain import NotPlain, plain

log = logging.getLogger(__name__)
PAUSE = 0.2
"""Seconds without a call, after which there is time to log: who calls tool after tool does not wait for the log."""
LATEST = 2.0
"""Seconds after which it is logged all the same."""
_AT_ONCE = 8


class _Outcome(NamedTuple):
    permit: Permit
    success: bool
    result: BaseModel | None


class Outcomes:
    """Keeps what is to be logged until it is."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._left: list[_Outcome] = []
        self._came = anyio.Event()
        self._turn = anyio.Lock()

    def add(self, permit: Permit, result: BaseModel | None) -> None:
        """A permitted call is over; None where nothing came of it."""
        success = result is not None and not (isinstance(result, CallToolResult) and bool(result.is_error))
        self._left.append(_Outcome(permit, success, result))
        self._came.set()

    async def keep_logged(self) -> None:
        """Log what comes, for as long as this runs."""
        while True:
            await self._came.wait()
            ends, seen = anyio.current_time() + LATEST, 0
            while len(self._left) > seen and anyio.current_time() < ends:
                seen = len(self._left)
                await anyio.sleep(PAUSE)
            await self.finish()

    async def finish(self) -> None:
        """Log all that is left."""
        limit = anyio.CapacityLimiter(_AT_ONCE)
        async with self._turn, anyio.create_task_group() as group:
            self._came = anyio.Event()
            left, self._left = self._left, []
            hashes = await anyio.to_thread.run_sync(_hashes_of, left)
            for each, hashed in zip(left, hashes, strict=True):
                group.start_soon(self._log, each, hashed, limit)

    async def _log(self, outcome: _Outcome, hashed: str | None, limit: anyio.CapacityLimiter) -> None:
        permit = outcome.permit
        try:
            async with limit:
                await self._kernel.log(permit.action_id, outcome.success, hashed, permit.attestation)
        except QWEDError as error:
            # The tool has run. Telling its caller now would be telling that it had not.
            log.warning("the outcome of %s (%s) was not logged: %s", permit.tool, permit.action_id, error)


def _hashes_of(outcomes: list[_Outcome]) -> list[str | None]:
    return [None if each.result is None else _hash_of(each.result) for each in outcomes]


def _hash_of(result: BaseModel) -> str | None:
    """Of the result only this leaves the process; None where it is too large to be worth it."""
    members = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    try:
        return f"sha256:{sha256_of(plain(members, 'result', LARGEST_RESULT))}"
    except (NotPlain, NotCanonical):
        return None

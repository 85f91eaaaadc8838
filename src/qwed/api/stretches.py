"""Walks over much text: each stretch of work in a thread, so that others have their turn; no thread while it waits."""

from collections.abc import Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

from qwed.api.http import Call
from qwed.kernel.judging.content import LARGE
from qwed.waiting import Ticket

T = TypeVar("T")
SHORT = 1 << 14
"""Bytes that are looked through on the loop: within a few hundredths of a second, whatever stands in them."""


class _Step(NamedTuple):
    """What the walk waits for now, or what came of it."""

    ticket: Ticket[Any] | None
    value: Any = None


def drive(call: Call, walk: Coroutine[Any, None, T], seconds: float | None = None) -> Coroutine[Any, Any, T]:
    """What comes of `walk`: on the loop, or in stretches where the call has more than a short body."""
    if call.errand:
        return walk
    if len(call.body) <= SHORT:
        return call.driver.drive(walk, seconds)
    return _in_stretches(walk, call, seconds)


async def _in_stretches(walk: Coroutine[Any, None, T], call: Call, seconds: float | None) -> T:
    who = call.caller.organisation_id
    walking = call.node.walking if len(call.body) > LARGE else call.node.strolling
    # A thread knows as much of the request as the loop does.
    go_on = copy_context().run
    try:
        step = await walking.run(who, go_on, _go_on, walk, None)
        while step.ticket is not None:
            late: TimeoutError | None = None
            try:
                await call.driver.drive(_announced(step.ticket), seconds)
            except TimeoutError as error:
                late = error
            step = await walking.run(who, go_on, _go_on, walk, late)
        value: T = step.value
        return value
    finally:
        # A thread may still be on its way through a call that was cancelled; it lets go of the walk afterwards.
        with suppress(ValueError):
            walk.close()


def _go_on(walk: Coroutine[Any, None, Any], late: TimeoutError | None) -> _Step:
    try:
        return _Step(walk.send(None) if late is None else walk.throw(late))
    except StopIteration as stop:
        return _Step(None, stop.value)


class _Announced:
    """Waits for a ticket and leaves its result, or its failure, to the walk."""

    __slots__ = ("_ticket",)

    def __init__(self, ticket: Ticket[Any]) -> None:
        self._ticket = ticket

    def __await__(self) -> Generator[Any, None, None]:
        if not self._ticket.done:
            yield self._ticket


async def _announced(ticket: Ticket[Any]) -> None:
    await _Announced(ticket)

"""Redis connection that reconnects: one command after the other, with a deadline each.

While Redis is down, callers fail at once. One task connects, sends and reads for all of them. There is one connection,
however many callers there are.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from redis.exceptions import NoScriptError, RedisError

from qwed.futures import capture_failure
from qwed.ratelimit.limit_status import LimiterError
from qwed.ratelimit.redis_url import REPLY_TIMEOUT_SECONDS, connect, create_connection, describe_error

RETRY_SECONDS = 0.5
"""Pause between a failure and the next attempt."""
HEARTBEAT_SECONDS = 1.0
"""Interval of a heartbeat command on an idle connection, so that the next caller finds it working."""

Command = Sequence[str | bytes | int]
ReplyParser = Callable[[Any], Any]
"""Parses a reply; raises ValueError if it is invalid."""
_log = logging.getLogger("qwed.redis")


class RedisUnavailableError(LimiterError):
    """Redis does not answer, or answers with an error."""


class ReconnectingConnection(ABC):
    """Session over one connection, restarted after every failure. On one event loop at a time."""

    def __init__(self, purpose: str) -> None:
        self.up = False
        """True while Redis answers."""
        self.may_succeed = True
        """True if a command may be answered: the connection is up, or has not failed yet."""
        self.last_error = ""
        """Reason why it is not up."""
        self._purpose = purpose
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self.up_since = 0.0

    def start(self) -> None:
        """Start on the running event loop; repeated calls there do nothing."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        self._loop = loop
        self.up, self.may_succeed, self.last_error = False, True, ""
        self._task = loop.create_task(self._reconnect_forever(), name=f"qwed-redis-{self._purpose.replace(' ', '-')}")

    async def close(self) -> None:
        """Stop, and fail all callers that wait."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @abstractmethod
    async def _run_session(self) -> None:
        """Connect, call `_mark_up`, run until something fails, and disconnect."""

    @abstractmethod
    def _on_disconnected(self, reason: str) -> None:
        """Fail all callers that wait."""

    async def _reconnect_forever(self) -> None:
        try:
            while True:
                failure = await capture_failure(self._run_session())
                if not self._record_failure(failure):
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self.up, self.may_succeed, self.last_error = False, False, "the server is stopping"
            self._on_disconnected(self.last_error)

    def _record_failure(self, failure: BaseException | None) -> bool:
        """Record the failure; return True to retry at once, if a stable connection was cut rather than hung."""
        reason = "the session ended" if failure is None else describe_error(failure)
        was_stable = self.up and asyncio.get_running_loop().time() - self.up_since > RETRY_SECONDS
        self.may_succeed = was_stable and not isinstance(failure, TimeoutError)
        if reason != self.last_error:
            _log.error("redis connection failed (%s): %s", self._purpose, reason)
        self.up, self.last_error = False, reason
        if not self.may_succeed:
            self._on_disconnected(reason)
        return self.may_succeed

    def _mark_up(self) -> None:
        if self.last_error:
            _log.warning("redis connection restored (%s)", self._purpose)
        self.up, self.may_succeed, self.last_error = True, True, ""
        self.up_since = asyncio.get_running_loop().time()


class _PendingCommand(NamedTuple):
    command: Command
    read: ReplyParser
    reply: "asyncio.Future[Any]"
    deadline: float


class RedisConnection(ReconnectingConnection):
    """Commands and replies. A command that a cut connection leaves without a reply is sent again on the next one."""

    def __init__(self, url: str, purpose: str, greeting: Sequence[tuple[Command, ReplyParser]]) -> None:
        super().__init__(purpose)
        self._connection = create_connection(url)
        self._greeting = greeting
        """Commands sent first; the last one is the heartbeat too."""
        self._queue: deque[_PendingCommand] = deque()
        """Commands without a reply; the first one may have been sent."""
        self._has_pending = asyncio.Event()

    def ask(self, command: Command, read: ReplyParser, deadline: float | None = None) -> "asyncio.Future[Any]":
        """Queue a command and return a future of its reply; raise RedisUnavailableError if Redis is down."""
        self.start()
        if not self.may_succeed:
            raise RedisUnavailableError(self.last_error)
        loop = asyncio.get_running_loop()
        pending = _PendingCommand(command, read, loop.create_future(), deadline or loop.time() + REPLY_TIMEOUT_SECONDS)
        self._queue.append(pending)
        self._has_pending.set()
        return pending.reply

    def start(self) -> None:
        """Start on the running event loop; commands of another loop are dropped."""
        if asyncio.get_running_loop() is not self._loop:
            self._queue.clear()
            self._has_pending = asyncio.Event()
        super().start()

    def _on_disconnected(self, reason: str) -> None:
        for pending in self._queue:
            _fail_future(pending.reply, RedisUnavailableError(reason))
        self._queue.clear()

    async def _run_session(self) -> None:
        try:
            async with asyncio.timeout(REPLY_TIMEOUT_SECONDS) as timeout:
                await connect(self._connection)
                for command, read in self._greeting:
                    read(await self._exchange(command))
                self._mark_up()
                while True:
                    timeout.reschedule(None)
                    pending = await self._next_command()
                    timeout.reschedule(pending.deadline)
                    await self._answer(pending)
                    # Removed now: of a failure, `_on_disconnected` tells those that are left.
                    self._queue.popleft()
        finally:
            with suppress(RedisError, OSError):
                # It waits for at most the connection timeout.
                await self._connection.disconnect()
            # One tick for a close without waiting, after a failed write: there may be no other on this loop.
            await asyncio.sleep(0)

    async def _next_command(self) -> _PendingCommand:
        """Wait for a command, or return a heartbeat."""
        if not self._queue:
            self._has_pending.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._has_pending.wait()
        if not self._queue:
            self.ask(*self._greeting[-1])
        return self._queue[0]

    async def _answer(self, pending: _PendingCommand) -> None:
        try:
            reply = await self._exchange(pending.command)
        except NoScriptError as missing:
            # A reply; every other error ends the session.
            _fail_future(pending.reply, missing)
        else:
            value = pending.read(reply)
            if not pending.reply.done():
                pending.reply.set_result(value)

    async def _exchange(self, command: Command) -> Any:
        await self._connection.send_command(*command)
        return await self._connection.read_response(disconnect_on_error=False)


def _fail_future(answer: "asyncio.Future[Any]", failure: Exception) -> None:
    """Fail a future, and mark its exception as retrieved in case no caller waits."""
    if not answer.done():
        answer.set_exception(failure)
        answer.exception()

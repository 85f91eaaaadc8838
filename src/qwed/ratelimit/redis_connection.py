"""Redis connection that reconnects: commands are pipelined over one connection, with a deadline each.

While Redis is down, callers fail at once. One task reconnects for all of them. There is one connection, however many
callers there are.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from redis.asyncio.connection import AbstractConnection
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

    def __init__(self, url: str, purpose: str) -> None:
        self.up = False
        """True while Redis answers."""
        self.may_succeed = True
        """True if a command may be answered: the connection is up, or has not failed yet."""
        self.last_error = ""
        """Reason why it is not up."""
        self._connection = create_connection(url)
        self._writer: asyncio.StreamWriter | None = None
        self._purpose = purpose
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._since = 0.0

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
        """Connect, call `_mark_up`, and run until something fails."""

    @abstractmethod
    def _on_disconnected(self, reason: str) -> None:
        """Fail all callers that wait."""

    async def _reconnect_forever(self) -> None:
        try:
            while True:
                failure = await capture_failure(self._run_session())
                retry_now = self._record_failure(failure)
                await self._disconnect()
                if not retry_now:
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self.up, self.may_succeed, self.last_error = False, False, "the server is stopping"
            self._on_disconnected(self.last_error)
            await self._disconnect()

    async def _connect(self) -> None:
        await connect(self._connection)
        # redis-py drops its reference when a read is cancelled, and closes the writer without waiting.
        self._writer = self._connection._writer

    async def _disconnect(self) -> None:
        """Abort the socket: a graceful close would wait until a hung Redis has read what is left."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        with suppress(RedisError, OSError):
            await self._connection.disconnect(nowait=True)
        # One tick for the abort to run: there may be no other on this loop.
        await asyncio.sleep(0)

    def _record_failure(self, failure: BaseException | None) -> bool:
        """Record the failure; return True to retry at once, if a stable connection was cut rather than hung."""
        reason = "the session ended" if failure is None else describe_error(failure)
        was_stable = self.up and asyncio.get_running_loop().time() - self._since > RETRY_SECONDS
        self.may_succeed = was_stable and not isinstance(failure, TimeoutError)
        if reason != self.last_error:
            _log.error("redis connection failed (%s): %s", self._purpose, reason)
        self.up, self.last_error = False, reason
        self._on_disconnected(reason)
        return self.may_succeed

    def _mark_up(self) -> None:
        if self.last_error:
            _log.warning("redis connection restored (%s)", self._purpose)
        self.up, self.may_succeed, self.last_error = True, True, ""
        self._since = asyncio.get_running_loop().time()


class _PendingCommand(NamedTuple):
    command: Command
    read: ReplyParser
    reply: "asyncio.Future[Any]"
    deadline: float


class RedisConnection(ReconnectingConnection):
    """Commands and replies."""

    def __init__(self, url: str, purpose: str, greeting: Sequence[tuple[Command, ReplyParser]]) -> None:
        super().__init__(url, purpose)
        self._greeting = greeting
        """Commands sent first; the last one is the heartbeat too."""
        self._queued: deque[_PendingCommand] = deque()
        self._sent: deque[_PendingCommand] = deque()
        self._has_pending = asyncio.Event()
        self._timeout = asyncio.Timeout(None)

    def ask(self, command: Command, read: ReplyParser, deadline: float | None = None) -> "asyncio.Future[Any]":
        """Send a command and return a future of its reply; raise RedisUnavailableError if Redis is down."""
        self.start()
        if not self.may_succeed:
            raise RedisUnavailableError(self.last_error)
        loop = asyncio.get_running_loop()
        pending = _PendingCommand(command, read, loop.create_future(), deadline or loop.time() + REPLY_TIMEOUT_SECONDS)
        self._queued.append(pending)
        self._has_pending.set()
        if self.up and not self._sent and len(self._queued) == 1:
            self._reset_timeout()
        return pending.reply

    def start(self) -> None:
        """Start on the running event loop; commands of another loop are dropped."""
        if asyncio.get_running_loop() is not self._loop:
            self._queued.clear()
            self._sent.clear()
            self._has_pending = asyncio.Event()
        super().start()

    def _on_disconnected(self, reason: str) -> None:
        for command in (*self._sent, *self._queued):
            _fail_future(command.reply, RedisUnavailableError(reason))
        self._sent.clear()
        self._queued.clear()

    async def _run_session(self) -> None:
        async with asyncio.timeout(REPLY_TIMEOUT_SECONDS) as self._timeout:
            await self._connect()
            for command, read in self._greeting:
                await self._connection.send_command(*command)
                read(await self._connection.read_response())
            self._mark_up()
            self._reset_timeout()
            async with asyncio.TaskGroup() as group:
                for part in (self._write, self._read, self._send_heartbeats):
                    group.create_task(part())

    def _reset_timeout(self) -> None:
        """Set the timeout to the deadline of the oldest command."""
        oldest = next(iter(self._sent or self._queued), None)
        if not self._timeout.expired():
            self._timeout.reschedule(None if oldest is None else oldest.deadline)

    async def _write(self) -> None:
        while True:
            await self._has_pending.wait()
            self._has_pending.clear()
            pending = [*self._queued]
            self._queued.clear()
            # Marked as sent before the write: their deadlines run while Redis does not read.
            self._sent.extend(pending)
            commands = self._connection.pack_commands([command.command for command in pending])
            await self._connection.send_packed_command(commands)

    async def _read(self) -> None:
        while True:
            reply = await _read_reply(self._connection)
            if not self._sent:
                raise ValueError("unexpected reply")
            # It stays in the queue until it is resolved, so that a failure reaches its caller.
            command = self._sent[0]
            if isinstance(reply, NoScriptError):
                _fail_future(command.reply, reply)
            elif not command.reply.done():
                command.reply.set_result(command.read(reply))
            self._sent.popleft()
            self._reset_timeout()

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if not self._sent and not self._queued:
                self.ask(*self._greeting[-1])


def _fail_future(answer: "asyncio.Future[Any]", failure: Exception) -> None:
    """Fail a future, and mark its exception as retrieved in case no caller waits."""
    if not answer.done():
        answer.set_exception(failure)
        answer.exception()


async def _read_reply(connection: AbstractConnection) -> Any:
    """Return the next reply; a missing script is a reply, every other error ends the session."""
    try:
        return await connection.read_response()
    except NoScriptError as missing:
        return missing

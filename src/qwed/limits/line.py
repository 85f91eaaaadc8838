"""One connection to a Redis, kept up: commands go out in order, their answers come back in order, nobody waits long.

While it is away, whoever asks is told so at once and pays nothing for it: one attempt after another brings it back, for
everyone. However many ask, there is one connection.
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

from qwed.limits.address import ANSWER_SECONDS, connect, connection_to, trouble_with
from qwed.limits.allowance import LimiterError
from qwed.waiting import failure_of

PAUSE_SECONDS = 0.5
"""From a failure to the next attempt."""
BEAT_SECONDS = 1.0
"""How often something is asked where nobody else does, so that whoever comes next finds a line that works."""

Command = Sequence[str | bytes | int]
Read = Callable[[Any], Any]
"""Makes something of an answer; a ValueError where it is none."""
_log = logging.getLogger("qwed.redis")


class Away(LimiterError):
    """The Redis does not answer, or not as it should."""


class Kept(ABC):
    """A conversation over one connection, begun again after whatever ends it. On one event loop at a time."""

    def __init__(self, url: str, what_for: str) -> None:
        self.up = False
        """Whether it answers, as far as is known."""
        self.hopeful = True
        """Whether what is asked now may be answered: it is up, or there is no reason yet to think it is not."""
        self.trouble = ""
        """Why it is not up."""
        self._connection = connection_to(url)
        self._writer: asyncio.StreamWriter | None = None
        self._what_for = what_for
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._since = 0.0

    def start(self) -> None:
        """Begin on the loop that runs; a second time there does nothing."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        self._loop = loop
        self.up, self.hopeful, self.trouble = False, True, ""
        self._task = loop.create_task(self._keep_up(), name=f"qwed-redis-{self._what_for}")

    async def close(self) -> None:
        """End it, and tell whoever waits."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @abstractmethod
    async def _talk(self) -> None:
        """Connect, say that it is `_up`, and go on until something fails."""

    @abstractmethod
    def _ended(self, trouble: str) -> None:
        """The conversation is over; whoever waits for something is told."""

    async def _keep_up(self) -> None:
        try:
            while True:
                failure = await failure_of(self._talk())
                at_once = self._fail(failure)
                await self._hang_up()
                if not at_once:
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self.up, self.hopeful, self.trouble = False, False, "the server is about to stop"
            self._ended(self.trouble)
            await self._hang_up()

    async def _connect(self) -> None:
        await connect(self._connection)
        # Whoever reads and is stopped loses sight of it, and only begins to close it.
        self._writer = self._connection._writer

    async def _hang_up(self) -> None:
        """Let go of the socket now: to close it is to wait until a Redis that hangs has taken what is left to say."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        with suppress(RedisError, OSError):
            await self._connection.disconnect(nowait=True)
        # The turn in which that happens: there may be no other on this loop.
        await asyncio.sleep(0)

    def _fail(self, failure: BaseException | None) -> bool:
        """Note why it ended; whether to begin again at once, because it worked and was cut off, not hung."""
        trouble = "it ended" if failure is None else trouble_with(failure)
        worked = self.up and asyncio.get_running_loop().time() - self._since > PAUSE_SECONDS
        self.hopeful = worked and not isinstance(failure, TimeoutError)
        if trouble != self.trouble:
            _log.error("the Redis for %s does not answer: %s", self._what_for, trouble)
        self.up, self.trouble = False, trouble
        self._ended(trouble)
        return self.hopeful

    def _is_up(self) -> None:
        if self.trouble:
            _log.warning("the Redis for %s answers again", self._what_for)
        self.up, self.hopeful, self.trouble = True, True, ""
        self._since = asyncio.get_running_loop().time()


class _Question(NamedTuple):
    command: Command
    read: Read
    answer: "asyncio.Future[Any]"
    until: float


class Line(Kept):
    """Questions and answers."""

    def __init__(self, url: str, what_for: str, greeting: Sequence[tuple[Command, Read]]) -> None:
        super().__init__(url, what_for)
        self._greeting = greeting
        """Asked first; the last of it also where nobody asks anything else."""
        self._waiting: deque[_Question] = deque()
        self._sent: deque[_Question] = deque()
        self._asked = asyncio.Event()
        self._patience = asyncio.Timeout(None)

    def ask(self, command: Command, read: Read, until: float | None = None) -> "asyncio.Future[Any]":
        """What `read` makes of the answer, or Away, at the latest `until`; Away at once where there is no hope."""
        self.start()
        if not self.hopeful:
            raise Away(self.trouble)
        loop = asyncio.get_running_loop()
        question = _Question(command, read, loop.create_future(), until or loop.time() + ANSWER_SECONDS)
        self._waiting.append(question)
        self._asked.set()
        if self.up and not self._sent and len(self._waiting) == 1:
            self._be_patient()
        return question.answer

    def start(self) -> None:
        """Begin on the loop that runs; what was under way in another one does not arrive any more."""
        if asyncio.get_running_loop() is not self._loop:
            self._waiting.clear()
            self._sent.clear()
            self._asked = asyncio.Event()
        super().start()

    def _ended(self, trouble: str) -> None:
        for question in (*self._sent, *self._waiting):
            _tell(question.answer, Away(trouble))
        self._sent.clear()
        self._waiting.clear()

    async def _talk(self) -> None:
        async with asyncio.timeout(ANSWER_SECONDS) as self._patience:
            await self._connect()
            for command, read in self._greeting:
                await self._connection.send_command(*command)
                read(await self._connection.read_response())
            self._is_up()
            self._be_patient()
            async with asyncio.TaskGroup() as talking:
                for part in (self._write, self._read, self._beat_on):
                    talking.create_task(part())

    def _be_patient(self) -> None:
        """Until the time of the oldest question is over, if it is not yet."""
        oldest = next(iter(self._sent or self._waiting), None)
        if not self._patience.expired():
            self._patience.reschedule(None if oldest is None else oldest.until)

    async def _write(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            asked = [*self._waiting]
            self._waiting.clear()
            # Before they are sent: while nobody takes them, their time runs.
            self._sent.extend(asked)
            commands = self._connection.pack_commands([question.command for question in asked])
            await self._connection.send_packed_command(commands)

    async def _read(self) -> None:
        while True:
            answer = await _answer_from(self._connection)
            if not self._sent:
                raise ValueError("an answer that nobody asked for")
            # It stays among those that are told of a failure until it is answered.
            question = self._sent[0]
            if isinstance(answer, NoScriptError):
                _tell(question.answer, answer)
            elif not question.answer.done():
                question.answer.set_result(question.read(answer))
            self._sent.popleft()
            self._be_patient()

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if not self._sent and not self._waiting:
                self.ask(*self._greeting[-1])


def _tell(answer: "asyncio.Future[Any]", failure: Exception) -> None:
    """Whoever still waits is told; where nobody does, it is nobody's."""
    if not answer.done():
        answer.set_exception(failure)
        answer.exception()


async def _answer_from(connection: AbstractConnection) -> Any:
    """The next answer; a script that is not there is one, every other error ends the conversation."""
    try:
        return await connection.read_response()
    except NoScriptError as missing:
        return missing

"""The server behind the proxy as a process of ours: started without a shell, without our secrets, and ended with us."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

from qwed_mcp.proxy.lines import Streams, framed
from qwed_mcp.proxy.pace import Pace
from qwed_sdk.hook.call import Unusable

_OURS = "QWED_"
_PATIENCE = 2.0
"""Seconds for each: to end by itself once nobody speaks to it any more, and once it is asked to."""
_LOOK = 0.01
_PIECE = 1 << 16


def environment_of(ours: Mapping[str, str]) -> dict[str, str]:
    """What a server is told of our environment: everything but the secrets of the control plane."""
    return {name: value for name, value in ours.items() if not name.upper().startswith(_OURS)}


class Running:
    """One process, and how it ended."""

    def __init__(self, process: Process) -> None:
        self._process = process
        assert process.stdin is not None  # noqa: S101 - it was started with pipes
        assert process.stdout is not None  # noqa: S101 - it was started with pipes
        self._stdin, self._stdout = process.stdin, process.stdout

    @property
    def ending(self) -> str | None:
        """How it ended, in words; None while it runs."""
        code = self._process.returncode
        if code is None:
            return None
        return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    async def over(self, seconds: float) -> str | None:
        """How it ended, where it does within so many seconds."""
        with anyio.move_on_after(seconds):
            while self.ending is None:  # noqa: ASYNC110 - `wait` waits for whoever else holds its streams, too
                await anyio.sleep(_LOOK)
        return self.ending

    async def read(self) -> bytes:
        """Some bytes of what it says, or none at the end."""
        return await self._stdout.read(_PIECE)

    async def write(self, data: bytes) -> None:
        """Tell it something."""
        self._stdin.write(data)
        await self._stdin.drain()

    async def stop(self) -> None:
        """End it, and everything it started: by itself, then asked to, then whether it will or not."""
        self._stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._signal(number)
            if await self.over(_PATIENCE) is not None:
                break
        # What it left running in its session would outlive the proxy that was to guard it.
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def started(command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[tuple[Running, Streams]]:
    """The process and its messages; its standard error is ours."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=environment_of(environment), start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unusable(f"`{command[0]}` cannot be started: {reason}") from None
    running = Running(process)
    try:
        yield running, framed(running.read, running.write, Pace())
    finally:
        with anyio.CancelScope(shield=True):
            await running.stop()

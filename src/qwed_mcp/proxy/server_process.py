"""Server behind the proxy as a child process: started without a shell or our secrets, and ended with the proxy."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio

from qwed_sdk.errors import UsageError

_OWN_PREFIX = "QWED_"
_STOP_SECONDS = 2.0
"""Seconds to exit after standard input is closed, and again after SIGTERM."""
_POLL_SECONDS = 0.01
_READ_BYTES = 1 << 16


def server_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the server: all variables but those of the control plane."""
    return {name: value for name, value in ours.items() if not name.upper().startswith(_OWN_PREFIX)}


class ServerProcess:
    """Child process of the server."""

    def __init__(self, process: Process) -> None:
        self._process = process
        assert process.stdin is not None  # noqa: S101 - it was started with pipes
        assert process.stdout is not None  # noqa: S101 - it was started with pipes
        self._stdin, self._stdout = process.stdin, process.stdout

    @property
    def exit_description(self) -> str | None:
        """Description of the exit, or None while it runs."""
        code = self._process.returncode
        if code is None:
            return None
        return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    async def wait_exit(self, seconds: float) -> str | None:
        """Wait for the exit; return its description, or None after the timeout."""
        with anyio.move_on_after(seconds):
            while self.exit_description is None:  # noqa: ASYNC110 - `wait` would wait for other processes that hold the streams
                await anyio.sleep(_POLL_SECONDS)
        return self.exit_description

    async def read(self) -> bytes:
        """Return some bytes of its output, or none at the end."""
        return await self._stdout.read(_READ_BYTES)

    async def write(self, data: bytes) -> None:
        """Write to its standard input."""
        self._stdin.write(data)
        await self._stdin.drain()

    async def stop(self) -> None:
        """End the server and its session: close its input, then SIGTERM, then SIGKILL."""
        self._stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._signal(number)
            if await self.wait_exit(_STOP_SECONDS) is not None:
                break
        # Processes left in its session would outlive the proxy.
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def start_server(command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[ServerProcess]:
    """Start the process and yield it; its standard error is inherited."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=server_environment(environment), start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"`{command[0]}` cannot be started: {reason}") from None
    server = ServerProcess(process)
    try:
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            await server.stop()

"""A job is followed from its start to the death of its last process, in a thread of its own."""

import os
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from typing import IO, Protocol

from qwed_mcp.sandbox.outcome import Ended, Failed, Limits, Outcome

TICK_SECONDS = 0.05
"""How often the memory of a job is looked at, and a cancel."""
_AT_ONCE = 1 << 16
_SIGNALLED = 128


class Reins(Protocol):
    """How the processes of one kind of job are held."""

    def memory(self, limit: int) -> int:
        """Bytes they hold together; exact where it is above the limit."""

    def end(self) -> None:
        """Kill them all; returns when they are dead."""

    def close(self) -> None:
        """Let go of what was held open to do so."""


class Supervised:
    """The job that a sandbox hands out."""

    def __init__(self, main: subprocess.Popen[bytes], reins: Reins, limits: Limits, sandbox: str) -> None:
        self._main, self._reins, self._limits, self._sandbox = main, reins, limits, sandbox
        self._until = time.monotonic() + limits.seconds
        self._memory_at = time.monotonic()
        self._cancelled = threading.Event()
        self._outcome: Future[Outcome] = Future()
        # As a daemon, so that a server that ends does not wait for jobs: they are killed with it.
        threading.Thread(target=self._supervise, name="qwed sandbox job", daemon=True).start()

    def wait(self) -> Outcome:
        """Its outcome, once every process of it is dead."""
        return self._outcome.result()

    def cancel(self) -> None:
        """End it now, from any thread; `wait` then returns."""
        self._cancelled.set()

    def _supervise(self) -> None:
        try:
            self._outcome.set_result(self._followed())
        except Failed as surprise:
            self._outcome.set_exception(surprise)
        except OSError as surprise:
            self._outcome.set_exception(Failed(f"the job could not be followed: {surprise}"))
        finally:
            if not self._outcome.done():
                self._outcome.set_exception(Failed("the job could not be followed"))

    def _followed(self) -> Outcome:
        with ExitStack() as stack:
            stack.callback(self._reins.close)
            output = [_Output(stack.enter_context(pipe), self._limits.output_bytes) for pipe in _pipes(self._main)]
            stack.callback(self._reins.end)
            ended = self._ended(output)
            self._reins.end()
            return self._told(ended, output)

    def _ended(self, output: "list[_Output]") -> Ended:
        with ExitStack() as stack:
            over = os.pidfd_open(self._main.pid)
            stack.callback(os.close, over)
            selector = stack.enter_context(selectors.DefaultSelector())
            selector.register(over, selectors.EVENT_READ)
            for pipe in output:
                selector.register(pipe.file, selectors.EVENT_READ, pipe)
            while True:
                ready = [key for key, _ in selector.select(self._patience())]
                for key in ready:
                    if key.data is not None and not key.data.take():
                        selector.unregister(key.fileobj)
                ended = self._reason(output, any(key.data is None for key in ready))
                if ended is not None:
                    return ended

    def _patience(self) -> float:
        return max(0.0, min(TICK_SECONDS, self._until - time.monotonic()))

    def _reason(self, output: "list[_Output]", exited: bool) -> Ended | None:
        if any(pipe.too_much for pipe in output):
            return Ended.OUTPUT_CAP
        if exited:
            return Ended.EXITED
        if self._cancelled.is_set():
            return Ended.CANCELLED
        if time.monotonic() >= self._until:
            return Ended.TIMED_OUT
        return Ended.MEMORY if self._too_big() else None

    def _too_big(self) -> bool:
        if time.monotonic() < self._memory_at:
            return False
        self._memory_at = time.monotonic() + TICK_SECONDS
        limit = self._limits.memory_mb << 20
        return self._reins.memory(limit) > limit

    def _told(self, ended: Ended, output: "list[_Output]") -> Outcome:
        for pipe in output:
            pipe.drain()
        if ended is Ended.EXITED and any(pipe.too_much for pipe in output):
            ended = Ended.OUTPUT_CAP
        code = self._main.wait()
        return Outcome(
            stdout=output[0].text(),
            stderr=output[1].text(),
            return_code=(_SIGNALLED - code if code < 0 else code) if ended is Ended.EXITED else None,
            ended=ended,
            sandbox=self._sandbox,
        )


def _pipes(main: subprocess.Popen[bytes]) -> Iterator[IO[bytes]]:
    for pipe in (main.stdout, main.stderr):
        if pipe is None:
            raise ValueError("a job needs pipes for its output")
        yield pipe


class _Output:
    """One stream of a job, kept up to the cap."""

    def __init__(self, file: IO[bytes], cap: int) -> None:
        self.file, self._cap = file, cap
        self._kept = bytearray()
        os.set_blocking(file.fileno(), False)

    @property
    def too_much(self) -> bool:
        """Whether there was a byte above the cap."""
        return len(self._kept) > self._cap

    def take(self) -> bool:
        """Read once what is there, one byte above the cap at most; False when nothing will come any more."""
        try:
            read = os.read(self.file.fileno(), min(_AT_ONCE, self._cap + 1 - len(self._kept)))
        except BlockingIOError:
            return True
        self._kept += read
        return bool(read)

    def drain(self) -> None:
        """Read what the dead have left; who lives on and holds the stream, outside of a sandbox, is not waited for."""
        while not self.too_much:
            before = len(self._kept)
            if not self.take() or len(self._kept) == before:
                return

    def text(self) -> str:
        """What was kept, without the byte above the cap."""
        return self._kept[: self._cap].decode(errors="replace")

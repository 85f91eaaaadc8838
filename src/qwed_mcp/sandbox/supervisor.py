"""Supervision of a job in its own thread, from its start to the death of its last process."""

import os
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from typing import IO, Protocol

from qwed_mcp.sandbox.job import EndReason, JobLimits, JobOutcome, SandboxError

TICK_SECONDS = 0.05
"""Interval of the memory and cancellation checks."""
_READ_BYTES = 1 << 16
_SIGNAL_EXIT_BASE = 128


class ProcessControl(Protocol):
    """Control over the processes of one kind of job."""

    def memory(self, limit: int) -> int:
        """Return the bytes they use together; exact if above the limit."""

    def end(self) -> None:
        """Kill all processes; return when they are dead."""

    def close(self) -> None:
        """Release the resources of this control."""


class SupervisedJob:
    """Job that a sandbox returns."""

    def __init__(self, main: subprocess.Popen[bytes], control: ProcessControl, limits: JobLimits, sandbox: str) -> None:
        self._main, self._control, self._limits, self._sandbox = main, control, limits, sandbox
        self._deadline = time.monotonic() + limits.seconds
        self._memory_at = time.monotonic()
        self._cancelled = threading.Event()
        self._outcome: Future[JobOutcome] = Future()
        # A daemon thread: a server that ends does not wait for jobs, which are killed with it.
        threading.Thread(target=self._supervise, name="qwed sandbox job", daemon=True).start()

    def wait(self) -> JobOutcome:
        """Return the outcome once every process is dead."""
        return self._outcome.result()

    def cancel(self) -> None:
        """End the job now, from any thread; `wait` then returns."""
        self._cancelled.set()

    def _supervise(self) -> None:
        try:
            self._outcome.set_result(self._follow())
        except SandboxError as error:
            self._outcome.set_exception(error)
        except OSError as error:
            self._outcome.set_exception(SandboxError(f"the job could not be supervised: {error}"))
        finally:
            if not self._outcome.done():
                self._outcome.set_exception(SandboxError("the job could not be supervised"))

    def _follow(self) -> JobOutcome:
        with ExitStack() as stack:
            stack.callback(self._control.close)
            output = [
                _BoundedOutput(stack.enter_context(pipe), self._limits.output_bytes)
                for pipe in _output_pipes(self._main)
            ]
            stack.callback(self._control.end)
            ended = self._wait_for_end(output)
            self._control.end()
            return self._outcome_of(ended, output)

    def _wait_for_end(self, output: "list[_BoundedOutput]") -> EndReason:
        with ExitStack() as stack:
            over = os.pidfd_open(self._main.pid)
            stack.callback(os.close, over)
            selector = stack.enter_context(selectors.DefaultSelector())
            selector.register(over, selectors.EVENT_READ)
            for pipe in output:
                selector.register(pipe.file, selectors.EVENT_READ, pipe)
            while True:
                ready = [key for key, _ in selector.select(self._next_wait())]
                for key in ready:
                    if key.data is not None and not key.data.read_some():
                        selector.unregister(key.fileobj)
                ended = self._end_reason(output, any(key.data is None for key in ready))
                if ended is not None:
                    return ended

    def _next_wait(self) -> float:
        return max(0.0, min(TICK_SECONDS, self._deadline - time.monotonic()))

    def _end_reason(self, output: "list[_BoundedOutput]", exited: bool) -> EndReason | None:
        if any(pipe.is_over_cap for pipe in output):
            return EndReason.OUTPUT_CAP
        if exited:
            return EndReason.EXITED
        if self._cancelled.is_set():
            return EndReason.CANCELLED
        if time.monotonic() >= self._deadline:
            return EndReason.TIMED_OUT
        return EndReason.MEMORY if self._is_over_memory() else None

    def _is_over_memory(self) -> bool:
        if time.monotonic() < self._memory_at:
            return False
        self._memory_at = time.monotonic() + TICK_SECONDS
        limit = self._limits.memory_mb << 20
        return self._control.memory(limit) > limit

    def _outcome_of(self, ended: EndReason, output: "list[_BoundedOutput]") -> JobOutcome:
        for pipe in output:
            pipe.drain()
        if ended is EndReason.EXITED and any(pipe.is_over_cap for pipe in output):
            ended = EndReason.OUTPUT_CAP
        code = self._main.wait()
        return JobOutcome(
            stdout=output[0].text(),
            stderr=output[1].text(),
            return_code=(_SIGNAL_EXIT_BASE - code if code < 0 else code) if ended is EndReason.EXITED else None,
            ended=ended,
            sandbox=self._sandbox,
        )


def _output_pipes(main: subprocess.Popen[bytes]) -> Iterator[IO[bytes]]:
    for pipe in (main.stdout, main.stderr):
        if pipe is None:
            raise ValueError("a job needs pipes for its output")
        yield pipe


class _BoundedOutput:
    """Output stream of a job, stored up to the cap."""

    def __init__(self, file: IO[bytes], cap: int) -> None:
        self.file, self._cap = file, cap
        self._data = bytearray()
        os.set_blocking(file.fileno(), False)

    @property
    def is_over_cap(self) -> bool:
        """True if the job wrote more than the cap."""
        return len(self._data) > self._cap

    def read_some(self) -> bool:
        """Read available data, at most one byte above the cap; return False at the end of the stream."""
        try:
            read = os.read(self.file.fileno(), min(_READ_BYTES, self._cap + 1 - len(self._data)))
        except BlockingIOError:
            return True
        self._data += read
        return bool(read)

    def drain(self) -> None:
        """Read what dead processes left, without waiting for survivors that hold the stream outside a sandbox."""
        while not self.is_over_cap:
            before = len(self._data)
            if not self.read_some() or len(self._data) == before:
                return

    def text(self) -> str:
        """Return the stored output, without the byte above the cap."""
        return self._data[: self._cap].decode(errors="replace")

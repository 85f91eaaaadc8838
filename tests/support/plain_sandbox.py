"""A sandbox that holds nothing back: what a job is to the server, without what keeps it in."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

from qwed_mcp.sandbox.outcome import Ended, Limits, Outcome, Unavailable

NAME = "plain"


class PlainJob:
    def __init__(self, code: str, limits: Limits) -> None:
        self._limits = limits
        self._cancelled = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait(self) -> Outcome:
        over = threading.Event()
        timer = threading.Timer(self._limits.seconds, lambda: (over.set(), self._kill()))
        timer.start()
        out, err = self._process.communicate()
        timer.cancel()
        timer.join()
        most = self._limits.output_bytes
        ended = Ended.OUTPUT_CAP if max(len(out), len(err)) > most else Ended.EXITED
        ended = Ended.TIMED_OUT if over.is_set() else ended
        ended = Ended.CANCELLED if self._cancelled else ended
        code = self._process.returncode if ended is Ended.EXITED else None
        texts = [each[:most].decode("utf-8", "replace") for each in (out, err)]
        return Outcome(texts[0], texts[1], code, ended, NAME)

    def cancel(self) -> None:
        self._cancelled = True
        self._kill()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class PlainSandbox:
    name = NAME

    def start(self, code: str, limits: Limits) -> PlainJob:
        return PlainJob(code, limits)


def plain() -> PlainSandbox | Unavailable:
    """Always there."""
    return PlainSandbox()

"""Command at a pseudo-terminal: reads its screen and types."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

_PATIENCE = 60.0


class Terminal:
    """`qwed` with a terminal for all three streams, or for standard error alone."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], *, only_stderr: bool = False) -> None:
        self._master, slave = pty.openpty()
        piped = subprocess.PIPE if only_stderr else slave
        self.process = subprocess.Popen(
            [sys.executable, "-m", "qwed.cli", *arguments],
            stdin=subprocess.DEVNULL if only_stderr else slave,
            stdout=piped,
            stderr=slave,
            env={**environment, "TERM": "xterm-256color", "COLUMNS": "120"},
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""
        self._waited_for = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(_PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._master)

    def until(self, text: str) -> str:
        """Return the output since the last match, up to and including this text."""
        ends, begun = time.monotonic() + _PATIENCE, self._waited_for
        while text not in self.seen[begun:]:
            assert time.monotonic() < ends, self.seen
            assert self._read(), f"`{text}` never came: {self.seen}"
        self._waited_for = self.seen.index(text, begun) + len(text)
        return self.seen[begun : self._waited_for]

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._master, f"{text}\n".encode())

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        while self._read():
            pass
        return self.process.wait(_PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], _PATIENCE)
        try:
            piece = os.read(self._master, 1 << 16) if ready else b""
        except OSError:
            # Linux raises this once the other end is closed.
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)

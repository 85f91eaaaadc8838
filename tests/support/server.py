"""A real qwed server in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SERVE = (sys.executable, "-m", "qwed.cli", "serve", "--port", "0")
_LISTENS = re.compile(r"listens on (http://\S+)")
_KEPT = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "TMPDIR")


class Server:
    """Started when made; `stop` asks, `kill` does not."""

    def __init__(self, data_dir: Path, command: Sequence[str] = SERVE, **settings: str) -> None:
        self.data_dir = data_dir
        self.log = data_dir.parent / f"{data_dir.name}.log"
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | settings
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(data_dir)],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
        self.base_url = self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> str:
        assert self.process.stdout is not None
        self.greeting = ""
        for line in self.process.stdout:
            self.greeting += line
            found = _LISTENS.search(line)
            if found:
                return found[1]
        self._reap()
        raise RuntimeError(f"the server did not start: {self.log.read_text()}")

    @property
    def owner_key(self) -> str:
        return (self.data_dir / "owner.key").read_text().strip()

    def stop(self) -> int:
        """Ask it to end, wait until it has."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def kill(self) -> int:
        """End it between two instructions."""
        if self.process.poll() is None:
            self.process.kill()
        return self._reap()

    def wait(self) -> int:
        """Wait until it has ended by itself."""
        return self._reap()

    def _reap(self) -> int:
        code = self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

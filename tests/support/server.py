"""A real qwed server in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.chosen import chosen
from tests.support.nursery import Born, born, can_be_born

SERVE = (sys.executable, "-m", "qwed.cli", "serve", "--port", "0")
_LISTENS = re.compile(r"listens on (http://\S+)")
_KEPT = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "TMPDIR")


class Server:
    """Started when made; `stop` asks, `kill` does not."""

    def __init__(self, data_dir: Path, command: Sequence[str] = SERVE, *, anew: bool = False, **settings: str) -> None:
        """With `anew` in an interpreter that starts for it, which is otherwise done where something depends on it."""
        self.data_dir = data_dir
        self.log = data_dir.parent / f"{data_dir.name}.log"
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= chosen.environment(data_dir) | settings
        whole = [*command, "--data-dir", str(data_dir)]
        with self.log.open("a") as log:
            self.process: subprocess.Popen[str] | Born
            if anew or not can_be_born(whole, environment):
                self.process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
            else:
                self.process = born(whole, environment, log)
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

    def spent(self) -> float:
        """Seconds of the processor that it has used itself, which no other work on this machine adds to."""
        figures = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, figures[11:13])) / os.sysconf("SC_CLK_TCK")

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

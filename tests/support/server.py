"""Real qwed server in its own process."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.fork_server import ForkedProcess, can_be_forked, fork_process
from tests.support.store_choice import chosen

SERVE = (sys.executable, "-m", "qwed.cli", "serve", "--port", "0")
_LISTENS = re.compile(r"listens on (http://\S+)")
_KEPT = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "TMPDIR")


class Server:
    """Server that starts on construction; `stop` asks it to end, `kill` does not."""

    def __init__(self, data_dir: Path, command: Sequence[str] = SERVE, *, anew: bool = False, **settings: str) -> None:
        """With `anew` it starts in a new interpreter, as it also does where the command requires it."""
        self.data_dir = data_dir
        self.log = data_dir.parent / f"{data_dir.name}.log"
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= chosen.environment(data_dir) | settings
        whole = [*command, "--data-dir", str(data_dir)]
        with self.log.open("a") as log:
            self.process: subprocess.Popen[str] | ForkedProcess
            if anew or not can_be_forked(whole, environment):
                self.process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
            else:
                self.process = fork_process(whole, environment, log)
        self.base_url = self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> str:
        assert self.process.stdout is not None
        self.greeting = ""
        for line in self.process.stdout:
            self.greeting += line
            match = _LISTENS.search(line)
            if match:
                return match[1]
        self._reap()
        raise RuntimeError(f"the server did not start: {self.log.read_text()}")

    @property
    def owner_key(self) -> str:
        return (self.data_dir / "owner.key").read_text().strip()

    def spent(self) -> float:
        """Return its own CPU seconds, which do not include other work on this machine."""
        figures = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, figures[11:13])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """Ask it to stop, and wait until it has."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def kill(self) -> int:
        """Send SIGKILL."""
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

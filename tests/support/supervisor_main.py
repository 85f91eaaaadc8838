"""Supervisor with stub workers and short timeouts; prints the port and key once it is ready."""

import signal
import sys
from functools import partial
from pathlib import Path

from qwed.api.server.log_format import configure
from qwed.cli.multiprocess import supervisor
from tests.support.listening import reserve_address

ROOT = Path(__file__).parents[2]


def main(size: str, program: str, words: str, marks: str) -> int:
    """Run the supervisor and return its exit code."""
    configure("info")
    supervisor.FIRST_PAUSE = 0.01
    supervisor.LONGEST_PAUSE = 0.1
    supervisor.GRACE = 1.0
    # The test runner may ignore SIGHUP.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    reserved = reserve_address("127.0.0.1", 0)
    host, port = reserved.getsockname()
    layout = supervisor.WorkerLayout(host, port, 2, 2)
    command = (program, "-m", "tests.support.stub_worker", words, marks)
    on_ready = partial(print, port, flush=True)
    return supervisor.Supervisor(int(size), layout, command, {"PYTHONPATH": str(ROOT)}, on_ready).run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

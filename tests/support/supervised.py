"""A supervisor whose workers are stand-ins, and whose patience is short. Prints what it greets with."""

import signal
import sys
from functools import partial
from pathlib import Path

from qwed.api.logs import configure
from qwed.cli import serve
from qwed.cli.serving import supervisor

HOUSE = Path(__file__).parents[2]


def main(size: str, program: str, words: str, marks: str) -> int:
    """The exit code of the supervisor."""
    configure("info")
    supervisor.FIRST_PAUSE = 0.01
    supervisor.LONGEST_PAUSE = 0.1
    supervisor.GRACE = 1.0
    # A test's own program may have been told to ignore it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    reserved = serve._reserve("127.0.0.1", 0)
    host, port = reserved.getsockname()
    place = supervisor.Place(host, port, 2, 2)
    command = (program, "-m", "tests.support.stand_in", words, marks)
    greet = partial(print, port, flush=True)
    return supervisor.Supervisor(int(size), place, command, {"PYTHONPATH": str(HOUSE)}, greet).run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Stub worker for a real supervisor: it answers every connection with its number and process id.

A file sets its behaviour, one word per line: `refuse` makes it exit before it is ready, `refuse others` all but the
first worker, `deaf` makes it ignore SIGTERM.
"""

import os
import signal
import sys
from pathlib import Path

import msgspec

from qwed.cli.multiprocess.process import bind_socket, exit_with_parent
from qwed.cli.multiprocess.worker_args import WorkerArgs, WorkerReady


def main(words: Path, marks: Path) -> None:
    """Run the worker that the arguments describe."""
    arguments = WorkerArgs.decode(sys.argv[-1])
    exit_with_parent(arguments.supervisor)
    behaviour = words.read_text().split("\n")
    with marks.open("a") as file:
        print("begun", arguments.number, os.getpid(), file=file)
    if "refuse" in behaviour or ("refuse others" in behaviour and arguments.number > 0):
        print("qwed: the reason", file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in behaviour else lambda *_: sys.exit(0))
    _answer(arguments, marks)


def _answer(arguments: WorkerArgs, marks: Path) -> None:
    listening = bind_socket(arguments.host, arguments.port, shared=True)
    listening.listen(100)
    with marks.open("a") as file:
        print("ready", arguments.number, os.getpid(), file=file)
    os.write(
        arguments.ready_fd, msgspec.json.encode(WorkerReady(owner_key="the key" if arguments.number == 0 else None))
    )
    while True:
        with listening.accept()[0] as connection:
            connection.sendall(b"%d %d" % (arguments.number, os.getpid()))


main(Path(sys.argv[1]), Path(sys.argv[2]))

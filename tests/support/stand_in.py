"""A worker under a real supervisor that answers every connection with its number and process id, and no more.

What it does beside that stands in a file, one word a line: `refuse` ends it before it is ready, `refuse others` all but
the first, `deaf` has it stay when it is told to stop.
"""

import os
import signal
import sys
from pathlib import Path

import msgspec

from qwed.cli.serving.orders import Orders, Ready
from qwed.cli.serving.process import bound_to, end_with


def main(words: Path, marks: Path) -> None:
    """Be a worker as the orders say."""
    orders = Orders.read(sys.argv[-1])
    end_with(orders.supervisor)
    told = words.read_text().split("\n")
    with marks.open("a") as file:
        print("begun", orders.number, os.getpid(), file=file)
    if "refuse" in told or ("refuse others" in told and orders.number > 0):
        print("qwed: the reason", file=sys.stderr)
        sys.exit(2)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in told else lambda *_: sys.exit(0))
    _answer(orders, marks)


def _answer(orders: Orders, marks: Path) -> None:
    listening = bound_to(orders.host, orders.port, shared=True)
    listening.listen(100)
    with marks.open("a") as file:
        print("ready", orders.number, os.getpid(), file=file)
    os.write(orders.line, msgspec.json.encode(Ready(owner_key="the key" if orders.number == 0 else None)))
    while True:
        with listening.accept()[0] as connection:
            connection.sendall(b"%d %d" % (orders.number, os.getpid()))


main(Path(sys.argv[1]), Path(sys.argv[2]))

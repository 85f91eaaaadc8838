"""One of several servers: a fresh process that the supervisor started, and that ends with it."""

import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from qwed.api.crew import Crew
from qwed.cli.opening import opening
from qwed.cli.printing import quietly
from qwed.cli.serve import _serve
from qwed.cli.serving.orders import Orders, Ready
from qwed.cli.serving.process import bound_to, end_with
from qwed.engines.bound import Seat
from qwed.settings import settings_from


class Membership(NamedTuple):
    """What a server has that is one of several."""

    seat: Seat
    crew: Crew
    ready: Callable[[str | None], None]
    """Called once it listens; on the very first start with the owner's key."""


def main(line: str) -> None:
    """Serve until told to stop, or until the supervisor is gone."""
    orders = Orders.read(line)
    end_with(orders.supervisor)
    sys.exit(quietly(lambda: _work(orders)))


def _work(orders: Orders) -> int:
    settings = settings_from()
    speaking = socket.socket(fileno=orders.line)

    def ready(owner_key: str | None) -> None:
        with speaking:
            speaking.sendall(msgspec.json.encode(Ready(owner_key=owner_key)))

    seat = Seat(socket.socket(fileno=orders.bound), orders.engine_workers)
    membership = Membership(seat, Crew(orders.number, orders.slates), ready)
    with opening(settings.data_dir):
        listening = bound_to(orders.host, orders.port, shared=True)
    with listening:
        return _serve(settings, listening, membership=membership)

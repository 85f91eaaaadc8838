"""Where a program listens for clients over HTTP."""

import ipaddress
import socket
from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """An address, and the names that clients may call it by besides."""

    host: str = "127.0.0.1"
    port: int = 8765
    names: Sequence[str] = ()

    def spelled(self) -> list[str]:
        """Its names as a Host spells them."""
        return [f"[{name}]" if ":" in name and name[0] != "[" else name.lower() for name in (self.host, *self.names)]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listen(place: Place) -> socket.socket:
    """A socket on the place; OSError where that cannot be."""
    host = place.host.strip("[]")
    found = socket.getaddrinfo(host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening

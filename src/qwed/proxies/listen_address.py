"""Address on which a proxy listens for HTTP clients."""

import ipaddress
import socket
from collections.abc import Sequence
from typing import NamedTuple


class ListenAddress(NamedTuple):
    """Host and port, and further names that clients may use in Host."""

    host: str = "127.0.0.1"
    port: int = 8765
    names: Sequence[str] = ()

    def host_header_names(self) -> list[str]:
        """Return its names as the Host header spells them."""
        return [f"[{name}]" if ":" in name and name[0] != "[" else name.lower() for name in (self.host, *self.names)]


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listen(address: ListenAddress) -> socket.socket:
    """Return a socket that listens on the address; raise OSError if it cannot."""
    host = address.host.strip("[]")
    candidates = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, socket_address = candidates[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(socket_address)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener

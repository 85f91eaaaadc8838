"""Command-line options of the A2A proxy."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from qwed.proxies.cli_options import require_private_transport
from qwed.proxies.listen_address import ListenAddress, is_loopback
from qwed.proxies.server_name import MAX_NAME_LENGTH, is_proxy_name, to_server_name
from qwed_sdk.errors import UsageError

_MAX_PORT = 65_535


def parse_address(text: str, option: str) -> str:
    """Return the URL without a trailing slash; raise UsageError if it has a user, query or fragment, or is not one."""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and parts.hostname and text.isascii() and text.isprintable()
        _ = parts.port
    except ValueError:
        fits = None
    if not fits or set(text) & set(" @?#\\"):
        raise UsageError(f"{option} must look like https://agents.example.com/one, without a user, query or fragment")
    return parts.geturl().rstrip("/")


def agent_name(requested: str | None, upstream: str) -> str:
    """Return the given name of the agent, else one made from its address."""
    name = to_server_name(upstream.partition("://")[2], "agent") if requested is None else requested
    if not is_proxy_name(name):
        raise UsageError(f"--name must be letters, digits, `-` and `.`, at most {MAX_NAME_LENGTH} of them")
    return name


def check_headers(headers: Mapping[str, str], upstream: str) -> Mapping[str, str]:
    """Return the headers; raise UsageError if they cannot be sent or would be sent unencrypted."""
    for name, value in headers.items():
        if not (name.isascii() and name.replace("-", "").isalnum()):
            raise UsageError("--header-env must name a header in letters, digits and `-`, such as Authorization")
        if not (value.isascii() and value.isprintable()):
            raise UsageError(f"the value of the header {name} must be printable ASCII, in one line")
    require_private_transport(upstream, headers)
    return headers


def parse_listen_address(text: str, *, allow_remote: bool) -> ListenAddress:
    """Return the address to listen on; raise UsageError if other machines can connect without --allow-remote."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not (port.isascii() and port.isdigit()) or int(port[:6]) > _MAX_PORT:
        raise UsageError("--listen must be an address and a port, such as 127.0.0.1:9000")
    if not is_loopback(host) and not allow_remote:
        raise UsageError(
            f"{host} can be reached from other machines, and tokens would cross the network unencrypted: listen on "
            "127.0.0.1 behind a server that has TLS, or add --allow-remote"
        )
    return ListenAddress(host.strip("[]"), int(port))


def default_public_url(host: str, port: int) -> str:
    """Return the URL for clients if none is given; raise UsageError if the address is not one that clients can use."""
    try:
        everywhere = ip_address(host).is_unspecified
    except ValueError:
        everywhere = False
    if everywhere:
        raise UsageError(f"clients cannot use the address {host}: set --public-url to the address of the proxy")
    return f"http://{_bracketed(host)}:{port}"


def accepted_hosts(host: str, port: int) -> tuple[str, ...]:
    """Return further Host values for clients on this machine."""
    names = {_bracketed(host)} | ({"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set())
    return tuple(f"{name}:{port}" for name in sorted(names))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

"""What is given to the proxy on its command line, read and refused by name."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from qwed.proxies.listening import Place, is_loopback
from qwed.proxies.naming import LONGEST, is_name, plain_name
from qwed.proxies.secrecy import check_secrets
from qwed_sdk.hook.call import Unusable

_LARGEST_PORT = 65_535


def address(given: str, option: str) -> str:
    """An address without anything that would be lost or read by others; Unusable where it is none."""
    try:
        parts = urlsplit(given)
        fits = parts.scheme in ("http", "https") and parts.hostname and given.isascii() and given.isprintable()
        _ = parts.port
    except ValueError:
        fits = None
    if not fits or set(given) & set(" @?#\\"):
        raise Unusable(f"{option} must look like https://agents.example.com/one, without a user, query or fragment")
    return parts.geturl().rstrip("/")


def name_for(given: str | None, upstream: str) -> str:
    """What the agent is called: as it was said, else after where it is found."""
    name = plain_name(upstream.partition("://")[2], "agent") if given is None else given
    if not is_name(name):
        raise Unusable(f"--name must be letters, digits, `-` and `.`, at most {LONGEST} of them")
    return name


def plain_headers(headers: Mapping[str, str], upstream: str) -> Mapping[str, str]:
    """The headers, where they can be sent and nobody on the way reads them."""
    for name, value in headers.items():
        if not (name.isascii() and name.replace("-", "").isalnum()):
            raise Unusable("--header-env must name a header in letters, digits and `-`, such as Authorization")
        if not (value.isascii() and value.isprintable()):
            raise Unusable(f"the value of the header {name} must be printable ASCII, in one line")
    check_secrets(upstream, headers)
    return headers


def place_for(given: str, *, allow_remote: bool) -> Place:
    """Where to listen; Unusable where other machines could come in and nobody said that they may."""
    host, separator, port = given.rpartition(":")
    if not separator or not host or not (port.isascii() and port.isdigit()) or int(port[:6]) > _LARGEST_PORT:
        raise Unusable("--listen must be an address and a port, such as 127.0.0.1:9000")
    if not is_loopback(host) and not allow_remote:
        raise Unusable(
            f"{host} can be reached from other machines, and tokens would cross the network unencrypted: listen on "
            "127.0.0.1 behind a server that has TLS, or add --allow-remote"
        )
    return Place(host.strip("[]"), int(port))


def found_at(host: str, port: int) -> str:
    """The address that clients are told where nobody says another; Unusable where it would lead nowhere."""
    try:
        everywhere = ip_address(host).is_unspecified
    except ValueError:
        everywhere = False
    if everywhere:
        raise Unusable(f"{host} is no address that clients could use: say with --public-url how they find the proxy")
    return f"http://{_spelt(host)}:{port}"


def hosts_of(host: str, port: int) -> tuple[str, ...]:
    """How clients on this machine may call it besides."""
    names = {_spelt(host)} | ({"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set())
    return tuple(f"{name}:{port}" for name in sorted(names))


def _spelt(host: str) -> str:
    return f"[{host}]" if ":" in host else host

"""DESIGN 4.10: where a webhook may lead. The text is judged when it is set, the addresses at every delivery."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from qwed.guards.ranges import Address, forbidden_kind, read_address

MAX_LENGTH = 2048
PORTS = {"https": 443, "http": 80}
FIRST_FREE_PORT = 1024
"""Below it stand mail, shells and file shares; of those ports only the two of HTTP are receivers."""

ResolveName = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host as text; OSError where it has none."""


class Refused(NamedTuple):
    """Why not, as the end of a sentence about the URL."""

    why: str


class Target(NamedTuple):
    """A URL that may be used, taken apart once."""

    scheme: str
    host: str
    """Lower case, without brackets and without the last dot."""
    port: int
    path: str
    """With the query, as the request line has it."""

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(#.*)?", re.DOTALL)
_PRINTABLE = re.compile(r"[\x21-\x7e]*")
_AUTHORITY = re.compile(r"(\[(?=[^\]]*:)[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,254})(?::([1-9][0-9]{0,4}))?")
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253

_PRIVATE_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion", "test", "invalid")
_HOW_TO_ALLOW = "use a public one, or set QWED_WEBHOOK_ALLOW_PRIVATE=true"


def refuse_url(url: str, allow_private: bool) -> str | None:
    """A sentence why `url` cannot be a webhook, or None where nothing in its text speaks against it."""
    target = read_url(url, allow_private)
    return target.why if isinstance(target, Refused) else None


def read_url(url: str, allow_private: bool) -> Target | Refused:
    """The parts of a URL that may be a webhook. Nothing is looked up; see `resolve`."""
    if len(url) > MAX_LENGTH:
        return Refused(f"the webhook URL has {len(url)} characters: {MAX_LENGTH} is the most")
    if not _PRINTABLE.fullmatch(url):
        return Refused(
            "the webhook URL must be printable ASCII: write other names in their `xn--` form, escape the rest"
        )
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return Refused("the webhook URL must be written out, as in `https://example.com/notices`")
    scheme, authority, path, fragment = parts.groups()
    return _refuse_parts(scheme.lower(), authority, path, fragment, allow_private) or _read_authority(
        scheme.lower(), authority, path, allow_private
    )


def _refuse_parts(scheme: str, authority: str, path: str, fragment: str | None, allow_private: bool) -> Refused | None:
    if scheme not in PORTS:
        return Refused("the webhook URL must begin with `https://`")
    if scheme == "http" and not allow_private:
        return Refused("the webhook URL must begin with `https://`: plain http needs QWED_WEBHOOK_ALLOW_PRIVATE=true")
    if "@" in authority:
        return Refused("the webhook URL must not hold a user name or password: notices are signed instead")
    if fragment is not None:
        return Refused("the webhook URL must not have a fragment: leave out `#` and what follows it")
    if not _PATH.fullmatch(path):
        return Refused("the path of the webhook URL holds a character that must be percent-encoded")
    return None


def _read_authority(scheme: str, authority: str, path: str, allow_private: bool) -> Target | Refused:
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        return Refused("the webhook URL must name a host and at most a port, as in `https://example.com:8443/notices`")
    host = found[1].lower().removesuffix(".")
    port = int(found[2] or PORTS[scheme])
    if not (port in PORTS.values() or FIRST_FREE_PORT <= port <= 65_535):
        return Refused(f"the port `{port}` cannot be a webhook's: use 443, 80 or one from {FIRST_FREE_PORT} to 65535")
    refused = _refuse_host(host, allow_private)
    return refused or Target(scheme, host.strip("[]"), port, path if path.startswith("/") else f"/{path}")


def _refuse_host(host: str, allow_private: bool) -> Refused | None:
    if host.startswith("[") or _NUMBER.fullmatch(host.rpartition(".")[2]):
        address = read_address(host.strip("[]"))
        if address is None:
            return Refused(f"the address `{host}` is not in its plain form: write all four numbers in decimal, or IPv6")
        return _refuse_address(address, allow_private)
    if len(host) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, host.split("."))):
        return Refused(f"`{host}` is not the name of a host")
    if not allow_private and ("." not in host or host.endswith(tuple(f".{name}" for name in _PRIVATE_NAMES))):
        return Refused(f"the host `{host}` has a private name: {_HOW_TO_ALLOW}")
    return None


def _refuse_address(address: Address, allow_private: bool) -> Refused | None:
    kind = forbidden_kind(address, allow_private)
    if kind is None:
        return None
    advice = "use a public one" if forbidden_kind(address, True) else _HOW_TO_ALLOW
    return Refused(f"the address `{address}` is {kind}: {advice}")


async def resolve(
    host: str, port: int, allow_private: bool, resolve_name: ResolveName
) -> tuple[Address, ...] | Refused:
    """Every address of `host`, asked for once, or why none may be used: one bad address spoils the name."""
    literal = read_address(host)
    if literal is not None:
        return _refuse_address(literal, allow_private) or (literal,)
    try:
        texts = await resolve_name(host, port)
    except (OSError, UnicodeError):
        return Refused("the name of the host was not found")
    addresses: dict[Address, None] = {}
    for text in texts:
        address = read_address(text)
        kind = "not readable" if address is None else forbidden_kind(address, allow_private)
        if address is None or kind is not None:
            return Refused(f"the name of the host leads to an address that is {kind}")
        addresses[address] = None
    return tuple(addresses) or Refused("the name of the host was not found")

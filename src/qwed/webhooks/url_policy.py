"""Policy for webhook URLs: the text is checked when it is set, the addresses at every delivery (DESIGN 4.10)."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from qwed.guards.ip_ranges import Address, forbidden_kind, read_address

MAX_LENGTH = 2048
PORTS = {"https": 443, "http": 80}
FIRST_UNPRIVILEGED_PORT = 1024
"""Ports below serve mail, shells and file shares; of those only 80 and 443 are allowed."""

ResolveName = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host as text; raises OSError if it has none."""


class UrlRejection(NamedTuple):
    """Reason why a URL cannot be a webhook."""

    reason: str


class Target(NamedTuple):
    """Parsed URL that is allowed."""

    scheme: str
    host: str
    """Lower case, without brackets and trailing dot."""
    port: int
    path: str
    """Path with the query, as in the request line."""

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(#.*)?", re.DOTALL)
_PRINTABLE = re.compile(r"[\x21-\x7e]*")
_AUTHORITY = re.compile(r"(\[(?=[^\]]*:)[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,254})(?::([1-9][0-9]{0,4}))?")
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME_LENGTH = 253

_PRIVATE_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion", "test", "invalid")
_HOW_TO_ALLOW = "use a public one, or set QWED_WEBHOOK_ALLOW_PRIVATE=true"


def url_error(url: str, allow_private: bool) -> str | None:
    """Return the reason why `url` cannot be a webhook, or None. The host is not resolved."""
    target = parse_webhook_url(url, allow_private)
    return target.reason if isinstance(target, UrlRejection) else None


def parse_webhook_url(url: str, allow_private: bool) -> Target | UrlRejection:
    """Parse a URL that is allowed as a webhook. The host is not resolved; see `resolve`."""
    if len(url) > MAX_LENGTH:
        return UrlRejection(f"the webhook URL has {len(url)} characters: use at most {MAX_LENGTH}")
    if not _PRINTABLE.fullmatch(url):
        return UrlRejection(
            "the webhook URL must be printable ASCII: write other host names as `xn--...`, percent-encode the rest"
        )
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return UrlRejection("the webhook URL must be absolute, as in `https://example.com/notices`")
    scheme, authority, path, fragment = parts.groups()
    return _reject_parts(scheme.lower(), authority, path, fragment, allow_private) or _read_authority(
        scheme.lower(), authority, path, allow_private
    )


def _reject_parts(
    scheme: str, authority: str, path: str, fragment: str | None, allow_private: bool
) -> UrlRejection | None:
    if scheme not in PORTS:
        return UrlRejection("the webhook URL must begin with `https://`")
    if scheme == "http" and not allow_private:
        return UrlRejection(
            "the webhook URL must begin with `https://`: plain http needs QWED_WEBHOOK_ALLOW_PRIVATE=true"
        )
    if "@" in authority:
        return UrlRejection("the webhook URL must not contain a user name or password: notices are signed instead")
    if fragment is not None:
        return UrlRejection("the webhook URL must not have a fragment: remove `#` and what follows")
    if not _PATH.fullmatch(path):
        return UrlRejection("the path of the webhook URL contains a character that must be percent-encoded")
    return None


def _read_authority(scheme: str, authority: str, path: str, allow_private: bool) -> Target | UrlRejection:
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return UrlRejection(
            "the webhook URL must name a host and at most a port, as in `https://example.com:8443/notices`"
        )
    host = match[1].lower().removesuffix(".")
    port = int(match[2] or PORTS[scheme])
    if not (port in PORTS.values() or FIRST_UNPRIVILEGED_PORT <= port <= 65_535):
        return UrlRejection(
            f"the port `{port}` is not allowed for a webhook: use 443, 80 or {FIRST_UNPRIVILEGED_PORT} to 65535"
        )
    rejection = _reject_host(host, allow_private)
    return rejection or Target(scheme, host.strip("[]"), port, path if path.startswith("/") else f"/{path}")


def _reject_host(host: str, allow_private: bool) -> UrlRejection | None:
    if host.startswith("[") or _NUMBER.fullmatch(host.rpartition(".")[2]):
        address = read_address(host.strip("[]"))
        if address is None:
            return UrlRejection(
                f"the address `{host}` is not in its plain form: write all four numbers in decimal, or IPv6"
            )
        return _reject_address(address, allow_private)
    if len(host) > _MAX_NAME_LENGTH or not all(map(_LABEL.fullmatch, host.split("."))):
        return UrlRejection(f"`{host}` is not a valid host name")
    if not allow_private and ("." not in host or host.endswith(tuple(f".{name}" for name in _PRIVATE_NAMES))):
        return UrlRejection(f"the host `{host}` has a private name: {_HOW_TO_ALLOW}")
    return None


def _reject_address(address: Address, allow_private: bool) -> UrlRejection | None:
    kind = forbidden_kind(address, allow_private)
    if kind is None:
        return None
    advice = "use a public one" if forbidden_kind(address, True) else _HOW_TO_ALLOW
    return UrlRejection(f"the address `{address}` is {kind}: {advice}")


async def resolve(
    host: str, port: int, allow_private: bool, resolve_name: ResolveName
) -> tuple[Address, ...] | UrlRejection:
    """Return every address of `host`, or the reason why it is refused: one forbidden address refuses the name."""
    literal = read_address(host)
    if literal is not None:
        return _reject_address(literal, allow_private) or (literal,)
    try:
        texts = await resolve_name(host, port)
    except (OSError, UnicodeError):
        return UrlRejection("the host name was not found")
    addresses: dict[Address, None] = {}
    for text in texts:
        address = read_address(text)
        kind = "not readable" if address is None else forbidden_kind(address, allow_private)
        if address is None or kind is not None:
            return UrlRejection(f"the host name resolves to an address that is {kind}")
        addresses[address] = None
    return tuple(addresses) or UrlRejection("the host name was not found")

"""Non-public IP address ranges. The tables are our own because `ipaddress.is_global` differs between Python versions.

Sources: the IANA special-purpose registries for IPv4 and IPv6, and the addresses of cloud metadata services.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address

_METADATA = "a cloud's metadata service"
_NEVER = {
    # No setting may allow these: a metadata service serves the machine's own credentials.
    _METADATA: (
        "100.100.100.200/32",
        "168.63.129.16/32",
        "169.254.169.254/32",
        "169.254.170.2/32",
        "169.254.170.23/32",
        "192.0.0.192/32",
        "fd00:ec2::23/128",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    ),
    "unspecified": ("0.0.0.0/8", "::/128"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
    "reserved": ("240.0.0.0/4", "192.0.0.0/24", "2001::/23", "64:ff9b:1::/48"),
    "for documentation": ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    "for measurements": ("198.18.0.0/15",),
    "a relay": ("192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24", "2620:4f:8000::/48"),
    "a tunnel": ("2002::/16",),
}
_PRIVATE = {
    "loopback": ("127.0.0.0/8", "::1/128"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "shared with a carrier": ("100.64.0.0/10",),
}

_Table = tuple[tuple[IPv4Network | IPv6Network, str], ...]


def _table(kinds: Mapping[str, tuple[str, ...]]) -> _Table:
    return tuple((ip_network(text), kind) for kind, texts in kinds.items() for text in texts)


NEVER = _table(_NEVER)
PRIVATE = _table(_PRIVATE)
_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_WRAPPERS = (_MAPPED, IPv6Network("64:ff9b::/96"))
"""Prefixes whose last 32 bits are the IPv4 address that is reached; the second one is used by DNS64."""


def read_address(text: str) -> Address | None:
    """Parse an IP address; an IPv4-mapped IPv6 address becomes IPv4. None if the text is not an address or has a zone
    id."""
    if "%" in text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return _unwrap_mapped(address) if address in _MAPPED else address


def forbidden_kind(address: Address, allow_private: bool) -> str | None:
    """Return the kind of address if no notification may be sent to it, else None."""
    reached = _unwrap_mapped(address)
    kind = _kind_in(NEVER, reached)
    if kind is None and not allow_private:
        kind = _kind_in(PRIVATE, reached)
    return kind or _reserved_kind(reached)


def is_metadata(address: Address) -> bool:
    """Return True if the address is a cloud metadata service, which serves the machine's own credentials."""
    return _kind_in(NEVER, _embedded_ipv4(address)) == _METADATA


def is_internal(address: Address) -> bool:
    """Return True if only this machine or its own network can answer at the address."""
    reached = _embedded_ipv4(address)
    return _kind_in(PRIVATE, reached) is not None or _kind_in(NEVER, reached) == "unspecified"


_COMPATIBLE = IPv6Network("::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")


def _embedded_ipv4(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address in any of the known ways."""
    if address in _SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFF_FFFF)
    if address in _COMPATIBLE and int(address) > 0xFFFF:
        return IPv4Address(int(address))
    return _unwrap_mapped(address)


def _unwrap_mapped(address: Address) -> Address:
    if any(address in wrapper for wrapper in _WRAPPERS):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _kind_in(table: _Table, address: Address) -> str | None:
    return next((kind for network, kind in table if address in network), None)


def _reserved_kind(address: Address) -> str | None:
    is_assigned = address.version == 4 or address in _UNICAST or _kind_in(PRIVATE, address) is not None
    return None if is_assigned else "reserved"

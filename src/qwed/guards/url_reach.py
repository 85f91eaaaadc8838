"""Classify the host of a URL by its text: public, internal, unclear, or a cloud metadata service.

Names are not resolved: a public name that resolves to an internal address must be stopped by the code that connects.
"""

import re
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote

from qwed.guards.ip_ranges import Address, is_internal, is_metadata
from qwed.model.unicode_normal import normalize

MAX_LENGTH = 4_096


class Reach(StrEnum):
    """Kind of host at an address, ordered by severity."""

    PUBLIC = "public"
    INTERNAL = "internal"
    UNCLEAR = "unclear"
    METADATA = "metadata"


WEIGHT = {reach: weight for weight, reach in enumerate(Reach)}
# For these schemes programs accept any number of slashes of either kind.
# Schemes can be nested (`jar:http://...`); parsers disagree if the text after a backslash is path or host.
_URL = re.compile(
    r"\s*(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?"
    r"(?:(?:https?|wss?|ftp):[/\\]*|[a-z][a-z0-9+.-]{0,60}:[/\\]{2,}|[/\\]{2,})([^/?#]*)",
    re.IGNORECASE,
)
_BARE = re.compile(r"[^/\\?#]*")
_NO_HOST = re.compile("[\\x00-\\x1f<>\"'=\u200b-\u200f\u2060\ufeff]")
_BETWEEN = re.compile(r"[@/\\?#]")
_DROPPED = str.maketrans("", "", "\t\r\n")
"""Characters that browsers remove from a URL."""
_PORT = re.compile(r":\d*\Z")
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
_MISREAD = re.compile(r"[\x00-\x20\\<>\"^`{|}]|[^\x00-\x7f]")
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
_INTERNAL_ENDS = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "svc",
    "consul",
)
"""Suffixes that no public registry assigns, and some that resolve to the local host by design."""
# These names resolve to the address that precedes the suffix.
_EMBEDDED_IPV4 = re.compile(
    r"(?:.*[.-])?(?:(\d{1,3}[.-]\d{1,3}[.-]\d{1,3}[.-]\d{1,3})|([0-9a-f]{8}))\.(?:nip\.io|sslip\.io|xip\.io)"
)

_EMBEDDED_IPV6 = re.compile(r"(?:.*\.)?([0-9a-f]{0,4}(?:-[0-9a-f]{0,4}){2,7})\.sslip\.io")


def reach_of(address: str) -> Reach:
    """Classify a URL, or a host with or without a port; if it can be read in several ways, the most severe counts."""
    if len(address) > MAX_LENGTH:
        return Reach.UNCLEAR
    stripped = address.strip().translate(_DROPPED)
    # A parser that does not remove these characters finds another host, or none.
    has_dropped = stripped != address.strip()
    address = stripped
    url = _URL.match(address)
    authority = url[1] if url else (_BARE.match(address) or [""])[0]
    readings = {authority, _decode_authority(authority)}
    # The host of `a@b` is b for most parsers and a for some: check both.
    hosts = [_BETWEEN.split(reading) for reading in readings]
    results = [
        _reach_of_host(host, named=url is not None and index == len(parts) - 1)
        for parts in hosts
        for index, host in enumerate(parts)
    ]
    if has_dropped or (_is_unclear(authority) if url else _NO_HOST.search(authority.strip())):
        results.append(Reach.UNCLEAR)
    return max(results, key=WEIGHT.__getitem__, default=Reach.PUBLIC)


_TWO_PORTS = re.compile(r"[^\[\]]*:[^\[\]]*:[^\[\]]*")


def _is_unclear(authority: str) -> bool:
    """Return True if URL parsers disagree about the host or find none."""
    host = authority.rpartition("@")[2]
    two_ports = _TWO_PORTS.fullmatch(host) and _parse_ip(host) is None
    return bool(
        _MISREAD.search(authority)
        or not authority.strip()
        or two_ports
        or re.search(r"%(?:25)*(?:2f|5c|3f|23)", authority, re.IGNORECASE)
    )


def _decode_authority(authority: str) -> str:
    return normalize("NFKC", unquote(unquote(authority)).translate(_DOTS))


def _reach_of_host(text: str, *, named: bool) -> Reach:
    host = _PORT.sub("", text.strip().lower()).rstrip(".") if text.count(":") <= 1 or "]" in text else text.lower()
    ip = _parse_ip(host.strip("[]"))
    if ip is not None:
        return _reach_of_ip(ip)
    if host in _METADATA_NAMES or host.endswith((".metadata.google.internal", "instance-data.ec2.internal")):
        return Reach.METADATA if named or "." in host else Reach.PUBLIC
    inside = any(host == suffix or host.endswith(f".{suffix}") for suffix in _INTERNAL_ENDS)
    # A name without a dot resolves in the local network or not at all.
    one_word = named and bool(host) and "." not in host
    return Reach.INTERNAL if inside or one_word else Reach.PUBLIC


def _reach_of_ip(ip: Address) -> Reach:
    if is_metadata(ip):
        return Reach.METADATA
    return Reach.INTERNAL if is_internal(ip) else Reach.PUBLIC


def _parse_ip(host: str) -> Address | None:
    """Parse an IP address in every notation a C library accepts: decimal, hexadecimal, octal, with omitted parts."""
    ipv4 = _EMBEDDED_IPV4.fullmatch(host)
    if ipv4 is not None:
        return _parse_ipv4(f"0x{ipv4[2]}") if ipv4[2] else _parse_ipv4(ipv4[1].replace("-", "."))
    ipv6 = _EMBEDDED_IPV6.fullmatch(host)
    if ipv6 is not None:
        host = ipv6[1].replace("-", ":")
    if ":" in host:
        try:
            return IPv6Address(host.partition("%")[0])
        except AddressValueError:
            return None
    return _parse_ipv4(host)


_PART = re.compile(r"0x[0-9a-f]{1,16}|0[0-7]{0,22}|[1-9][0-9]{0,19}")


def _parse_ipv4(host: str) -> IPv4Address | None:
    parts = host.split(".")
    if not 1 <= len(parts) <= 4 or not all(map(_PART.fullmatch, parts)):
        return None
    *heads, last = [int(part, 0 if part.startswith("0x") else 8 if part.startswith("0") else 10) for part in parts]
    if any(head > 0xFF for head in heads):
        return None
    value = sum(head << (24 - 8 * index) for index, head in enumerate(heads))
    return IPv4Address((value + last % (1 << (32 - 8 * len(heads)))) & 0xFFFF_FFFF)

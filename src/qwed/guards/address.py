"""Who answers at an address, read off its text alone: the world, a house of our own, or a cloud that hands out keys.

Names are not looked up: a public name that leads inside is stopped by whoever connects, not by us.
"""

import re
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote

from qwed.guards.ranges import Address, is_internal, is_metadata
from qwed.words.normal import normalize

MAX_LENGTH = 4_096


class Reach(StrEnum):
    """Who answers there, the gravest last."""

    PUBLIC = "public"
    INTERNAL = "internal"
    UNCLEAR = "unclear"
    METADATA = "metadata"


WEIGHT = {reach: weight for weight, reach in enumerate(Reach)}
# Of these schemes programs take any number of slashes, and either kind.
# One may stand in another (`jar:http://...`); what follows a backslash is the path for some and the host for others.
_URL = re.compile(
    r"\s*(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?"
    r"(?:(?:https?|wss?|ftp):[/\\]*|[a-z][a-z0-9+.-]{0,60}:[/\\]{2,}|[/\\]{2,})([^/?#]*)",
    re.IGNORECASE,
)
_BARE = re.compile(r"[^/\\?#]*")
_NO_HOST = re.compile("[\\x00-\\x1f<>\"'=\u200b-\u200f\u2060\ufeff]")
_BETWEEN = re.compile(r"[@/\\?#]")
_DROPPED = str.maketrans("", "", "\t\r\n")
"""What browsers leave out of an address."""
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
"""Names that no public register gives away, and some that lead home by design."""
# What stands before these is the address they lead to.
_LEADS_TO = re.compile(
    r"(?:.*[.-])?(?:(\d{1,3}[.-]\d{1,3}[.-]\d{1,3}[.-]\d{1,3})|([0-9a-f]{8}))\.(?:nip\.io|sslip\.io|xip\.io)"
)

_LEADS_TO_SIX = re.compile(r"(?:.*\.)?([0-9a-f]{0,4}(?:-[0-9a-f]{0,4}){2,7})\.sslip\.io")


def reach_of(address: str) -> Reach:
    """Who answers at a URL, or at a host with or without a port; the gravest reading counts."""
    if len(address) > MAX_LENGTH:
        return Reach.UNCLEAR
    plain = address.strip().translate(_DROPPED)
    # Who leaves nothing out finds another host there, or none.
    split = plain != address.strip()
    address = plain
    url = _URL.match(address)
    authority = url[1] if url else (_BARE.match(address) or [""])[0]
    readings = {authority, _plain(authority)}
    # `a@b` is b for most and a for some: neither may be what nobody wanted.
    hosts = [_BETWEEN.split(each) for each in readings]
    found = [
        _reach_of_host(host, named=url is not None and at == len(told) - 1)
        for told in hosts
        for at, host in enumerate(told)
    ]
    if split or (_is_unclear(authority) if url else _NO_HOST.search(authority.strip())):
        found.append(Reach.UNCLEAR)
    return max(found, key=WEIGHT.__getitem__, default=Reach.PUBLIC)


_TWO_PORTS = re.compile(r"[^\[\]]*:[^\[\]]*:[^\[\]]*")


def _is_unclear(authority: str) -> bool:
    """Whether readers of a URL differ about its host, or find none."""
    host = authority.rpartition("@")[2]
    two_ports = _TWO_PORTS.fullmatch(host) and _read_ip(host) is None
    return bool(
        _MISREAD.search(authority)
        or not authority.strip()
        or two_ports
        or re.search(r"%(?:25)*(?:2f|5c|3f|23)", authority, re.IGNORECASE)
    )


def _plain(authority: str) -> str:
    return normalize("NFKC", unquote(unquote(authority)).translate(_DOTS))


def _reach_of_host(text: str, *, named: bool) -> Reach:
    host = _PORT.sub("", text.strip().lower()).rstrip(".") if text.count(":") <= 1 or "]" in text else text.lower()
    ip = _read_ip(host.strip("[]"))
    if ip is not None:
        return _reach_of_ip(ip)
    if host in _METADATA_NAMES or host.endswith((".metadata.google.internal", "instance-data.ec2.internal")):
        return Reach.METADATA if named or "." in host else Reach.PUBLIC
    inside = any(host == each or host.endswith(f".{each}") for each in _INTERNAL_ENDS)
    # A name of one word is found in the house or not at all.
    one_word = named and bool(host) and "." not in host
    return Reach.INTERNAL if inside or one_word else Reach.PUBLIC


def _reach_of_ip(ip: Address) -> Reach:
    if is_metadata(ip):
        return Reach.METADATA
    return Reach.INTERNAL if is_internal(ip) else Reach.PUBLIC


def _read_ip(host: str) -> Address | None:
    """The address in every spelling that a C library takes: decimal, hexadecimal, octal, with parts left out."""
    led = _LEADS_TO.fullmatch(host)
    if led is not None:
        return _number(f"0x{led[2]}") if led[2] else _number(led[1].replace("-", "."))
    led_to_six = _LEADS_TO_SIX.fullmatch(host)
    if led_to_six is not None:
        host = led_to_six[1].replace("-", ":")
    if ":" in host:
        try:
            return IPv6Address(host.partition("%")[0])
        except AddressValueError:
            return None
    return _number(host)


_PART = re.compile(r"0x[0-9a-f]{1,16}|0[0-7]{0,22}|[1-9][0-9]{0,19}")


def _number(host: str) -> IPv4Address | None:
    parts = host.split(".")
    if not 1 <= len(parts) <= 4 or not all(map(_PART.fullmatch, parts)):
        return None
    *heads, last = [int(part, 0 if part.startswith("0x") else 8 if part.startswith("0") else 10) for part in parts]
    if any(head > 0xFF for head in heads):
        return None
    value = sum(head << (24 - 8 * at) for at, head in enumerate(heads))
    return IPv4Address((value + last % (1 << (32 - 8 * len(heads)))) & 0xFFFF_FFFF)

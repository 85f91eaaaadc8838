"""Canonical forms of hosts, addresses and paths, in which two spellings of one name are equal.

A name that programs may read in different ways has no canonical form.
"""

import posixpath
import re
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

from qwed.model.unicode_normal import normalize

_LABELS = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+))*")
"""Forms that some programs read as an IPv4 address: `2130706433`, `0x7f.1`, `010.0.0.1`."""
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d|1\d\d)(?:\.(?!\Z)|\Z)){4}")
_LEADING_ZERO = re.compile(r"(?:\A|\.)0\d")
_DIFFERENT_IN_IDNA = frozenset("\u00df\u03c2\u200c\u200d")
"""Letters that IDNA 2003 and 2008 write differently, so that programs reach different hosts."""
_AMBIGUOUS = re.compile(r"[\x00-\x20\\\x7f]")
_MAX_LENGTH = 8_192


def canonical_host(host: str) -> str | None:
    """Return the host in lower case and in the letters of DNS, or None if programs may read it differently."""
    if host.startswith("[") and host.endswith("]"):
        return _canonical_ipv6(host[1:-1])
    plain = _to_ascii(host)
    if plain is None:
        return None
    plain = plain.removesuffix(".")
    if _NUMBERS.fullmatch(plain):
        return plain if _IPV4.fullmatch(plain) and not _LEADING_ZERO.search(plain) else None
    return plain if _LABELS.fullmatch(plain) else None


def _canonical_ipv6(text: str) -> str | None:
    from ipaddress import AddressValueError, IPv6Address  # few actions name such an address

    try:
        address = IPv6Address(text)
    except AddressValueError:
        return None
    return None if address.scope_id is not None else address.compressed


def _to_ascii(host: str) -> str | None:
    if host.isascii():
        return host.lower()
    if len(host) > 253 or normalize("NFKC", host) != host or _DIFFERENT_IN_IDNA & set(host):
        return None
    if not all(character.isascii() or character.isalpha() for character in host):
        return None
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None


class CanonicalUrl(NamedTuple):
    """Host and path of an address."""

    host: str
    path: str | None
    """None if servers may read the path differently."""


def canonical_url(address: str, *, schemes: frozenset[str] | None = None) -> CanonicalUrl | None:
    """Return host and path of an absolute address, or None if it is not certain which host it names.

    A user before the host is left out.
    """
    if len(address) > _MAX_LENGTH or _AMBIGUOUS.search(address):
        return None
    try:
        parts = urlsplit(address)
        host = parts.hostname
        parts.port  # noqa: B018 - raises if it is not a number
    except ValueError:
        return None
    if not host or (schemes is not None and parts.scheme not in schemes) or not _is_plain_location(parts):
        return None
    name = canonical_host(f"[{host}]" if ":" in host else host)
    return None if name is None else CanonicalUrl(name, canonical_url_path(parts.path))


def _is_plain_location(parts: SplitResult) -> bool:
    """Return True if all programs find the same host: one `@` at most, and no encoded letter in the host."""
    return parts.netloc.count("@") <= 1 and "%" not in parts.netloc.rpartition("@")[2]


_DOT = re.compile(r"%2e", re.IGNORECASE)
_ENCODED_SLASH = re.compile(r"%(?:2f|5c|00|25)", re.IGNORECASE)
_SAFE = "/!$&'()*+,;=:@-._~"


def canonical_url_path(path: str) -> str | None:
    """Return the path of an address without dot segments, or None if servers may read it differently."""
    if "\\" in path or "//" in path or _ENCODED_SLASH.search(path):
        return None
    plain = quote(unquote_to_bytes(_DOT.sub(".", path)), safe=_SAFE)
    normal = posixpath.normpath(plain) if plain else "/"
    if not normal.startswith("/"):
        return None
    return normal + "/" if plain.endswith(("/", "/.", "/..")) and normal != "/" else normal


_ADDRESS = re.compile(r"([A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64})@([^\s@<>()\[\],;:\"\\]{1,253})")


def canonical_address(text: str) -> str | None:
    """Return a mail address in lower case, or None if it is not a plain one."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or match[1].startswith(".") or match[1].endswith(".") or ".." in match[1]:
        return None
    domain = canonical_host(match[2])
    if domain is None or "." not in domain or _NUMBERS.fullmatch(domain):
        return None
    return f"{match[1].lower()}@{domain}"


def canonical_path(path: str) -> str:
    """Return a POSIX path without `.`, `..`, doubled slashes and a last slash; symbolic links are not followed."""
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal

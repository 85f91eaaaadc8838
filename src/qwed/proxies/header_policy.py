"""Transport policy for headers that carry secrets."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from qwed_sdk.errors import UsageError


def require_private_transport(url: str, headers: Mapping[str, str]) -> None:
    """Raise UsageError if a header would cross the network unencrypted."""
    if headers and url.lower().startswith("http:") and not _is_local(urlsplit(url).hostname or ""):
        raise UsageError("--header-env would send a secret unencrypted over the network: use https://")


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

"""Where the secrets of a header may be sent."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from qwed_sdk.hook.call import Unusable


def check_secrets(url: str, headers: Mapping[str, str]) -> None:
    """Unusable where a header would be read by everybody on the way."""
    if headers and url.lower().startswith("http:") and not _is_here(urlsplit(url).hostname or ""):
        raise Unusable("--header-env would send a secret that everybody on the way can read: use https://")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

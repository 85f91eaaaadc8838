"""Command-line options shared by the proxies."""

import getpass
import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from qwed.proxies.listen_address import is_loopback
from qwed_sdk.errors import UsageError

AGENT_TYPES = ("autonomous", "supervised")


def check_agent_type(agent_type: str) -> str:
    """Return the agent type; raise UsageError if agents of that type cannot be registered."""
    if agent_type not in AGENT_TYPES:
        raise UsageError(f"--type must be one of {', '.join(AGENT_TYPES)}")
    return agent_type


def resolve_principal(principal: str | None, subject: str) -> str:
    """Return the principal named on the command line, else the logged-in user."""
    try:
        return principal or getpass.getuser()
    except (KeyError, OSError):
        raise UsageError(f"no user is logged in: name the principal of the {subject} with --principal") from None


def headers_from_environment(options: Sequence[str], *, required: bool = True) -> dict[str, str]:
    """Return the headers with their values, which come from the environment so that no process list shows them."""
    headers = {}
    for option in options:
        header, separator, variable = option.partition("=")
        if not separator or not header.strip() or not variable.strip():
            raise UsageError("--header-env must be a header and a variable, such as Authorization=MY_TOKEN")
        value = os.environ.get(variable.strip(), "")
        if required and not value:
            raise UsageError(f"{variable.strip()} is not set: it holds the value of the header {header.strip()}")
        headers[header.strip()] = value
    return headers


def require_private_transport(url: str, headers: Mapping[str, str]) -> None:
    """Raise UsageError if a header, which carries a secret, would cross the network unencrypted."""
    if headers and url.lower().startswith("http:") and not is_loopback(urlsplit(url).hostname or ""):
        raise UsageError("--header-env would send a secret unencrypted over the network: use https://")

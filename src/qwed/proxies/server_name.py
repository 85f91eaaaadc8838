"""Name of the program behind a proxy; part of tool names and of paths."""

import re
from urllib.parse import urlsplit

MAX_NAME_LENGTH = 40
_PLAIN = re.compile(r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")


def is_proxy_name(text: str) -> bool:
    """Return True if the text is a valid name: short, plain, without `_`, which separates the parts of a full tool
    name."""
    return len(text) <= MAX_NAME_LENGTH and _PLAIN.fullmatch(text) is not None


def to_server_name(text: str, default: str) -> str:
    """Return the text reduced to a valid name, or the default if nothing is left."""
    return _NOT_PLAIN.sub("-", text.lower()).strip("-")[:MAX_NAME_LENGTH].strip("-") or default


def server_name_from_url(url: str, default: str) -> str:
    """Return the name for a server at this URL; raise ValueError if it is not a URL."""
    return to_server_name(urlsplit(url).hostname or "", default)

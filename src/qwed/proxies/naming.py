"""What a program behind a proxy is called: short, plain, part of names and of paths."""

import re
from urllib.parse import urlsplit

LONGEST = 40
_PLAIN = re.compile(r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*")
_NOT_PLAIN = re.compile(r"[^a-z0-9]+")


def is_name(text: str) -> bool:
    """Whether it can be called so: short, plain, without `_`, which divides the whole name of a tool."""
    return len(text) <= LONGEST and _PLAIN.fullmatch(text) is not None


def plain_name(text: str, default: str) -> str:
    """What is left of the text as a name."""
    return _NOT_PLAIN.sub("-", text.lower()).strip("-")[:LONGEST].strip("-") or default


def host_name(url: str, default: str) -> str:
    """What somebody at this address is called; ValueError where it is none."""
    return plain_name(urlsplit(url).hostname or "", default)

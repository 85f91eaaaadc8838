"""Names for the agents of tests: an organisation has each name once."""

import itertools
from urllib.parse import quote

import httpx

EARLIER = "earlier"
"""Begins the new name of an agent that had to give its name back."""
_numbers = itertools.count(1)


def unique_name(prefix: str = "a") -> str:
    """Return a name that no other agent of this test process has."""
    return f"{prefix} {next(_numbers)}"


def release_name(api: httpx.Client, name: object) -> None:
    """Rename the agent that has this name, so that a document's example can be sent as it is printed again."""
    holder = api.get(f"/agents/{quote(name, safe='')}") if isinstance(name, str) and name.isprintable() else None
    if holder is not None and holder.status_code == 200:
        renamed = api.patch(f"/agents/{holder.json()['agent_id']}", json={"name": unique_name(EARLIER)})
        assert renamed.status_code == 200, renamed.text

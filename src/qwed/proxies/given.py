"""What is given to a proxy on its command line, whatever it stands before."""

import getpass
import os
from collections.abc import Sequence

from qwed_sdk.hook.call import Unusable

TYPES = ("autonomous", "supervised")


def type_of(given: str) -> str:
    """What the agent is registered as; Unusable where no agent can be."""
    if given not in TYPES:
        raise Unusable(f"--type must be one of {', '.join(TYPES)}")
    return given


def principal_of(given: str | None, what: str) -> str:
    """Who answers for what passes: whoever is named, else whoever is logged in."""
    try:
        return given or getpass.getuser()
    except (KeyError, OSError):
        raise Unusable(f"nobody is logged in: say with --principal who answers for the {what}") from None


def headers_of(named: Sequence[str], *, needed: bool = True) -> dict[str, str]:
    """The headers with their values, which are in the environment so that no list of processes shows them."""
    found = {}
    for each in named:
        header, separator, variable = each.partition("=")
        if not separator or not header.strip() or not variable.strip():
            raise Unusable("--header-env is the name of a header and of a variable, such as Authorization=MY_TOKEN")
        value = os.environ.get(variable.strip(), "")
        if needed and not value:
            raise Unusable(f"{variable.strip()} is not set: it holds the value of the header {header.strip()}")
        found[header.strip()] = value
    return found

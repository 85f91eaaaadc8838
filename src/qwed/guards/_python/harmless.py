"""The rows of the tables, turned round: which imports only compute, and which names are telling beside them."""

from functools import lru_cache
from typing import NamedTuple

from qwed.guards._python.attributes import (
    ATTRIBUTE_CALLS,
    DANGEROUS_METHODS,
    DOUBTFUL_METHODS,
    REACHING,
    TELLING_METHODS,
)
from qwed.guards._python.calls import BY_NAME
from qwed.guards._python.look import LIBRARIES
from qwed.guards._python.report import rule_of
from qwed.guards._python.tables import (
    BUILTINS,
    DANGEROUS_BUILTINS,
    HARMLESS,
    KNOWN,
    RETURNS,
    RULES,
    UNKNOWN,
)
from qwed.guards._python.text_calls import OPTION_CALLS
from qwed.guards._python.values import POWERFUL, REROOTED, canonical

PLAIN_BUILTINS = frozenset(
    name for name in BUILTINS - DANGEROUS_BUILTINS if name not in BY_NAME and rule_of(name) == HARMLESS
)
"""Names of the language that do nothing by themselves."""
LOUD_NAMES = DANGEROUS_BUILTINS | {"open"}
"""Mean what they mean even where the program binds them."""
LOUD_ATTRIBUTES = (
    REACHING | ATTRIBUTE_CALLS | DANGEROUS_METHODS.keys() | TELLING_METHODS.keys() | REROOTED | {"format", "format_map"}
)
"""Tell something whatever they are an attribute of."""


def _root(path: str) -> str:
    return path.partition(".")[0].partition("(")[0]


def _loud_beside() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {root: set(names) for root, names in DOUBTFUL_METHODS.items()}
    for path in (*(path for path, rule in RULES.items() if rule != HARMLESS), *(BY_NAME.keys() - OPTION_CALLS)):
        found.setdefault(_root(path), set()).add(path.rpartition(".")[2])
    for name, stands_for in RETURNS.items():
        # A name that stands for one of another library brings along what is told of that one.
        if _root(name) != _root(stands_for):
            found.setdefault(_root(name), set()).update(found.get(_root(stands_for), set()))
    return {root: frozenset(names) for root, names in found.items()}


LOUD_BESIDE = _loud_beside()
"""Attributes that tell something in a program that uses this library: the last word of each row that is not harmless,
and of each call whose arguments decide."""


class Imported(NamedTuple):
    """A name that an import binds and that only computes."""

    root: str
    """The library it is of."""
    path: str


@lru_cache(maxsize=4096)
def imported(module: str, name: str, bound: str) -> Imported | None:
    """What an import binds; None where the full check has to judge it."""
    if name == "*" or not _silent(module):
        return None
    whole = f"{module}.{name}" if name else module if bound else module.partition(".")[0]
    path = canonical(whole)
    root = _root(path)
    judged = root in POWERFUL or root in _RUNNERS or (path in BY_NAME and path not in OPTION_CALLS)
    known = path in RULES or root in RULES or root in LIBRARIES
    return Imported(root, path) if known and not judged and rule_of(path) == HARMLESS else None


def _silent(module: str) -> bool:
    path = canonical(module)
    rule = rule_of(path)
    heard_of = _root(path) in LIBRARIES or _root(path) in RULES
    return heard_of and (rule == HARMLESS or (rule == UNKNOWN and path in KNOWN))


_RUNNERS = frozenset({"doctest"})
"""Libraries that run the texts of the program."""

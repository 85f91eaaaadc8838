"""Inverted rule tables for the pre-check: imports that only compute, and names that are risky with them."""

from functools import lru_cache
from typing import NamedTuple

from qwed.guards._python.attributes import (
    ASSIGNED_EFFECTS,
    ATTRIBUTE_CALLS,
    DANGEROUS_METHODS,
    FIELD_OBJECTS,
    LIBRARY_METHOD_EFFECTS,
    METHOD_EFFECTS,
    REACHING,
)
from qwed.guards._python.calls import BY_NAME
from qwed.guards._python.library_rules import (
    BUILTINS,
    DANGEROUS_BUILTINS,
    HARMLESS,
    KNOWN_PREFIXES,
    RESULT_RULES,
    RETURNING_ARRAYS,
    RETURNS,
    RULES,
    SHARED_METHODS,
    UNKNOWN,
)
from qwed.guards._python.name_resolution import POWERFUL_MODULES, REACHABLE_MODULES, canonical_path
from qwed.guards._python.report import rule_of
from qwed.guards._python.string_eval_calls import OPTION_CALLS

SAFE_BUILTINS = frozenset(
    name for name in BUILTINS - DANGEROUS_BUILTINS if name not in BY_NAME and rule_of(name) == HARMLESS
)
"""Builtins without effects."""
RISKY_NAMES = DANGEROUS_BUILTINS | {"open"}
"""Names that keep their meaning even if the program binds them."""
RISKY_ATTRIBUTES = (
    REACHING
    | ATTRIBUTE_CALLS
    | DANGEROUS_METHODS.keys()
    | METHOD_EFFECTS.keys()
    | REACHABLE_MODULES
    | SHARED_METHODS.keys()
    | {"format", "format_map"}
)
"""Attributes that are risky on any owner."""


_WATCHED_CLASSES = frozenset({"string.Formatter", "sqlite3.Connection", "pydantic.RootModel"}) | FIELD_OBJECTS
"""Names whose uses or subclasses the full check looks at."""


def _root(path: str) -> str:
    return path.partition(".")[0].partition("(")[0]


def _library_risky_attributes() -> dict[str, frozenset[str]]:
    names_by_root: dict[str, set[str]] = {root: set(names) for root, names in LIBRARY_METHOD_EFFECTS.items()}
    for path in (*(path for path, rule in RULES.items() if rule != HARMLESS), *(BY_NAME.keys() - OPTION_CALLS)):
        names_by_root.setdefault(_root(path), set()).add(path.rpartition(".")[2])
    for name, meaning in RETURNS.items():
        # A name with the meaning of another library's name inherits the risky attributes of that library.
        if _root(name) != _root(meaning):
            names_by_root.setdefault(_root(name), set()).update(names_by_root.get(_root(meaning), set()))
    for root in ("pandas", "polars"):
        names_by_root[root] = names_by_root.get(root, set()) | {"apply", "agg", "aggregate", "transform"}
    for root, assigned in ASSIGNED_EFFECTS.items():
        names_by_root.setdefault(root, set()).update(assigned)
    for root in RETURNING_ARRAYS:
        names_by_root.setdefault(root, set()).update(RESULT_RULES["numpy"])
    for path in _WATCHED_CLASSES:
        names_by_root.setdefault(_root(path), set()).add(path.rpartition(".")[2])
    return {root: frozenset(names) for root, names in names_by_root.items()}


LIBRARY_RISKY_ATTRIBUTES = _library_risky_attributes()
"""Attributes that are risky in a program that uses the library: the last component of each rule that is not harmless,
and of each call with a rule."""


class SafeImport(NamedTuple):
    """Imported name that only computes."""

    root: str
    """Library it belongs to."""
    path: str


@lru_cache(maxsize=4096)
def safe_import_of(module: str, name: str, bound: str) -> SafeImport | None:
    """Return the meaning of an import; None if the full check has to decide."""
    if name == "*" or not _is_safe_module(module):
        return None
    whole = f"{module}.{name}" if name else module if bound else module.partition(".")[0]
    path = canonical_path(whole)
    root = _root(path)
    if path.startswith(_RUNNING_MODULES):
        return None
    has_rule = root in POWERFUL_MODULES or root in _RUNNERS or path in _WATCHED_CLASSES
    has_rule = has_rule or (path in BY_NAME and path not in OPTION_CALLS)
    return SafeImport(root, path) if not has_rule and rule_of(path) == HARMLESS else None


def _is_safe_module(module: str) -> bool:
    path = canonical_path(module)
    rule = rule_of(path)
    if module.partition(".")[0] in BUILTINS:
        return False
    return rule == HARMLESS or (rule == UNKNOWN and path in KNOWN_PREFIXES)


_RUNNING_MODULES = ("statsmodels.formula",)
"""Library names that run texts they are given."""
_RUNNERS = frozenset({"doctest"})
"""Libraries that run the texts of the program."""

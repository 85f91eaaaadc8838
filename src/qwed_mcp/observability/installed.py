"""What is installed here: the package a name is from, its version and its licence."""

import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

from qwed.engines.table import ENGINES

OURS = "qwed"
BEHIND: Mapping[str, tuple[str, ...]] = {
    "math": ("pint", "sympy", "z3-solver"),
    "logic": ("lark", "z3-solver"),
    "code": ("tree-sitter", "tree-sitter-bash", "tree-sitter-javascript", "tree-sitter-typescript"),
    "sql": ("sqlglot",),
    "shell": ("tree-sitter", "tree-sitter-bash"),
    "fact": ("rapidfuzz",),
    "stats": ("duckdb",),
    "image": ("pillow",),
    "consensus": ("lark", "pint", "sympy", "z3-solver"),
    "legal": ("courts-db", "eyecite", "holidays", "reporters-db"),
    "finance": ("lxml",),
    "ucp": ("ucp-sdk",),
    "tax": (),
}
"""The distributions that an engine computes with."""
_PACKS = frozenset(f"{OURS}_{pack}" for pack in ("legal", "finance", "ucp", "tax"))
_CLASSIFIER = "License :: OSI Approved :: "


class Package(NamedTuple):
    """A distribution as it is installed; a licence is an SPDX expression or, failing that, whatever it calls itself."""

    name: str
    version: str
    expression: str
    licence: str

    @property
    def purl(self) -> str:
        """Its package URL."""
        name = self.name.lower().replace("_", "-")
        return f"pkg:pypi/{quote(name, safe='')}@{quote(self.version, safe='')}"


def package(distribution: str) -> Package | None:
    """The distribution, if it is installed."""
    try:
        told = importlib.metadata.metadata(distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    classifiers = [each for each in told.get_all("Classifier") or [] if each.startswith(_CLASSIFIER)]
    named = classifiers[0].removeprefix(_CLASSIFIER) if classifiers else _only(told, "License").partition("\n")[0]
    return Package(told["Name"], told["Version"], _only(told, "License-Expression"), named.strip())


def _only(told: importlib.metadata.PackageMetadata, field: str) -> str:
    values = told.get_all(field) or [""]
    return str(values[0])


def engine_called(name: str) -> str | None:
    """Which engine of the table is meant by its name, by its module, by its published name or by a guard of a pack."""
    top, _, rest = name.partition(".")
    if top in _PACKS and rest:
        return top.removeprefix(f"{OURS}_")
    short = (
        rest.split(".")[-1].removesuffix("_engine") if top.startswith(OURS) and rest.startswith("engines.") else name
    )
    return short if short in ENGINES else None


def package_of(name: str) -> Package | None:
    """The distribution that a component is imported from, if it is installed here."""
    top = name.partition(".")[0]
    if engine_called(name):
        return package(OURS)
    if not _is_here(top):
        return None
    if top == OURS or top.startswith(f"{OURS}_"):
        return package(OURS)
    owners = _owners().get(top, ())
    return package(owners[0]) if owners else None


@cache
def _owners() -> Mapping[str, Sequence[str]]:
    """The distributions by what is imported from them; every file of each is looked at, so once is enough."""
    return importlib.metadata.packages_distributions()


def _is_here(module: str) -> bool:
    try:
        return module.isidentifier() and importlib.util.find_spec(module) is not None
    except ValueError:
        return False

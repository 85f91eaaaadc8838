"""Installed distributions: name, version and licence of a component's package."""

import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

from qwed.engines.registry import ENGINES

OURS = "qwed"
ENGINE_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
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
"""Third-party distributions that each engine uses."""
_PACKS = frozenset(f"{OURS}_{pack}" for pack in ("legal", "finance", "ucp", "tax"))
_CLASSIFIER = "License :: OSI Approved :: "


class Package(NamedTuple):
    """Installed distribution; its licence is an SPDX expression or, failing that, its own name for it."""

    name: str
    version: str
    expression: str
    licence: str

    @property
    def purl(self) -> str:
        """Package URL."""
        name = self.name.lower().replace("_", "-")
        return f"pkg:pypi/{quote(name, safe='')}@{quote(self.version, safe='')}"


def installed_package(distribution: str) -> Package | None:
    """Return the distribution, or None if it is not installed."""
    try:
        metadata = importlib.metadata.metadata(distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    classifiers = [
        classifier for classifier in metadata.get_all("Classifier") or [] if classifier.startswith(_CLASSIFIER)
    ]
    licence = (
        classifiers[0].removeprefix(_CLASSIFIER)
        if classifiers
        else _first_value(metadata, "License").partition("\n")[0]
    )
    return Package(metadata["Name"], metadata["Version"], _first_value(metadata, "License-Expression"), licence.strip())


def _first_value(metadata: importlib.metadata.PackageMetadata, field: str) -> str:
    values = metadata.get_all(field) or [""]
    return str(values[0])


def engine_named(name: str) -> str | None:
    """Return the engine with this name, module, published name or pack guard, or None."""
    top, _, rest = name.partition(".")
    if top in _PACKS and rest:
        return top.removeprefix(f"{OURS}_")
    short = (
        rest.split(".")[-1].removesuffix("_engine") if top.startswith(OURS) and rest.startswith("engines.") else name
    )
    return short if short in ENGINES else None


def package_of_component(name: str) -> Package | None:
    """Return the distribution that a component is imported from, or None if it is not installed."""
    top = name.partition(".")[0]
    if engine_named(name):
        return installed_package(OURS)
    if not _is_importable(top):
        return None
    if top == OURS or top.startswith(f"{OURS}_"):
        return installed_package(OURS)
    owners = _owners().get(top, ())
    return installed_package(owners[0]) if owners else None


@cache
def _owners() -> Mapping[str, Sequence[str]]:
    """Return the distributions by import name; cached because it reads the file list of every distribution."""
    return importlib.metadata.packages_distributions()


def _is_importable(module: str) -> bool:
    try:
        return module.isidentifier() and importlib.util.find_spec(module) is not None
    except ValueError:
        return False

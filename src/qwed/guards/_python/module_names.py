"""Names of library modules that only compute, as data: any other name of a module has an unknown effect.

Modules import one another, so a module also holds names of others (`logging.os`); only its own names are in the data.
A line of a data file is `module: name name ...`.
"""

import sys
from functools import cache
from pathlib import Path

_DIRECTORY = Path(__file__).parent / "names"
FILES = ("stdlib.txt", "packages.txt")


class NamesFileError(ValueError):
    """A line of a data file is not `module: name name ...`."""


def read_rows(file: str) -> dict[str, str]:
    """Return the line of each module of a data file."""
    rows: dict[str, str] = {}
    for number, line in enumerate((_DIRECTORY / file).read_text(encoding="utf-8").splitlines(), 1):
        module, colon, names = line.partition(":")
        if not colon or not names.strip() or module in rows or not module.replace(".", "_").isidentifier():
            raise NamesFileError(f"`{file}` line {number} must be `module: name name ...`, each module once")
        rows[module] = names
    return rows


_ROWS: dict[str, str] = {module: names for file in FILES for module, names in read_rows(file).items()}


def _with_parents(modules: dict[str, str]) -> frozenset[str]:
    parts = (module.split(".") for module in modules)
    return frozenset(".".join(part[:end]) for part in parts for end in range(1, len(part) + 1))


MODULES: frozenset[str] = _with_parents(_ROWS)
"""Every module of the data, and the packages they are in."""

_STANDARD_PACKAGES = frozenset(
    """
    asyncio collections compression concurrent ctypes curses dbm distutils email encodings ensurepip html http
    idlelib importlib json lib2to3 logging msilib multiprocessing os pydoc_data sqlite3 sysconfig
    test tkinter tomllib turtledemo unittest urllib venv wsgiref xml xmlrpc zipfile zoneinfo
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
PLAIN_MODULES: frozenset[str] = frozenset(sys.stdlib_module_names) - _STANDARD_PACKAGES
"""Modules of the standard library that hold no other modules."""


FACTS = frozenset({"__name__", "__doc__", "__version__", "__file__", "__all__"})
"""Attributes of any module that are plain text."""


@cache
def names_of(module: str) -> frozenset[str]:
    """Return the names of a module that only compute; empty if the module is not in the data."""
    return frozenset(_ROWS.get(module, "").split())


def module_of(path: str) -> str:
    """Return the longest prefix of a dotted path that is a module of the data, or ""."""
    prefix = path
    while prefix and prefix not in MODULES:
        prefix = prefix.rpartition(".")[0]
    return prefix


def is_pure(path: str) -> bool:
    """Return True if the data lists the name that `path` begins with after its module, or `path` is a module."""
    module = module_of(path)
    rest = path[len(module) + 1 :].partition(".")[0]
    return bool(module) and (not rest or rest in FACTS or rest in names_of(module))


def is_module(path: str) -> bool:
    """Return True if a dotted path is a module, and not a function that hides the module of the same name."""
    parent, _, name = path.rpartition(".")
    return path in MODULES and name not in names_of(parent)

"""Inputs of the Python oracle: tables, mutations of them, deeds in every form of access, calls of library functions."""

import ast
import json
import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import distributions
from typing import NamedTuple

from qwed.guards.code_guard import CodeGuard
from tests.oracle.predictions import predict_python
from tests.oracle.python_execution import inventory
from tests.oracle.tables import load
from tests.support.case_tables import DATA

_TABLE = load("python")
_DEEDS = _TABLE["deeds"]
_HOLDERS = _TABLE["holders"]
_ACCESSES = _TABLE["accesses"]
_CALLS = _TABLE["calls"]
_ARGUMENTS = _TABLE["arguments"]
_SKIPPED = frozenset(
    {
        "antigravity",
        "this",
        "idlelib",
        "turtledemo",
        "test",
        "lib2to3",
        "tkinter",
        "turtle",
        "__main__",
        "pty",
        "code",
        "pdb",
    }
)


class LibraryFunction(NamedTuple):
    """Function of a library, or method of one of its classes."""

    module: str
    name: str
    parameters: tuple[str, ...]


@cache
def tables() -> tuple[str, ...]:
    """Return the programs of every Python table."""
    rows = [json.loads(line) for path in sorted(DATA.glob("python*.jsonl")) for line in path.read_text().splitlines()]
    texts = [row.get("code") or row.get("input") for row in rows]
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str) and len(text) < 4000))


@cache
def library(with_packages: bool) -> tuple[LibraryFunction, ...]:
    """Return functions and methods of modules that CodeGuard lets a program import."""
    guard = CodeGuard()
    names = [name for name in sorted(sys.stdlib_module_names) if name not in _SKIPPED and not name.startswith("_")]
    names += _package_modules() if with_packages else []
    names = [name for name in names if guard.verify_safety(f"import {name}").verified]
    listed: dict[str, dict[str, list[str]]] = {}
    for start in range(0, len(names), 40):
        listed |= inventory(names[start : start + 40])
    return tuple(
        LibraryFunction(module, name, tuple(parameters))
        for module in sorted(listed)
        for name, parameters in listed[module].items()
        if not name.startswith("__")
    )


def _package_modules() -> list[str]:
    files = {str(file) for row in distributions() for file in row.files or () if str(file).endswith(".py")}
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files}
    return sorted(
        name for name in modules if name.count(".") < 2 and all(part.isidentifier() for part in name.split("."))
    )


def _call(rng: random.Random, functions: Sequence[LibraryFunction]) -> str:
    module, name, parameters = rng.choice(functions)
    owner, _, method = name.rpartition(".")
    target = f"{module}.{name}"
    if owner and rng.random() < 0.6:
        target = f"{module}.{owner}({rng.choice(_ARGUMENTS)}).{method}"
    tail = rng.choice(("", "", "", ".run", ".open", ".write", ".load", ".system", ".__globals__"))
    text = f"import {module}\nx = {target}({_arguments(rng, parameters)})\nprint(x)\n"
    if tail:
        text += f"print(x{tail}({rng.choice(_ARGUMENTS)}))\n"
    return text


def _arguments(rng: random.Random, parameters: Sequence[str]) -> str:
    given: str = rng.choice(_ARGUMENTS)
    named = [name for name in parameters if name.isidentifier()]
    if not named or rng.random() < 0.5:
        return given
    value = rng.choice([text for text in _ARGUMENTS if text and ", " not in text])
    return ", ".join(filter(None, (given if rng.random() < 0.5 else "", f"{rng.choice(named)}={value}")))


def _deed(rng: random.Random) -> str:
    module, name, value = rng.choice(_DEEDS)
    access = rng.choice(_ACCESSES).format(m=module, a=name, a0=name.partition("(")[0], h=rng.choice(_HOLDERS))
    return f"{access}\n{rng.choice(_CALLS).format(v=value)}\n"


def _renamed(rng: random.Random, text: str) -> str:
    """Replace one name by another of the same program."""
    tree = ast.parse(text)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    others = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    if nodes:
        rng.choice(nodes).id = rng.choice(nodes).id
    if others and rng.random() < 0.5:
        rng.choice(others).attr = rng.choice(others).attr
    return ast.unparse(tree) + "\n"


def _spliced(rng: random.Random, text: str, other: str) -> str:
    """Put statements of another program between those of one."""
    tree, donor = ast.parse(text), ast.parse(other)
    start = rng.randrange(len(donor.body) or 1)
    place = rng.randrange(len(tree.body) + 1)
    tree.body[place:place] = donor.body[start : start + rng.choice((1, 2, 9))]
    return ast.unparse(tree) + "\n"


def _exchanged(rng: random.Random, text: str, other: str) -> str:
    """Replace one expression by one of another program."""
    donors = [
        node
        for node in ast.walk(ast.parse(other))
        if isinstance(node, ast.Call | ast.Attribute | ast.Lambda | ast.Subscript)
    ]
    tree = ast.parse(text)
    places = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not donors or not places:
        return text
    place = rng.choice(places)
    if place.args and rng.random() < 0.6:
        place.args[rng.randrange(len(place.args))] = rng.choice(donors)
    else:
        place.func = rng.choice(donors)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _wrapped(rng: random.Random, text: str) -> str:
    indented = "".join(f"    {line}\n" for line in text.splitlines())
    head = rng.choice(("def run():", "class Run:", "if True:", "for _ in [0]:", "try:", "async def run():"))
    tail = {
        "def run():": "run()\n",
        "try:": "finally:\n    pass\n",
        "async def run():": "import asyncio\nasyncio.run(run())\n",
    }.get(head, "")
    return f"{head}\n{indented}{tail}"


def _changed(rng: random.Random, text: str, other: str) -> str:
    draw = rng.randrange(4)
    if draw == 0:
        return _renamed(rng, text)
    if draw == 1:
        return _wrapped(rng, text)
    return (_spliced if draw == 2 else _exchanged)(rng, text, other)


def generate(seed: int, extra: Sequence[str] = (), *, with_packages: bool = False) -> Iterator[str]:
    """Yield programs without end."""
    rng = random.Random(seed)
    known = [*tables(), *extra]
    functions = library(with_packages)
    while True:
        draw = rng.random()
        try:
            if draw < 0.3:
                yield _deed(rng)
            elif draw < 0.65:
                yield _call(rng, functions)
            else:
                other = rng.choice(known) if rng.random() < 0.7 else _deed(rng)
                yield _changed(rng, rng.choice(known), other)
        except (SyntaxError, ValueError, RecursionError):
            continue


def select(seed: int, inputs: Iterator[str], one_in: int = 6) -> Iterator[str]:
    """Yield every program that is predicted to be harmless and has not been seen, and one in `one_in` of the others."""
    rng = random.Random(seed)
    seen: set[int] = set()
    for program in inputs:
        if hash(program) in seen:
            continue
        seen.add(hash(program))
        if predict_python(program).is_harmless or rng.random() * one_in < 1:
            yield program

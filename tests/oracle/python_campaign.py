"""Inputs of the Python oracle: tables, mutations of them, deeds in every form of access, and calls of library functions."""

import ast
import json
import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import distributions

from qwed.guards.code_guard import CodeGuard
from tests.oracle.predictions import predict_python
from tests.oracle.python_execution import inventory
from tests.support.case_tables import DATA

_DEEDS = (
    *(
        ("os", "system", "'touch pwn'"),
        ("os", "remove", "'f'"),
        ("os", "popen", "'touch pwn'"),
        ("os", "mkdir", "'pwn'"),
    ),
    *(
        ("subprocess", "run", "['touch', 'pwn']"),
        ("subprocess", "getoutput", "'touch pwn'"),
        ("shutil", "copy", "'f', 'pwn'"),
    ),
    *(
        ("builtins", "open", "'pwn', 'w'"),
        ("io", "open", "'pwn', 'w'"),
        ("builtins", "eval", "'1+1'"),
        ("builtins", "exec", "'x=1'"),
    ),
    *(
        ("pathlib", "Path('pwn').write_text", "'x'"),
        ("socket", "create_connection", "('127.0.0.1', 9)"),
        ("os", "getenv", "'AWS_SECRET_ACCESS_KEY'"),
    ),
    *(
        ("os", "listdir", "'.'"),
        ("builtins", "__import__", "'os'"),
        ("importlib", "import_module", "'os'"),
        ("pickle", "loads", "b'cos\\nsystem\\n(Vtouch pwn\\ntR.'"),
    ),
)
_HOLDERS = (
    *(
        "logging",
        "glob",
        "tempfile",
        "random",
        "inspect",
        "string",
        "json",
        "re",
        "collections",
        "dataclasses",
        "typing",
        "functools",
    ),
    *(
        "enum",
        "contextlib",
        "unittest",
        "argparse",
        "calendar",
        "csv",
        "copy",
        "statistics",
        "uuid",
        "traceback",
        "warnings",
        "weakref",
    ),
    *(
        "textwrap",
        "pprint",
        "difflib",
        "html",
        "email",
        "decimal",
        "datetime",
        "heapq",
        "threading",
        "asyncio",
        "zipfile",
        "gzip",
        "base64",
    ),
)
_ACCESSES = (
    *(
        "import {m}\nf = {m}.{a}",
        "import {m} as q\nf = q.{a}",
        "from {m} import {a0} as f",
        "from {m} import *\nf = {a}",
        "import {m}\nf = getattr({m}, '{a}')",
    ),
    *(
        "import {m}, operator\nf = operator.attrgetter('{a}')({m})",
        "import {m}\nf = vars({m})['{a}']",
        "import {m}\nf = {m}.__dict__['{a}']",
    ),
    *(
        "import sys\nf = sys.modules['{m}'].{a}",
        "import {h}, sys\nf = {h}.sys.modules['{m}'].{a}",
        "f = __import__('{m}').{a}",
        "import {h}\nf = {h}.{m}.{a}",
    ),
    *(
        "import {h}\nf = {h}._{m}.{a}",
        "import importlib\nf = importlib.import_module('{m}').{a}",
        "import {h}\nmatch {h}:\n    case object({m}=object({a0}=f)):\n        pass",
    ),
    *(
        "import {m}\nmatch {m}:\n    case object({a0}=f):\n        pass",
        "import {h}\nf = {h}.__builtins__['__import__']('{m}').{a}",
        "import string, {h}\nf = string.Formatter().get_field('0.{m}.{a}', ({h},), {{}})[0]",
    ),
    *(
        "import string, {m}\nf, _ = string.Formatter().get_field('0.{a}', ({m},), {{}})",
        "import pkgutil\nf = pkgutil.resolve_name('{m}:{a}')",
        "import pydoc\nf = pydoc.locate('{m}.{a}')",
    ),
    *(
        "import functools, {m}\nf = functools.reduce(getattr, '{a}'.split('.'), {m})",
        "import {m}\nf = {m}.__getattribute__('{a}')",
        "import {m}\nf = object.__getattribute__({m}, '{a}')",
    ),
    *(
        "import inspect, {m}\nf = inspect.getattr_static({m}, '{a}')",
        "import inspect, {m}\nf = dict(inspect.getmembers({m}))['{a}']",
        "def g(): pass\nf = g.__globals__['__builtins__'].__import__('{m}').{a}",
    ),
    *(
        "import {h}\nf = {h}.{h}.{a}",
        "class C:\n    from {m} import {a0} as f\nf = C.f",
        "import {m}\nclass C:\n    f = staticmethod({m}.{a})\nf = C().f",
        "import {m}\n[f] = [x for x in [{m}.{a}]]",
    ),
    *(
        "import {m}\nf = (lambda x={m}.{a}: x)()",
        "import {m}\nfor f in ({m}.{a},): break",
        "import {m}\nwith __import__('contextlib').nullcontext({m}.{a}) as f: pass",
        "import {m}\n(f := {m}.{a})",
    ),
    *(
        "import {m}\ndef g():\n    global f\n    f = {m}.{a}\ng()",
        "import {m}\nglobals()['f'] = {m}.{a}",
        "import types, {m}\nf = types.MethodType({m}.{a}, 'touch pwn')",
        "import {m}\nf = {m}.__getattr__('{a}')",
    ),
    *(
        "import typing\nclass C:\n    x: \"__import__('{m}').{a}\"\nf = typing.get_type_hints(C)['x']",
        "import unittest.mock\nf = unittest.mock._importer('{m}').{a}",
    ),
    *(
        "import {m}\nclass M(type):\n    def __getattr__(c, n): return {m}.{a}\nclass C(metaclass=M): pass\nf = C.anything",
        "import {m}\ntry:\n    raise ValueError({m}.{a})\nexcept ValueError as e:\n    f = e.args[0]",
    ),
    *(
        "import {m}\ndef g():\n    yield {m}.{a}\nf = next(g())",
        "import {m}\nf, *_ = {m}.{a}, 1",
        "import {m}\nd = dict(k={m}.{a})\nf = d['k']",
        "import {m}\nf = [{m}.{a}].pop()",
        "import copy, {m}\nf = copy.copy({m}.{a})",
    ),
)
_CALLS = (
    *(
        "f({v})",
        "print(f({v}))",
        "[f({v}) for _ in [0]]",
        "list(map(f, [{v}]))",
        "sorted([{v}], key=f)",
        "min([{v}], key=f)",
        "(lambda: f({v}))()",
        "f(*({v},))",
    ),
    *(
        "class D:\n    def __init__(self): f({v})\nD()",
        "class D:\n    def __repr__(self):\n        f({v})\n        return ''\nprint(f'{{D()!r}}')",
        "class D:\n    def __del__(self): f({v})\nD()",
    ),
    *(
        "class D:\n    def __enter__(self): f({v})\n    def __exit__(self, *a): pass\nwith D(): pass",
        "class D:\n    def __init_subclass__(c): f({v})\nclass E(D): pass",
    ),
    *(
        "class D:\n    def __set_name__(self, o, n): f({v})\nclass E:\n    d = D()",
        "class D:\n    def __class_getitem__(c, i): return f({v})\nD[0]",
        "class D:\n    __getattr__ = lambda s, n: f({v})\nD().x",
    ),
    *(
        "class D:\n    __format__ = lambda s, n: str(f({v}))\n'{{}}'.format(D())",
        "class D:\n    __eq__ = lambda s, n: f({v})\nD() == 1",
        "import functools\nfunctools.partial(f, {v})()",
        "import atexit\natexit.register(f, {v})",
    ),
    *(
        "import threading\nt = threading.Thread(target=f, args=({v},))\nt.start()\nt.join()",
        "import weakref\nclass D: pass\nd = D()\nweakref.finalize(d, f, {v})\ndel d",
        "import operator\noperator.call(f, {v})",
    ),
    *(
        "import contextlib\nwith contextlib.ExitStack() as s: s.callback(f, {v})",
        "import itertools\nlist(itertools.starmap(f, [({v},)]))",
        "@lambda g: f({v})\ndef h(): pass",
        "assert not f({v})",
    ),
    *(
        "def h(x=f({v})): pass",
        "def h() -> f({v}): pass",
        "x: f({v}) = 1",
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n    x: int = dataclasses.field(default_factory=lambda: f({v}))\nD()",
    ),
    *(
        "import re\nre.sub('a', lambda m: str(f({v})), 'a')",
        "import json\njson.loads('[]', object_hook=f)\njson.loads('{{}}', object_hook=lambda o: f({v}))",
        "import sched\ns = sched.scheduler()\ns.enter(0, 1, f, ({v},))\ns.run()",
    ),
    *(
        "import concurrent.futures as c\nc.ThreadPoolExecutor(1).submit(f, {v}).result()",
        "import asyncio\nasync def h(): return f({v})\nasyncio.run(h())",
        "import enum\nclass D(enum.Enum):\n    A = 1\n    def _missing_(v): return f({v})",
    ),
    *(
        "import collections\ncollections.defaultdict(lambda: f({v}))['x']",
        "match 1:\n    case 1 if f({v}): pass",
        "try:\n    raise KeyError\nexcept KeyError:\n    f({v})",
        "import types\ntypes.new_class('D', (), {{}}, lambda ns: f({v}))",
    ),
)
_ARGUMENTS = (
    *(
        "",
        "'pwn'",
        "'pwn', 'w'",
        "'touch pwn'",
        "['touch', 'pwn']",
        "'f', 'pwn'",
        "'f'",
        "'.'",
        '\'x = open("pwn", "w")\'',
        "'os'",
        "'os:system'",
    ),
    *(
        "'os', 'system'",
        "open",
        "b'cos\\nsystem\\n(Vtouch pwn\\ntR.'",
        '\'__import__("os").system("touch pwn")\'',
        "'127.0.0.1', 9",
        "1",
        "[1, 2]",
        "lambda *a: open('pwn', 'w')",
    ),
    *(
        "'pwn', [1]",
        "[1], 'pwn'",
        "'http://127.0.0.1/x'",
        "{'a': 1}, 'pwn'",
        "'/home/dev/.ssh/id_ed25519'",
        "'AWS_SECRET_ACCESS_KEY'",
    ),
)
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


@cache
def tables() -> tuple[str, ...]:
    """Return the programs of every Python table."""
    rows = [json.loads(line) for path in sorted(DATA.glob("python*.jsonl")) for line in path.read_text().splitlines()]
    texts = [row.get("code") or row.get("input") for row in rows]
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str) and len(text) < 4000))


@cache
def library(with_packages: bool) -> tuple[tuple[str, str], ...]:
    """Return functions of modules that CodeGuard lets a program import: module and name."""
    guard = CodeGuard()
    names = [name for name in sorted(sys.stdlib_module_names) if name not in _SKIPPED and not name.startswith("_")]
    names += _package_modules() if with_packages else []
    names = [name for name in names if guard.verify_safety(f"import {name}").verified]
    listed: dict[str, list[str]] = {}
    for start in range(0, len(names), 40):
        listed |= inventory(names[start : start + 40])
    return tuple((module, name) for module in sorted(listed) for name in listed[module] if not name.startswith("__"))


def _package_modules() -> list[str]:
    files = {str(file) for row in distributions() for file in row.files or () if str(file).endswith(".py")}
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files}
    return sorted(
        name for name in modules if name.count(".") < 2 and all(part.isidentifier() for part in name.split("."))
    )


def _call(rng: random.Random, functions: Sequence[tuple[str, str]]) -> str:
    module, name = rng.choice(functions)
    target = f"{module}.{name}"
    tail = rng.choice(("", "", "", ".run", ".open", ".write", ".load", ".system", ".__globals__"))
    text = f"import {module}\nx = {target}({rng.choice(_ARGUMENTS)})\nprint(x)\n"
    if tail:
        text += f"print(x{tail}({rng.choice(_ARGUMENTS)}))\n"
    return text


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
                one, other = rng.choice(known), rng.choice(known) if rng.random() < 0.7 else _deed(rng)
                changes = (
                    lambda: _renamed(rng, one),
                    lambda: _spliced(rng, one, other),
                    lambda: _exchanged(rng, one, other),
                    lambda: _wrapped(rng, one),
                )  # noqa: E501, B023
                yield rng.choice(changes)()
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

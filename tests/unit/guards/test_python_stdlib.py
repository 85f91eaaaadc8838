"""Every name of the standard library that opens, imports or runs something has a rule in the Python guard."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from qwed.guards._python import module_names
from qwed.guards._python.calls import BY_NAME
from qwed.guards._python.library_rules import HARMLESS
from qwed.guards._python.name_resolution import canonical_path
from qwed.guards._python.report import rule_of

DOES = re.compile(
    r"(?:builtins\.|_builtin_|_io\.|io\.)?open|__import__|exec|eval|FileIO|io\.FileIO|io\.open_code|tokenize\.open"
    r"|_?os\.(?:open|remove|unlink|system|popen|rename|mkdir|makedirs|rmdir|replace|fork|exec\w+|spawn\w+|listdir|kill)"
    r"|subprocess\.\w+|urllib\.request\.\w+|urlopen|import_module|importlib\.import_module"
    r"|pickle\.(?:load|loads|Unpickler)|marshal\.loads?"
)
EXCUSED = {
    "opens no file given by the caller": """
        argparse.ArgumentParser.parse_args argparse.ArgumentParser.parse_intermixed_args
        argparse.ArgumentParser.parse_known_args argparse.ArgumentParser.parse_known_intermixed_args
        xml.etree.ElementTree.dump xml.etree.ElementTree.tostring xml.etree.ElementTree.tostringlist
        gettext.gettext gettext.ngettext gettext.npgettext gettext.pgettext
        """,
    "runs a fixed command to query the system": """
        platform.machine platform.node platform.platform platform.processor platform.release platform.system
        platform.uname platform.version platform.win32_ver
        """,
    "runs text that it composes of checked names": """
        dataclasses.dataclass unittest.mock.create_autospec
        """,
    "imports modules of its own": """
        sysconfig.get_config_h_filename sysconfig.get_config_var sysconfig.get_config_vars
        sysconfig.get_makefile_filename sysconfig.get_path sysconfig.get_paths sysconfig.get_platform
        xml.sax.parseString
        """,
    "evaluates annotations only on request": "inspect.getcallargs inspect.getfullargspec",
}


def harmless_modules() -> Iterator[tuple[str, Path]]:
    for name in module_names.read_rows("stdlib.txt"):
        spec = found(name)
        if spec is not None and (spec.origin or "").endswith(".py") and "site-packages" not in (spec.origin or ""):
            yield name, Path(spec.origin or "")


def found(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from functions(child, prefix)


def called(function: ast.AST, owner: str) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            first, _, last = name.rpartition(".")
            yield f"{owner}.{last}" if first in ("self", "cls") else name


def dotted(node: ast.expr) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "?", *reversed(parts)])


def doers(tree: ast.Module) -> set[str]:
    """Return the functions of a module that have an effect, directly or through one another."""
    calls = {name: set(called(node, name.rpartition(".")[0])) for name, node in functions(tree)}
    names_with_effect = {name for name, used in calls.items() if any(map(DOES.fullmatch, used))}
    while True:
        names = names_with_effect | {name.removesuffix(".__init__") for name in names_with_effect}
        more = {name for name, used in calls.items() if not used.isdisjoint(names)}
        if more <= names_with_effect:
            return names_with_effect
        names_with_effect |= more


def is_told(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    candidates = (name, f"{owner}().{last}", f"{name.partition('.')[0]}().{last}", owner)
    return name in BY_NAME or any(rule_of(canonical_path(candidate)) != HARMLESS for candidate in candidates)


@pytest.mark.drill
def test_what_opens_imports_or_runs_is_never_called_harmless():
    excused = {name for names in EXCUSED.values() for name in names.split()}
    silent = set()
    for module, path in harmless_modules():
        for name in doers(ast.parse(path.read_text(encoding="utf-8"))):
            full = f"{module}.{name}".removesuffix(".__init__")
            if not re.search(r"\._", full) and not is_told(full):
                silent.add(full)
    assert silent == excused

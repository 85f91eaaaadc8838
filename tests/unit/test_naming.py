"""Naming rules of CONTRIBUTING.md that a program can check."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PYTHON = [path for name in ("src", "tests", "benchmarks", "scripts") for path in sorted((ROOT / name).rglob("*.py"))]
CLAUSE_WORDS = ("What ", "Who ", "Whoever ", "Whether ", "How ", "That ")
MAX_CLAUSE_DOCSTRINGS = 25
"""Lower it when the count falls; never raise it."""
FORBIDDEN_IN_MESSAGES = ("surprise", "nobody", "whoever", "house")
LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
MESSAGE_FUNCTIONS = frozenset({"problem", "denied", "refusal", "fail", "echo"})
REPEATED_BY_THE_SPECIFICATION = frozenset({"__init__", "__main__"})


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _source() -> list[Path]:
    return [path for path in PYTHON if path.is_relative_to(SRC)]


def _documented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def _name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts of log calls, of raised exceptions and of refusals."""
    for node in ast.walk(tree):
        sends = isinstance(node, ast.Call) and _name_of(node) in LOG_METHODS | MESSAGE_FUNCTIONS
        if isinstance(node, ast.Raise) or sends:
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def test_no_public_class_name_is_defined_in_more_than_two_modules() -> None:
    modules = defaultdict(set)
    for path in _source():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].add(str(path.relative_to(SRC)))
    assert {name: sorted(paths) for name, paths in modules.items() if len(paths) > 2} == {}


def test_no_module_name_is_used_in_more_than_three_directories() -> None:
    directories = defaultdict(set)
    for path in _source():
        if path.stem not in REPEATED_BY_THE_SPECIFICATION:
            directories[path.stem].add(str(path.parent.relative_to(SRC)))
    assert {name: sorted(found) for name, found in directories.items() if len(found) > 3} == {}


def test_docstrings_that_begin_with_a_clause_only_become_fewer() -> None:
    clauses = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in PYTHON
        for line, text in _documented(_tree(path))
        if text.startswith(CLAUSE_WORDS)
    ]
    assert len(clauses) <= MAX_CLAUSE_DOCSTRINGS, "begin with a verb or a noun:\n" + "\n".join(clauses)


def test_log_lines_and_messages_avoid_private_words() -> None:
    offending = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in _source()
        for line, text in _messages(_tree(path))
        if any(word in text.lower().split() for word in FORBIDDEN_IN_MESSAGES)
    ]
    assert offending == []

"""Every section of the specification has a test or a reason, and every test has a section."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.spec.sections import LATER, SECTIONS

_TESTS = Path(__file__).parent.parent
_WHERE = ("spec/test_*.py", "seeds/test_*.py", "frameworks/crewai/test_seed_blocks.py")
_FILES = sorted(file for where in _WHERE for file in _TESTS.glob(where))


class _Test(NamedTuple):
    place: str
    sections: tuple[str, ...]


def _tests() -> Iterator[_Test]:
    for file in _FILES:
        if file.name == Path(__file__).name:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield _Test(f"{file.name}::{node.name}", tuple(_sections(node)))


def _sections(node: ast.FunctionDef) -> Iterator[str]:
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "spec":
            yield from (arg.value for arg in each.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def test_every_test_names_its_sections() -> None:
    assert [test.place for test in _tests() if not test.sections] == []


def test_no_test_names_a_section_that_does_not_exist() -> None:
    unknown = [(test.place, name) for test in _tests() for name in test.sections if name not in SECTIONS]
    assert unknown == []


def test_every_section_has_a_test_or_a_reason() -> None:
    tested = {name for test in _tests() for name in test.sections}
    assert [name for name in SECTIONS if name not in tested and not LATER.get(name)] == []


def test_no_reason_outlives_the_gap_it_explains() -> None:
    tested = {name for test in _tests() for name in test.sections}
    assert [name for name in LATER if name in tested or name not in SECTIONS] == []

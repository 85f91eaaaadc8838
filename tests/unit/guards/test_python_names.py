"""Positive model of the Python guard: what the tables do not list is refused, and everyday programs are listed."""

import json
import time
from typing import Any

import pytest

from qwed.guards._python import argument_rules, module_names, syntax
from qwed.guards._python.library_rules import HARMLESS, RULES, UNKNOWN
from qwed.guards._python.report import rule_of
from qwed.guards.code_guard import CodeGuard
from qwed.guards.python_code import findings
from tests.support.case_tables import each, rows

REFUSED, EVERYDAY = rows("python_refused.jsonl"), rows("python_everyday.jsonl")


def label(row: dict[str, Any]) -> str:
    return json.dumps(row["code"])[:70]


@each("row", REFUSED, ids=label)
def test_a_program_that_acts_through_an_unlisted_name_or_a_hidden_lookup_is_refused(row):
    assert not CodeGuard().verify_safety(row["code"]).verified


@each("row", EVERYDAY, ids=label)
def test_an_everyday_program_is_understood(row):
    result = findings(row["code"])
    assert (result.violations, result.unresolved, result.syntax_error) == ((), (), None)


def test_each_file_lists_its_modules_once_in_order_with_names_in_order():
    for file in module_names.FILES:
        listed = module_names.read_rows(file)
        assert list(listed) == sorted(listed)
        for module, names in listed.items():
            assert names.split() == sorted(set(names.split())), module
            assert all(name.isidentifier() for name in names.split()), module
            assert module.replace(".", "_").isidentifier(), module


def test_no_module_of_the_data_is_one_that_acts():
    listed = {module for file in module_names.FILES for module in module_names.read_rows(file)}
    for module in module_names.MODULES:
        prefix = module
        while prefix and prefix not in RULES:
            prefix = prefix.rpartition(".")[0]
        assert not prefix or RULES[prefix] in (HARMLESS, UNKNOWN) or module not in listed, module


def test_no_listed_name_has_a_rule_with_an_effect():
    for file in module_names.FILES:
        for module, names in module_names.read_rows(file).items():
            acting = [name for name in names.split() if rule_of(f"{module}.{name}") != HARMLESS]
            assert acting == [], module


def test_each_module_is_listed_in_one_file():
    first, second = (module_names.read_rows(file).keys() for file in module_names.FILES)
    assert first & second == set()


DECORATORS = ("click.", "typer.")
"""Commands are also decorated with the bare name; what their arguments name is checked in every call."""


def test_a_name_whose_arguments_are_checked_acts_where_it_is_only_mentioned():
    for path in argument_rules.BY_NAME:
        assert path.startswith(DECORATORS) or rule_of(path) != HARMLESS, path


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("logging.info", HARMLESS),
        ("logging.os", UNKNOWN),
        ("math.sqrt", HARMLESS),
        ("math.no_such_name", UNKNOWN),
        ("numpy.mean", HARMLESS),
        ("numpy.no_such_name", UNKNOWN),
        ("mpmath.libmp.backend.exec_", UNKNOWN),
        ("no_such_package.anything", UNKNOWN),
        ("datetime.datetime.now", HARMLESS),
        ("heapq.heappush", HARMLESS),
        ("heapq._private", UNKNOWN),
    ],
)
def test_only_a_listed_name_of_a_module_computes(path, rule):
    assert rule_of(path) == rule


def test_a_line_that_is_no_row_is_an_error(tmp_path):
    broken = tmp_path / "broken.txt"
    for text in ("math sqrt\n", "math:\n", "math: sqrt\nmath: sin\n", "a b: c\n"):
        broken.write_text(text)
        with pytest.raises(module_names.NamesFileError):
            module_names.read_rows(str(broken))


@pytest.mark.parametrize(
    "code",
    ["type X = int", "def f[T](x: T) -> T: return x", "class A[T]: pass"],
)
def test_syntax_newer_than_the_fixed_version_is_refused_on_every_interpreter(code):
    assert findings(code).syntax_error.startswith("not Python: ")


@pytest.mark.parametrize(
    ("opening", "times", "middle", "closing"),
    [
        ("(", syntax.MAX_BRACKETS + 1, "1", ")"),
        ("-", syntax.MAX_DEPTH + 1, "1", ""),
        ("1+", syntax.MAX_DEPTH + 1, "1", ""),
        ("a.", syntax.MAX_DEPTH + 1, "b", ""),
        ("lambda:", syntax.MAX_DEPTH + 1, "1", ""),
        ("not ", 50_000, "1", ""),
        ("a.", 30_000, "b", ""),
    ],
)
def test_what_is_nested_too_deeply_is_refused_with_the_bound(opening, times, middle, closing):
    error = findings(opening * times + middle + closing * times).syntax_error
    assert f"more than {syntax.MAX_BRACKETS} nested" in error or f"more than {syntax.MAX_DEPTH} nested" in error


def test_what_is_within_the_bounds_is_read():
    for code in ("(" * 90 + "1" + ")" * 90, "1+" * 240 + "1", "if x: pass\n" + "elif x: pass\n" * 200):
        assert findings(f"x = 1\n{code}\n").syntax_error is None


_BLOCK = """
def process_{0}(rows, limit=10):
    totals = {{}}
    for row in rows[:limit]:
        key = row["name"].strip().lower()
        totals[key] = totals.get(key, 0) + row.get("amount", 0)
    result = [{{"name": name, "total": totals[name]}} for name in sorted(totals)]
    frame = pd.DataFrame(result)
    frame["share"] = frame["total"] / frame["total"].sum()
    print(frame.sort_values("share").head(3).describe(), math.sqrt(len(result)), json.dumps(result[:1]))
    return helper_{0}(result)

class Item_{0}:
    def __init__(self, name, value):
        self.name = name
        self.value = value
    def scaled(self, by):
        return Item_{0}(self.name, self.value * by)

def helper_{0}(data):
    return [Item_{0}(d["name"], d["total"]).scaled(2) for d in data]
"""


def _seconds(lines: int, end: str) -> float:
    count = lines // _BLOCK.count("\n")
    code = "import json, math\nimport pandas as pd\n" + "".join(map(_BLOCK.format, range(count))) + end
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        assert findings(code).syntax_error is None
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.drill
@pytest.mark.parametrize("end", ["", "open('a.csv')\n"])
def test_four_thousand_lines_take_about_four_times_as_long_as_a_thousand(end):
    assert _seconds(4_000, end) < 5 * _seconds(1_000, end)

"""DESIGN 3: what Python source would do, and which shapes are refused whoever asks."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.guards.code_words import CodeFindings
from qwed.guards.python_code import MAX_BYTES, findings
from qwed.words import Effect, EffectKind

DATA = Path(__file__).parents[2] / "data"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


ATTACKS, HONEST, HOSTILE = rows("python_attacks.jsonl"), rows("python_honest.jsonl"), rows("python_hostile.jsonl")


def label(row: dict[str, Any]) -> str:
    return json.dumps(row.get("code") or row.get("repeat"))[:70]


def kinds(found: CodeFindings) -> list[str]:
    return sorted({effect.kind.value for effect in found.effects})


@pytest.mark.parametrize("row", ATTACKS, ids=label)
def test_an_attack_is_refused_by_the_name_of_what_it_does(row):
    found = findings(row["code"])
    assert f"Dangerous pattern: {row['pattern']}" in found.violations
    assert found.syntax_error is None
    lines = row["code"].count("\n") + 1
    assert all(1 <= issue.line_number <= lines and issue.description for issue in found.issues)


@pytest.mark.parametrize("row", HONEST, ids=label)
def test_an_ordinary_program_is_understood_and_passes(row):
    found = findings(row["code"])
    assert (found.violations, found.unresolved, found.syntax_error) == ((), (), None)
    assert kinds(found) == row["effects"]


@pytest.mark.parametrize("row", HOSTILE, ids=label)
def test_no_input_raises_or_looks_harmless_by_being_unreadable(row):
    if "repeat" in row:
        opening, times, middle, closing = row["repeat"]
        found = findings(opening * times + middle + closing * times)
    else:
        found = findings(row["code"])
        assert found.syntax_error
    assert isinstance(found, CodeFindings)
    if found.syntax_error:
        assert (found.violations, found.effects) == ((), ())


# Not Python inside a function, or (`del eval`) no attack there: a local name never falls back to the builtin.
MODULE_ONLY = ("coding:", "import *", "global ", "del eval")
MOVABLE = [row for row in ATTACKS if not any(word in row["code"] for word in MODULE_ONLY)]


@pytest.mark.parametrize("row", MOVABLE, ids=label)
def test_an_attack_inside_a_function_is_still_found(row):
    body = "".join(f"    {line}\n" for line in row["code"].splitlines())
    found = findings(f"def outer():\n{body}outer()\n")
    assert f"Dangerous pattern: {row['pattern']}" in found.violations


class _Renamed(ast.NodeTransformer):
    """Gives every local variable of functions another name."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def assigned(tree: ast.Module) -> set[str]:
    """Names that are only ever plain variables, so renaming them renames nothing else."""
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    other: set[str] = set()
    for node in ast.walk(tree):
        for attribute in ("name", "arg", "attr", "asname", "rest"):
            other.add(str(getattr(node, attribute, "")))
        other.update(getattr(node, "names", []) if isinstance(node, ast.Global | ast.Nonlocal) else [])
        other.update(alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias))
    return stored - other


@pytest.mark.parametrize("row", [row for row in ATTACKS + HONEST if "coding" not in row["code"]], ids=label)
def test_renaming_variables_leaves_the_verdict_alone(row):
    tree = ast.parse(row["code"])
    names = {name: f"v{index}_{name}" for index, name in enumerate(sorted(assigned(tree)))}
    renamed = findings(ast.unparse(_Renamed(names).visit(tree)))
    plain = findings(ast.unparse(ast.parse(row["code"])))
    assert (renamed.violations, kinds(renamed), bool(renamed.unresolved)) == (
        plain.violations,
        kinds(plain),
        bool(plain.unresolved),
    )


DEAD = (
    "if False:\n    unused_value = 1\n",
    "def unused_function(unused_a, unused_b=2):\n    return unused_a * unused_b\n",
    "class UnusedClass:\n    size = 3\n",
    "unused_list = [unused_n for unused_n in range(3)]\n",
    "import math as unused_math\n",
    "try:\n    pass\nexcept ValueError as unused_error:\n    pass\n",
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ATTACKS + HONEST), st.lists(st.sampled_from(DEAD), min_size=1, max_size=4))
def test_dead_harmless_code_leaves_the_verdict_alone(row, dead):
    plain, padded = findings(row["code"]), findings(row["code"] + "\n" + "".join(dead))
    assert (padded.violations, padded.effects, padded.unresolved) == (plain.violations, plain.effects, plain.unresolved)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([row for row in HONEST if "__future__" not in row["code"]]), st.sampled_from(ATTACKS))
def test_an_attack_before_an_honest_program_is_still_an_attack(honest, attack):
    found = findings(attack["code"] + "\n" + honest["code"])
    assert found.violations


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_gets_an_answer(text):
    assert isinstance(findings(text), CodeFindings)


def test_findings_are_the_same_every_time():
    for row in ATTACKS + HONEST:
        assert findings(row["code"]) == findings(row["code"])


@pytest.mark.parametrize(
    ("code", "effect"),
    [
        ('import os\nos.remove("a.txt")', Effect(EffectKind.DELETE, "a.txt")),
        ('open("b", "wb")', Effect(EffectKind.WRITE, "b")),
        ('open("b", mode="r+")', Effect(EffectKind.WRITE, "b")),
        ('open("b", "rb")', Effect(EffectKind.READ, "b")),
        ('name = "c" + ".txt"\nopen(name)', Effect(EffectKind.READ, "c.txt")),
        ('import io\nio.open("d", "a")', Effect(EffectKind.WRITE, "d")),
        ("files = []\nlist(map(open, files))", Effect(EffectKind.WRITE, "open")),
        ("import os\nlist(map(os.unlink, []))", Effect(EffectKind.DELETE, "os.unlink")),
        ('import requests\nrequests.post("https://x")', Effect(EffectKind.NETWORK, "https://x")),
        ('open(".env")', Effect(EffectKind.SECRET, ".env")),
        ("import os\nos.setuid(0)", Effect(EffectKind.ADMIN, "os.setuid")),
    ],
)
def test_an_effect_names_its_target(code, effect):
    assert effect in findings(code).effects


@pytest.mark.parametrize(
    "code",
    [
        "import unknown\nunknown.go()",
        "go()",
        "from . import sibling",
        "from other.place import *\nrun()",
        "import sys\nsys.path.insert(0, '/tmp')",
        "import os\nos.sched_yield()",
        "import math\nuse = [math]",
        "import os as _A__os\nclass A:\n    def f(self):\n        __os.system('id')",
        "import pandas as pd\ntext = input()\npd.DataFrame().query(text)",
    ],
)
def test_what_nobody_knows_is_unresolved_and_no_violation(code):
    found = findings(code)
    assert found.unresolved
    assert found.violations == ()
    assert "UNRESOLVED" in kinds(found)


def test_a_syntax_error_names_its_line_and_costs_no_trust():
    found = findings("x = 1\ny = (\n")
    assert found.error_line == 2
    assert found.violations == ()


def test_a_program_as_large_as_allowed_is_judged_and_a_larger_one_is_not():
    line = "total = 1 # padding padding padding padding padding padding padding padding padding\n"
    count = MAX_BYTES // len(line)
    assert findings(line * count).syntax_error is None
    assert findings(line * (count + 1)).syntax_error


def test_names_that_cannot_be_followed_are_refused():
    chain = "".join(f"a{i} = a{i + 1}\n" for i in range(100)) + "import os as a100\na0.system('id')\n"
    found = findings(chain)
    assert found.violations or found.syntax_error


def test_many_findings_are_cut_short_but_each_kind_of_effect_stays():
    code = "import os\n" + "".join(f"open('f{i}')\n" for i in range(400)) + "os.remove('x')\n"
    assert kinds(findings(code)) == ["DELETE", "READ"]

"""Effects of Python source, and constructs refused at every trust level (DESIGN 3)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.guards.code_findings import CodeFindings
from qwed.guards.python_code import MAX_BYTES, findings
from qwed.model import Effect, EffectKind
from tests.support.case_tables import each, rows

ATTACKS, HONEST, HOSTILE = rows("python_attacks.jsonl"), rows("python_honest.jsonl"), rows("python_hostile.jsonl")
EFFECTS = rows("python_effects.jsonl")


def label(row: dict[str, Any]) -> str:
    return json.dumps(row.get("code") or row.get("repeat"))[:70]


def kinds(result: CodeFindings) -> list[str]:
    return sorted({effect.kind.value for effect in result.effects})


@each("row", ATTACKS, ids=label)
def test_an_attack_is_refused_by_the_name_of_what_it_does(row):
    result = findings(row["code"])
    assert f"Dangerous pattern: {row['pattern']}" in result.violations
    assert result.syntax_error is None
    lines = row["code"].count("\n") + 1
    assert all(1 <= issue.line_number <= lines and issue.description for issue in result.issues)


@each("row", EFFECTS, ids=label)
def test_an_effect_is_seen_however_it_is_written(row):
    result = findings(row["code"])
    assert row["effect"] in kinds(result)
    assert result.syntax_error is None


@each("row", HONEST, ids=label)
def test_an_ordinary_program_is_understood_and_passes(row):
    result = findings(row["code"])
    assert (result.violations, result.unresolved, result.syntax_error) == ((), (), None)
    assert kinds(result) == row["effects"]


@pytest.mark.parametrize("row", HOSTILE, ids=label)
def test_no_input_raises_or_looks_harmless_by_being_unreadable(row):
    if "repeat" in row:
        opening, times, middle, closing = row["repeat"]
        result = findings(opening * times + middle + closing * times)
    else:
        result = findings(row["code"])
        assert result.syntax_error
    assert isinstance(result, CodeFindings)
    if result.syntax_error:
        assert (result.violations, result.effects) == ((), ())


# Not valid Python inside a function, or not an attack there: a local name never falls back to the builtin, `locals()`
# of a function contains only values that were checked, and a doctest example must be at module level.
MODULE_ONLY = (
    "coding",
    "import *",
    "global ",
    "del e",
    "del __import__",
    "def eval",
    "import eval",
    "for eval",
    "locals()",
    "vars()",
    "await",
    "\n    >>> ",
)
MOVABLE = [row for row in ATTACKS if not any(word in row["code"] for word in MODULE_ONLY)]


@each("row", MOVABLE, ids=label)
def test_an_attack_inside_a_function_is_still_found(row):
    body = "".join(f"    {line}\n" for line in row["code"].splitlines())
    result = findings(f"def outer():\n{body}outer()\n")
    assert f"Dangerous pattern: {row['pattern']}" in result.violations


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([row for row in HONEST if "__future__" not in row["code"]]), st.sampled_from(ATTACKS))
def test_an_attack_before_an_honest_program_is_still_an_attack(honest, attack):
    result = findings(attack["code"] + "\n" + honest["code"])
    assert result.violations


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
        ('from pathlib import Path\nPath("a", "b").unlink()', Effect(EffectKind.DELETE, "a/b")),
        ('from pathlib import Path\nroot = Path("a")\n(root / "b").write_text("")', Effect(EffectKind.WRITE, "a/b")),
        ('import shutil\nshutil.copy("a", "b")', Effect(EffectKind.READ, "a")),
        ('import shutil\nshutil.copy("a", "b")', Effect(EffectKind.WRITE, "b")),
        ('import pandas\npandas.read_csv("https://x/y.csv")', Effect(EffectKind.NETWORK, "https://x/y.csv")),
        ('import zipfile\nzipfile.ZipFile("a.zip")', Effect(EffectKind.READ, "a.zip")),
        ('import tarfile\ntarfile.open("a.tgz", "r:gz")', Effect(EffectKind.READ, "a.tgz")),
        ('def go(path):\n    open(path)\ngo("/etc/shadow")', Effect(EffectKind.SECRET, "/etc/shadow")),
        ('home = input()\nopen(f"{home}/.ssh/id_rsa")', Effect(EffectKind.SECRET, "*/.ssh/id_rsa")),
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
        "import math\nuse = [math]\nuse[0].sys.exit()",
        "import pandas as pd\ntext = input()\npd.DataFrame().query(text)",
    ],
)
def test_an_unknown_name_is_unresolved_and_no_violation(code):
    result = findings(code)
    assert result.unresolved
    assert result.violations == ()
    assert "UNRESOLVED" in kinds(result)


def test_a_syntax_error_names_its_line_and_costs_no_trust():
    result = findings("x = 1\ny = (\n")
    assert result.error_line == 2
    assert result.violations == ()


def test_a_program_as_large_as_allowed_is_judged_and_a_larger_one_is_not():
    line = "total = 1 # padding padding padding padding padding padding padding padding padding\n"
    count = MAX_BYTES // len(line)
    assert findings(line * count).syntax_error is None
    assert findings(line * (count + 1)).syntax_error


def test_a_long_chain_of_names_is_followed_to_its_end():
    chain = "".join(f"a{i} = a{i + 1}\n" for i in range(1000)) + "import os as a1000\na0.system('id')\n"
    assert findings(chain).violations == ("Dangerous pattern: os.system",)


def test_names_that_cannot_be_followed_are_refused():
    choice = "(os if x else " * 70 + "os" + ")" * 70
    assert findings(f"import os\nx = 1\n{choice}.system('id')\n").syntax_error


@pytest.mark.parametrize("length", [5, 1_000, 3_000])
def test_a_program_of_any_length_is_read_to_its_last_line(length):
    block = "def f{0}(a, b=3):\n    total = [x * a for x in range(b)]\n    return getattr(a, 'n' + str(b), total)\n"
    code = "import os\n" + "".join(block.format(i) for i in range(length // 3)) + "os.system('id')\n"
    assert findings(code).violations == ("Dangerous pattern: os.system",)


@pytest.mark.parametrize(
    "code",
    [
        "def f(heap, item):\n    heap.append(item)\n    _siftdown(heap, 0, len(heap) - 1)\n",
        "@register\nclass Handler(Base):\n    size = auto()\n    def run(self):\n        return helper(self.size)\n",
        "def f(text):\n    return re.sub(r'\\s+', ' ', text, flags=FLAGS)\n",
        "def f(self):\n    return time() - self.started\n",
    ],
)
def test_a_part_of_a_program_may_use_names_of_the_rest(code):
    result = findings(code)
    assert (result.violations, result.effects, result.unresolved) == ((), (), ())


@pytest.mark.parametrize(
    ("code", "line"),
    [("x = 1\nimport os\nos.remove(x)", 3), ("\n\nopen('a')", 3), ("import unknown_package", 1)],
)
def test_an_effect_says_where_it_is_first_seen(code, line):
    assert findings(code).effect_lines == (line,)


def test_many_findings_are_cut_short_but_each_kind_of_effect_stays():
    code = "import os\n" + "".join(f"open('f{i}')\n" for i in range(400)) + "os.remove('x')\n"
    assert kinds(findings(code)) == ["DELETE", "READ"]

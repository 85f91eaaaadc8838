"""Pre-check of Python source: a program that it accepts has no findings in the full check."""

import ast
import random
import re
import sysconfig
from pathlib import Path

import pytest

from qwed.guards._python import attributes, library_rules, name_resolution, precheck_collect, safe_imports, syntax
from qwed.guards._python.calls import BY_NAME
from qwed.guards._python.precheck import is_plain
from qwed.guards._python.report import rule_of
from qwed.guards.code_findings import CodeFindings
from qwed.guards.python_code import _full_check, _unreadable, findings, parse
from tests.support.case_tables import each, rows
from tests.support.recombined_programs import Recombination

TABLES = ("python_attacks", "python_effects", "python_honest", "python_hostile", "python_fifty_lines")
FIFTY_LINES = rows("python_fifty_lines.jsonl")
TO_SYMPY = [
    'text = "eval(1)"\nprint(simplify(text))',
    'def made():\n    return "eval(1)"\nprint(simplify(made()))',
    'def asked(text="eval(1)"):\n    return simplify(text)\nprint(asked())',
    'def asked(text):\n    return simplify(text)\nprint(asked("eval(1)"))',
    'for text in ["x", "eval(1)"]:\n    print(simplify(text))',
    'print([simplify(text) for text in ("x", "eval(1)")])',
    'class Held:\n    text = "eval(1)"\nprint(simplify(Held.text))',
    'class Held:\n    def put(self):\n        self.text = "eval(1)"\nprint(simplify(Held().text))',
    'first = "ev"\nsecond = first + "al(1)"\nprint(simplify(second))',
    'pair = ("x", "eval(1)")\none, two = pair\nprint(simplify(two), simplify(pair[1]))',
    'texts = {"a": "eval(1)"}\nprint(simplify(texts["a"]), simplify(texts.get("a")))',
    'expression = simplify("x")\nprint(expression.subs("x", "eval(1)"))',
    'expression = simplify("x")\nother = expression\nprint(other.rewrite("eval(1)"))',
    'run = simplify\nprint(run("eval(1)"))',
    'run = lambda text: simplify(text)\nprint(run("eval(1)"))',
    'def hand(function):\n    return function("eval(1)")\nprint(hand(simplify))',
    'print(simplify(f"ev{1}"), simplify(str(1) + "eval(1)"))',
    'print(simplify("x" if 1 else "eval(1)"))',
    'print(simplify(*["eval(1)"]), simplify([["eval(1)"]]), simplify({"x": "eval(1)"}))',
    'print([simplify][0]("eval(1)"), (simplify or None)("eval(1)"))',
    'print(list(map(simplify, ["eval(1)"])))',
    'run = map\nprint(list(run(simplify, ["eval(1)"])))',
    'from functools import partial\nprint(partial(simplify, "eval(1)")())',
    'from functools import partial as later\nprint(later(simplify, "eval(1)")())',
    'made = simplify("x")\nprint(made["eval(1)"])',
    'made = simplify("x")\nmade[0] = "eval(1)"',
    'made = simplify("x")\nfor made[0] in ["eval(1)"]:\n    print(made)',
    'made = simplify("x")\none, (made[0], two) = 1, ("eval(1)", 2)',
    'with simplify("x") as text:\n    print(text.doit("eval(1)"))',
]
"""Ways in which a text reaches sympy, which would run it."""


def plain(code: str) -> bool:
    return is_plain(parse(code), len(code))


def programs(*names: str) -> list[str]:
    codes = [row["code"] for name in names for row in rows(f"{name}.jsonl") if "code" in row]
    return [code for code in codes if _unreadable(code) is None and _readable(code)]


def _readable(code: str) -> bool:
    try:
        parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def assert_alike(code: str) -> None:
    alone = _full_check(parse(code))
    assert findings(code) == alone
    assert alone == CodeFindings() or not plain(code)


@pytest.mark.parametrize("name", TABLES)
def test_the_findings_are_those_of_the_full_check_alone(name):
    for code in programs(name):
        assert_alike(code)


def test_no_attack_and_no_effect_is_plain_and_many_honest_programs_are():
    assert not any(map(plain, programs("python_attacks", "python_effects")))
    honest = programs("python_honest")
    assert sum(map(plain, honest)) > len(honest) / 3


@each("row", FIFTY_LINES, ids=lambda row: row["name"])
def test_ordinary_verifications_of_fifty_lines_are_decided_at_one_look(row):
    assert row["code"].count("\n") in (49, 50)
    assert plain(row["code"])


MAIN = 'if __name__ == "__main__":\n    print(1)\n'


def test_a_program_that_asks_whether_it_is_run_as_one_is_as_plain_as_without():
    for code in programs(*TABLES):
        guarded = f"{code}\n{MAIN}"
        if len(code) < 4_000 and _readable(guarded):
            assert plain(guarded) == plain(f"{code}\nif __name__ == 1:\n    print(1)\n")
            assert not plain(guarded) or _full_check(parse(guarded)) == CodeFindings()


@each(
    "line",
    [
        'print("__main__")',
        'print({"__main__": 1}["__main__"])',
        'name = "__main__"',
        'print(name == "__main__")',
        'print(__name__ == ["__main__"])',
        'print(__name__ == "a" == "__main__")',
        'print("__main__" == __name__)',
        'print(__name__ == "__globals__")',
        'print(__name__("__main__") == 1)',
        'print((__name__ == "__main__") and "__main__")',
    ],
)
def test_the_name_of_the_main_module_is_left_to_the_full_check_wherever_else_it_stands(line):
    assert not plain(f"{MAIN}name = 1\n{line}\n")


@each(
    "code",
    [
        "class Told:\n    def __eq__(self, text):\n        return self.held[text]\n__name__ = Told()\n",
        "from sympy import symbols\n__name__ = symbols('x')\n",
        "import z3\n__name__ = z3.Int('x')\n",
        "import json as __name__\n",
        "def __name__(text):\n    return text\n",
    ],
)
def test_whatever_is_asked_for_the_name_of_the_main_module_means_as_little(code):
    assert_alike(f"{code}{MAIN}")
    assert_alike(f"{code}print([__name__ in '__main__' for __name__ in 'ab'], __name__ < '__main__')\n")


@each("code", TO_SYMPY)
def test_a_text_that_may_reach_sympy_is_left_to_the_full_check(code):
    assert not plain(f"from sympy import simplify\n{code}\n")
    assert not plain(f"from sympy import *\n{code}\n")
    assert not plain(f"import sympy\n{code.replace('simplify', 'sympy.simplify')}\n")


def test_a_method_that_runs_text_is_left_to_the_full_check_whatever_is_imported_of_sympy():
    for line in ("import sympy", "from sympy import *", "from sympy import pi", "import sympy.geometry as g"):
        assert not plain(f"{line}\ndef given(value):\n    return value.subs('eval(1)', 2)\n")


def test_a_library_that_gives_all_of_its_names_is_judged_by_those_that_are_used():
    assert plain("from z3 import *\nx = Int('x')\ns = Solver()\ns.add(x > 1)\nprint(s.check() == sat)\n")
    assert plain("from sympy import *\nx = symbols('x')\nprint(diff(x**2, x))\n")
    assert not plain("from z3 import *\nopen_log('here')\n")
    assert not plain("from sympy import *\npreview(1)\n")
    assert not plain("from sympy import *\nfrom z3 import *\nprint(1)\n")
    risky = safe_imports.RISKY_NAMES | (library_rules.BUILTINS - safe_imports.SAFE_BUILTINS)
    assert not [name for name in sorted(risky) if plain(f"from decimal import *\nprint({name})\n")]


def _recombined(count: int, seed: int) -> None:
    all_programs = programs(*TABLES)
    rule_parts = {part for path in (*library_rules.RULES, *BY_NAME) for part in path.replace("()", "").split(".")}
    names = (
        rule_parts
        | attributes.REACHING
        | name_resolution.REACHABLE_MODULES
        | library_rules.BUILTINS
        | library_rules.ASSUMED.keys()
    )
    hosts = [code for code in all_programs if plain(code)] + [row["code"] for row in FIFTY_LINES] * 6
    hosts += [re.sub(r"(?m)^from (sympy|z3|decimal|math) import .*$", r"from \1 import *", code) for code in hosts]
    hosts += [f"{code}\n{MAIN}" for code in hosts]
    small = [code for code in all_programs if len(code) < 6000]
    plain_count = 0
    for code in Recombination(small, hosts, sorted(filter(str.isidentifier, names)), seed).programs(count):
        if plain(code):
            plain_count += 1
            assert _full_check(parse(code)) == CodeFindings(), code
    assert plain_count > count / 10


def test_what_is_plain_of_programs_put_together_from_others_means_nothing():
    _recombined(120, 1)


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(2, 12))
def test_what_is_plain_of_very_many_such_programs_means_nothing(seed):
    _recombined(5_000, seed)


def _library(count: int | None) -> list[Path]:
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    files += sorted(Path(sysconfig.get_paths()["stdlib"]).glob("[a-su-z]*/*.py"))
    random.Random(1).shuffle(files)
    return files[:count]


def _check_library(count: int | None) -> None:
    for file in _library(count):
        code = file.read_bytes().decode("utf-8", "replace")
        if len(code) < 20_000 and _readable(code) and plain(code):
            assert _full_check(parse(code)) == CodeFindings(), file


def test_what_is_plain_of_the_standard_library_means_nothing():
    _check_library(150)


@pytest.mark.drill
def test_what_is_plain_of_all_of_the_standard_library_means_nothing():
    _check_library(None)


HOST = "from decimal import Decimal\nvalue = Decimal(1)\nprint(value)\n{}\n"


def test_a_telling_name_in_a_plain_program_makes_it_one_for_the_full_check():
    assert plain(HOST.format("print(value.sqrt)"))
    risky = sorted(safe_imports.RISKY_ATTRIBUTES)
    assert not [name for name in risky if plain(HOST.format(f"print(value.{name})"))]
    assert not [name for name in risky if plain(HOST.format(f"print(value.{name}())"))]
    risky_names = sorted(
        safe_imports.RISKY_NAMES | library_rules.ASSUMED.keys() | (BY_NAME.keys() & library_rules.BUILTINS)
    )
    assert not [name for name in risky_names if plain(HOST.format(f"print({name})"))]
    assert not [
        name for name in sorted(safe_imports.RISKY_NAMES) if plain(HOST.format(f"def {name}(): pass\nprint({name})"))
    ]


def test_whatever_a_row_does_not_call_harmless_is_left_to_the_full_check():
    ruled = [
        path
        for path, rule in library_rules.RULES.items()
        if rule != library_rules.HARMLESS and path not in library_rules.BUILTINS
    ]
    passed = []
    for path in ruled:
        module, _, name = path.replace("()", "").rpartition(".")
        root = path.partition(".")[0].partition("(")[0]
        written = [f"import {root}\nprint({path})"]
        written += [f"from {module} import {name}", f"from {module} import {name} as other"] if module else []
        passed += [code for code in written if _readable(code) and plain(HOST.format(code))]
    # `import package` alone has no finding if the rule is for a submodule.
    assert [code for code in passed if _full_check(parse(HOST.format(code))) != CodeFindings()] == []


def test_what_a_call_is_judged_by_its_arguments_for_is_left_to_the_full_check():
    dotted = [path for path in BY_NAME if "()" not in path and "." in path and path not in safe_imports.OPTION_CALLS]
    for path in dotted:
        module, _, name = path.rpartition(".")
        assert not plain(HOST.format(f"from {module} import {name}\nprint({name})")), path
        assert not plain(HOST.format(f"import {module}\nprint({path})")), path


@each(
    "code",
    [
        'from z3 import Solver\nsolver = Solver()\nname = "x"\nsolver.set(name, "y")',
        'from z3 import set_param\nset_param("proof.log", "here")',
        "from z3 import set_param\nset_param(trace=True)",
        "from z3 import set_param\nrun = set_param\nrun(1)",
        'import z3\nz3.Solver().set("dump_" + "models", 1)',
        "import z3\nrun = z3.set_param\nrun(1)",
    ],
)
def test_an_option_of_z3_that_may_name_a_file_is_left_to_the_full_check(code):
    assert not plain(code)


def test_a_node_that_is_not_in_the_table_is_left_to_the_full_check():
    kinds = {kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.stmt | ast.expr)}
    current = {kind for kind in kinds if not (kind.__doc__ or "").startswith("Deprecated")}
    unknown = current - precheck_collect._COLLECTORS.keys() - {ast.Name}
    assert {ast.Match, ast.Global, ast.Nonlocal, ast.Delete, ast.NamedExpr, ast.AsyncFunctionDef} <= unknown
    for kind in unknown:
        with pytest.raises(precheck_collect.NeedsFullCheckError):
            # Python 3.13 warns of a call without the required fields.
            precheck_collect.collect_survey(ast.Module([kind.__new__(kind)], []))


def test_only_a_node_with_the_members_it_is_known_by_is_entered():
    assert precheck_collect._KINDS.keys() == precheck_collect._COLLECTORS.keys()
    assert all(syntax.is_known(kind) for kind in precheck_collect._KINDS)
    surplus = type("Name", (ast.Name,), {"_fields": (*ast.Name._fields, "surplus")})
    assert not syntax.is_known(surplus)
    assert not syntax.is_known(type("TemplateStr", (ast.expr,), {"_fields": ("values",)}))


def test_plain_builtins_are_those_that_no_row_and_no_call_speaks_of():
    assert {"print", "len", "range", "sum", "isinstance", "super"} <= safe_imports.SAFE_BUILTINS
    assert safe_imports.SAFE_BUILTINS.isdisjoint(
        {"open", "eval", "getattr", "vars", "locals", "globals", "dir", "type"}
    )
    assert all(rule_of(name) == library_rules.HARMLESS for name in safe_imports.SAFE_BUILTINS)


@pytest.mark.parametrize("count", [5, 25, 130])
def test_a_value_handed_on_from_function_to_function_is_followed_to_the_end(count):
    chain = "".join(f"def f{n}(a):\n    return f{n + 1}(a)\n" for n in range(count))
    used = f"import pathlib\n{chain}def f{count}(a):\n    return a.joinpath('b').unlink()\nf0(pathlib.Path('a'))\n"
    result = findings(used)
    assert result.syntax_error is None
    assert "DELETE" in {effect.kind for effect in result.effects}
    assert (
        findings(f"import numpy\n{chain}def f{count}(a):\n    return a.mean()\nf0(numpy.ones(3))\n") == CodeFindings()
    )

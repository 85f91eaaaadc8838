"""Python programs that only compute have no findings; texts that reach sympy or options of z3 do."""

import ast

import pytest

from qwed.guards._python.library_rules import HARMLESS, RULES
from qwed.guards._python.scope_builder import build_program
from qwed.guards._python.syntax import is_known
from qwed.guards.code_findings import CodeFindings
from qwed.guards.python_code import findings
from tests.support.case_tables import each, rows

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
MAIN = 'if __name__ == "__main__":\n    print(1)\n'


@each("row", rows("python_fifty_lines.jsonl"), ids=lambda row: row["name"])
def test_ordinary_verifications_of_fifty_lines_have_no_findings(row):
    assert row["code"].count("\n") in (49, 50)
    assert findings(row["code"]) == findings(row["code"] + MAIN) == CodeFindings()


@each("code", TO_SYMPY)
def test_a_text_that_may_reach_sympy_is_a_violation(code):
    assert findings(f"from sympy import simplify\n{code}\n").violations
    assert findings(f"from sympy import *\n{code}\n").violations
    assert findings(f"import sympy\n{code.replace('simplify', 'sympy.simplify')}\n").violations


@each("line", ["import sympy", "from sympy import *", "from sympy import pi", "import sympy.geometry as g"])
def test_a_method_that_runs_text_is_a_violation_whatever_is_imported_of_sympy(line):
    assert findings(f"{line}\ndef given(value):\n    return value.subs('eval(1)', 2)\n").violations


def test_a_library_that_gives_all_of_its_names_is_judged_by_those_that_are_used():
    harmless = "from z3 import *\nx = Int('x')\ns = Solver()\ns.add(x > 1)\nprint(s.check() == sat)\n"
    assert findings(harmless) == CodeFindings()
    assert findings("from sympy import *\nx = symbols('x')\nprint(diff(x**2, x))\n") == CodeFindings()
    assert findings("from z3 import *\nopen_log('here')\n").effects
    assert findings("from sympy import *\npreview(1)\n") != CodeFindings()


@each(
    "code",
    [
        'from z3 import set_param\nset_param("proof.log", "here")',
        "from z3 import set_param\nset_param(trace=True)",
        'import z3\nz3.Solver().set("dump_" + "models", 1)',
    ],
)
def test_an_option_of_z3_that_names_a_file_is_an_effect(code):
    assert findings(code).effects


def test_a_name_with_a_rule_has_a_finding_however_it_is_imported():
    ruled = [path for path, rule in RULES.items() if rule != HARMLESS and "." in path and "()" not in path]
    written = [
        f"from {module} import {name}{alias}\nprint({alias.removeprefix(' as ') or name})"
        for module, _, name in (path.rpartition(".") for path in ruled)
        for alias in ("", " as other")
    ]
    assert [code for code in written if findings(code) == CodeFindings()] == []


@each("written", ["numpy.linalg", "[numpy.linalg][0]", "(lambda: numpy.linalg)()"])
def test_a_module_as_a_value_is_not_known(written):
    assert findings(f"import numpy\nprint({written})\n").lookups


def test_a_node_of_an_unknown_kind_is_not_understood():
    surplus = type("Name", (ast.Name,), {"_fields": (*ast.Name._fields, "surplus")})
    assert not is_known(surplus)
    assert not is_known(type("TemplateStr", (ast.expr,), {"_fields": ("values",)}))
    # Python 3.13 warns of a call without the required fields.
    statement = ast.Expr(surplus.__new__(surplus))
    assert build_program(ast.Module([statement], [])).unknown == {"Name"}


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

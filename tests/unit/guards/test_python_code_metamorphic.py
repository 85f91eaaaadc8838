"""Metamorphic tests: the same Python program written in another way has the same findings (DESIGN 3)."""

import ast
import builtins
from collections.abc import Callable
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.guards.python_code import findings
from tests.support.case_tables import rows

NAMES = ("python_attacks.jsonl", "python_effects.jsonl", "python_honest.jsonl")
# An encoding cookie is a comment, which the syntax tree does not contain.
ROWS = [row for name in NAMES for row in rows(name) if "coding" not in row["code"]]

Judgement = tuple[set[str], set[str], bool]


@cache
def judged(code: str) -> Judgement:
    result = findings(code)
    assert result.syntax_error is None
    return (
        {issue.type for issue in result.issues},
        {effect.kind.value for effect in result.effects},
        bool(result.unresolved),
    )


def changed(rewrite: Callable[[str], str]) -> list[str]:
    """Return the programs whose findings change when they are rewritten."""
    return [row["code"] for row in ROWS if judged(rewrite(row["code"])) != judged(row["code"])]


class _Renamed(ast.NodeTransformer):
    """Transformer that gives every variable another name."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def assigned(tree: ast.Module) -> set[str]:
    """Return the names that are only plain variables, so that renaming them renames nothing else."""
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    other: set[str] = set()
    for node in ast.walk(tree):
        for attribute in ("name", "arg", "attr", "asname", "rest"):
            other.add(str(getattr(node, attribute, "")))
        if isinstance(node, ast.Constant):
            other.add(str(node.value))
        other.update(getattr(node, "names", []) if isinstance(node, ast.Global | ast.Nonlocal) else [])
        other.update(alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias))
    # A builtin has a meaning even if nothing is bound to it.
    return {name for name in stored if not name.startswith("__")} - other - set(dir(builtins))


def renamed(code: str) -> str:
    tree = ast.parse(code)
    names = {name: f"v{index}_renamed" for index, name in enumerate(sorted(assigned(tree)))}
    return ast.unparse(_Renamed(names).visit(tree))


def test_renaming_variables_changes_nothing():
    assert changed(renamed) == []


def test_another_layout_changes_nothing():
    assert changed(lambda code: ast.unparse(ast.parse(code))) == []


def test_comments_and_blank_lines_change_nothing():
    assert changed(lambda code: f"# a word before\n\n{code}\n\n# and one after: os.system('id')\n") == []


class _Split(ast.NodeTransformer):
    """Transformer that gives every imported name a statement of its own."""

    def visit_Import(self, node: ast.Import) -> list[ast.Import]:
        return [ast.copy_location(ast.Import([alias]), node) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.ImportFrom]:
        return [ast.copy_location(ast.ImportFrom(node.module, [alias], node.level), node) for alias in node.names]


def test_splitting_imports_changes_nothing():
    assert changed(lambda code: ast.unparse(_Split().visit(ast.parse(code)))) == []


def reordered(tree: ast.Module) -> ast.Module:
    """Reverse the order of adjacent plain functions."""
    body: list[ast.stmt] = []
    run: list[ast.stmt] = []
    for statement in [*tree.body, ast.Pass()]:
        if isinstance(statement, ast.FunctionDef) and not statement.decorator_list and not statement.args.defaults:
            run.append(statement)
        else:
            body += [*reversed(run), statement]
            run = []
    return ast.Module(body[:-1], [])


def test_the_order_of_independent_functions_changes_nothing():
    assert changed(lambda code: ast.unparse(reordered(ast.parse(code)))) == []


DEAD = (
    "if False:\n    unused_value = 1\n",
    "def unused_function(unused_a, unused_b=2):\n    return unused_a * unused_b\n",
    "class UnusedClass:\n    size = 3\n",
    "unused_list = [unused_n for unused_n in range(3)]\n",
    "import math as unused_math\n",
    "try:\n    pass\nexcept ValueError as unused_error:\n    pass\n",
    "for unused_index, unused_item in enumerate('abc'):\n    continue\n",
    "unused_text = f'{1 + 1:>10}'.strip().upper()\n",
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ROWS), st.lists(st.sampled_from(DEAD), min_size=1, max_size=4))
def test_dead_harmless_code_changes_nothing(row, dead):
    plain, padded = findings(row["code"]), findings(row["code"] + "\n" + "".join(dead))
    assert (padded.violations, padded.effects, padded.unresolved) == (plain.violations, plain.effects, plain.unresolved)


def named(tree: ast.Module, *attributes: str) -> set[str]:
    """Return the names in these fields of the program's nodes."""
    values = (getattr(node, attribute, None) for node in ast.walk(tree) for attribute in attributes)
    return {name for name in values if isinstance(name, str)}


def bound(tree: ast.Module) -> dict[str, str]:
    """Return every name that the program binds, with its path if an import binds it."""
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    meanings = dict.fromkeys(stored | named(tree, "arg", "rest"), "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name, path = alias.asname or alias.name.split(".")[0], f"{getattr(node, 'module', '')}.{alias.name}"
                meanings[name] = path if meanings.get(name, path) == path else ""
        elif isinstance(getattr(node, "name", None), str) and not isinstance(node, ast.alias):
            meanings[node.name] = ""  # type: ignore[attr-defined]  # asked above
    return meanings


def mentioned(tree: ast.Module) -> set[str]:
    """Return every name in the program, of a variable or of an attribute."""
    return named(tree, "id", "attr") | set(bound(tree))


def independent(one: str, other: str) -> bool:
    """Return True if neither program gives a name of the other another meaning."""
    trees = ast.parse(one), ast.parse(other)
    meanings, others = map(bound, trees)
    shared = (mentioned(trees[0]) & mentioned(trees[1])) & (set(meanings) | set(others))
    # A star import can bind every name.
    return not {"*"} & {*meanings, *others} and all(meanings.get(name) == others.get(name) != "" for name in shared)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(ROWS), st.sampled_from(ROWS))
def test_two_programs_together_do_what_either_does(one, other):
    if "__future__" in other["code"]:
        one, other = other, one
    together, apart = judged(f"{one['code']}\n{other['code']}"), (judged(one["code"]), judged(other["code"]))
    expected = apart[0][0] | apart[1][0]
    # If one program rebinds a name of the other, the findings may have other names, but they never disappear.
    assert together[0] >= expected if independent(one["code"], other["code"]) else bool(together[0]) >= bool(expected)

"""Effects of JavaScript and TypeScript source, and constructs refused at every trust level (DESIGN 3)."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.guards.code_findings import CodeFindings
from qwed.guards.code_guard import CodeGuard
from qwed.guards.javascript_code import MAX_BYTES, findings
from qwed.model import Effect, EffectKind
from tests.support.case_tables import each, rows

ATTACKS, HONEST = rows("javascript_attacks.jsonl"), rows("javascript_honest.jsonl")
EFFECTS, HOSTILE = rows("javascript_effects.jsonl"), rows("javascript_hostile.jsonl")


def label(row: dict[str, Any]) -> str:
    return json.dumps(row.get("code") or row.get("repeat"))[:70]


def kinds(result: CodeFindings) -> list[str]:
    return sorted({effect.kind.value for effect in result.effects})


def analyze(row: dict[str, Any], code: str | None = None) -> CodeFindings:
    return findings(row["code"] if code is None else code, typescript=row.get("typescript", False))


@each("row", ATTACKS, ids=label)
def test_an_attack_is_refused_by_the_name_of_what_it_does(row):
    result = analyze(row)
    assert result.syntax_error is None
    assert f"Dangerous pattern: {row['pattern']}" in result.violations
    lines = row["code"].count("\n") + 1
    assert all(1 <= issue.line_number <= lines and issue.description for issue in result.issues)


@each("row", HONEST + EFFECTS, ids=label)
def test_an_ordinary_program_is_understood_and_its_effects_are_told(row):
    result = analyze(row)
    assert (result.violations, result.unresolved, result.syntax_error) == ((), (), None)
    assert kinds(result) == row["effects"]
    assert len(result.effect_lines) == len(result.effects)
    assert all(line >= 1 for line in result.effect_lines)


@each("row", [row for row in HONEST if "typescript" not in row], ids=label)
def test_ordinary_javascript_is_ordinary_typescript(row):
    # TypeScript checks a few things JavaScript does not; none of them is in the table.
    result = findings(row["code"], typescript=True)
    assert (result.violations, result.syntax_error) == ((), None)
    assert kinds(result) == row["effects"]


@pytest.mark.parametrize("row", HOSTILE, ids=label)
def test_no_input_raises_or_looks_harmless_by_being_unreadable(row):
    if "repeat" in row:
        opening, times, middle, closing = row["repeat"]
        result = findings(opening * times + middle + closing * times)
    else:
        result = findings(row["code"])
        assert result.syntax_error
    if result.syntax_error:
        assert (result.violations, result.effects) == ((), ())


STAYING = re.compile(r"^(import|export|namespace|declare)\b|\bawait\b", re.MULTILINE)
MOVABLE = [row for row in ATTACKS if not STAYING.search(row["code"])]


@each("row", MOVABLE, ids=label)
def test_an_attack_inside_a_function_is_still_found(row):
    result = analyze(row, f"(function outer() {{\n{row['code']}\n}})();\n")
    assert result.violations


def renamed(code: str) -> str:
    """Rename every plain variable: one that is never a property, a string or a shorthand."""
    for index, name in enumerate(sorted(set(re.findall(r"\b(?:const|let|var) (\w+) =", code)))):
        plain = re.compile(rf"(?<![\w.$'\"`\\-]){name}(?![\w$'\"`:-])")
        shorthand = re.search(rf"[{{,]\s*{name}\s*[,}}]", code)
        if len(plain.findall(code)) == len(re.findall(rf"{name}", code)) and not shorthand:
            code = plain.sub(f"v{index}_{name}", code)
    return code


# If the names themselves are the violation, renaming removes it.
NAMED = [row for row in ATTACKS + HONEST + EFFECTS if "names" not in row.get("pattern", "")]


@each("row", NAMED, ids=label)
def test_renaming_variables_leaves_the_verdict_alone(row):
    plain, other = analyze(row), analyze(row, renamed(row["code"]))
    assert (other.violations, kinds(other), other.syntax_error) == (plain.violations, kinds(plain), plain.syntax_error)


@each("row", ATTACKS + HONEST + EFFECTS, ids=label)
def test_layout_and_comments_leave_the_verdict_alone(row):
    plain = analyze(row)
    other = analyze(row, "// eval('x')\n/* require('fs') */\n" + re.sub(r";\n", " ; // eval\n\n", row["code"]))
    assert (other.violations, other.effects, other.unresolved) == (plain.violations, plain.effects, plain.unresolved)


DEAD = (
    "if (false) { let unusedA = 1; }\n",
    "function unusedB(unusedC, unusedD = 2) { return unusedC * unusedD; }\n",
    "class UnusedE { size = 3; }\n",
    "const unusedF = [1, 2, 3].map((unusedG) => unusedG + 1);\n",
    "try { Math.max(1, 2); } catch (unusedH) { console.log(unusedH); }\n",
)
SCRIPTS = [row for row in ATTACKS + HONEST + EFFECTS if row["code"].rstrip().endswith((";", "}", ")"))]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SCRIPTS), st.lists(st.sampled_from(DEAD), min_size=1, max_size=5, unique=True))
def test_dead_harmless_code_leaves_the_verdict_alone(row, dead):
    plain, padded = analyze(row), analyze(row, row["code"].rstrip() + "\n;\n" + "".join(dead))
    assert (padded.violations, kinds(padded), padded.unresolved) == (plain.violations, kinds(plain), plain.unresolved)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([row for row in HONEST if "typescript" not in row]), st.sampled_from(MOVABLE))
def test_an_attack_beside_an_honest_program_is_still_an_attack(honest, attack):
    result = analyze(attack, f"(() => {{\n{attack['code']}\n;}})();\n{honest['code']}")
    assert result.violations


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80), st.booleans())
def test_any_text_gets_an_answer(text, typescript):
    assert isinstance(findings(text, typescript), CodeFindings)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "eval",
                "require",
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                "'",
                '"',
                "`",
                "${",
                "=>",
                ".",
                ",",
                ";",
                "=",
                "+",
                "a",
                "b",
                "constructor",
                "this",
                "new",
                "import",
            ]
        )
    )
)
def test_any_heap_of_words_gets_an_answer(words):
    assert isinstance(findings(" ".join(words)), CodeFindings)


def test_findings_are_the_same_every_time():
    for row in ATTACKS + HONEST:
        assert analyze(row) == analyze(row)


@pytest.mark.parametrize(
    ("code", "effect"),
    [
        ("require('fs').unlinkSync('a.txt')", Effect(EffectKind.DELETE, "a.txt")),
        ("import { rm } from 'fs/promises'; await rm('d', {recursive: true})", Effect(EffectKind.DELETE, "d")),
        (
            "const p = '/srv/'; require('fs').writeFile(p + 'x.txt', '', () => {})",
            Effect(EffectKind.WRITE, "/srv/x.txt"),
        ),
        (
            "require('fs').readFileSync(require('path').join('/etc', 'shadow'))",
            Effect(EffectKind.SECRET, "/etc/shadow"),
        ),
        ("require('fs').readFileSync(`${__dirname}/.env`)", Effect(EffectKind.SECRET, "./.env")),
        ("const f = require('fs'); f.renameSync('a', 'b')", Effect(EffectKind.WRITE, "b")),
        ("require('fs').copyFileSync('/etc/passwd', 'x')", Effect(EffectKind.SECRET, "/etc/passwd")),
        ("fetch('https://example.com/' + id); var id = 1", Effect(EffectKind.NETWORK, "https://example.com/1")),
        ("require('https').request({hostname: 'example.com'})", Effect(EffectKind.NETWORK, "example.com")),
        ("require('fs').readFileSync.call(null, 'a')", Effect(EffectKind.READ, "a")),
        ("require('fs').readFileSync.apply(null, ['a'])", Effect(EffectKind.READ, "a")),
        ("function read(fs) { return fs.readFileSync('a'); } read(require('fs'))", Effect(EffectKind.READ, "a")),
    ],
)
def test_an_effect_names_its_target(code, effect):
    assert effect in findings(code).effects


@pytest.mark.parametrize(
    ("code", "unknown"),
    [
        ("require('frobnicate').run()", "frobnicate"),
        ("import x from '@acme/pay'; x()", "@acme/pay"),
        ("import { helper } from './helper'; helper()", "./helper"),
        ("nowhereDefined(1)", "nowhereDefined"),
        ("require('fs').frobnicate('x')", "fs.frobnicate"),
        ("process.frobnicate()", "process.frobnicate"),
    ],
)
def test_an_unknown_name_is_unresolved(code, unknown):
    result = findings(code)
    assert (result.unresolved, result.violations) == ((unknown,), ())
    assert Effect(EffectKind.UNRESOLVED, unknown) in result.effects


@pytest.mark.parametrize(
    "code",
    [
        "import type { A } from './types'; let a: A | null = null;",
        "import './theme.css'; import logo from './logo.svg'; export default logo;",
        "declare const eval2: any; export {};",
        "function process(fetch: number, eval2: string) { return fetch + eval2; }",
        "let open = false; const close = () => { open = !open; }; close();",
    ],
)
def test_names_and_types_of_ones_own_are_harmless(code):
    result = findings(code, typescript=True)
    assert (result.violations, result.effects, result.syntax_error) == ((), (), None)


def test_an_ambient_declaration_does_not_hide_a_global():
    result = findings("declare const process: any;\nprocess.mainModule.require('child_process');", typescript=True)
    assert "Dangerous pattern: child_process" in result.violations


def test_a_syntax_error_names_its_line():
    result = findings("const a = 1;\nconst b = ;\n")
    assert (result.syntax_error, result.error_line) == ("not JavaScript", 2)
    assert findings("let x: = 1", typescript=True).syntax_error == "not TypeScript"


def test_types_are_no_javascript():
    assert findings("let x: number = 1").syntax_error
    assert findings("let x: number = 1", typescript=True).syntax_error is None


def test_a_program_too_long_is_refused_unread():
    assert "split it" in str(findings("a;" * MAX_BYTES).syntax_error)
    assert "split it" in str(findings("é" * (MAX_BYTES // 2 + 1)).syntax_error)


WITHOUT_PARSER = """
import sys
from qwed.guards.javascript_code import findings

sys.modules["tree_sitter"] = None
try:
    findings("1")
except ImportError as error:
    print(error)
del sys.modules["tree_sitter"]
print(findings("1").syntax_error)
"""


def test_without_the_parser_the_extra_is_named():
    ran = subprocess.run([sys.executable, "-c", WITHOUT_PARSER], capture_output=True, text=True, check=True)
    error, with_parser = ran.stdout.splitlines()
    assert "qwed[engines]" in error
    assert with_parser == "None"


@each("row", rows("javascript_refused.jsonl"), ids=label)
def test_a_lookup_that_may_reach_a_built_in_constructor_is_not_understood(row):
    assert findings(row["code"]).unresolved


@each("row", rows("javascript_reached.jsonl"), ids=label)
def test_a_function_that_is_reached_by_another_name_is_not_verified(row):
    assert not CodeGuard().verify_safety(row["code"], "javascript").verified

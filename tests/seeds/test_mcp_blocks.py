"""Scripts of the MCP document, run as printed, and their output."""

from pathlib import Path

import pytest

from qwed_new.guards.code_guard import CodeGuard
from tests.seeds.blocks import Run
from tests.spec.sections import spec


@spec("2.2")
def test_the_derivative_is_verified(run: Run) -> None:
    assert run("mcp_math") == ["derivative of x^3 = 3*x**2", "VERIFIED"]


@spec("2.2")
def test_the_compound_interest_is_not_what_is_asserted(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Check the one example whose arithmetic is wrong (ruling 4.15)."""
    with pytest.raises(AssertionError, match=r"^Expected 14490\.97, got 14499\.48$"):
        run("mcp_finance")
    assert capsys.readouterr().out == "Future value: $14499.48\n"


@spec("2.2")
def test_our_page_about_math_says_which_result_is_right() -> None:
    """Check the right value (ruling 4.15); tests/docs runs what the page shows."""
    page = (Path(__file__).parents[2] / "docs" / "engine-math.md").read_text()
    assert "become 14,490.97 after five years. It has become 14,499.48" in page.replace("\n", " ")


@spec("2.2")
def test_the_code_guard_names_what_is_dangerous(run: Run) -> None:
    assert run("mcp_code_guard") == ["Verified: False", "  - Dangerous pattern: os.system"]


DANGEROUS = {
    "eval": "eval('1')",
    "exec": "exec('1')",
    "compile": "compile('1', 'a', 'eval')",
    "open": "open('notes.txt')",
    "__import__": "__import__('os')",
    "os.system": "import os\nos.system('id')",
    "os.popen": "import os\nos.popen('id')",
    "subprocess": "import subprocess\nsubprocess.run(['id'])",
    "pickle.loads": "import pickle\npickle.loads(b'')",
    "marshal.loads": "import marshal\nmarshal.loads(b'')",
}
RENAMED = {
    "import os as x; x.system('id')": "os.system",
    "from os import popen as op; op('id')": "os.popen",
    "from pickle import loads as l; l(b'')": "pickle.loads",
    "e = eval; e('1')": "eval",
}


@spec("2.2")
@pytest.mark.parametrize("name", DANGEROUS)
def test_every_pattern_of_the_document_is_dangerous(name: str) -> None:
    found = CodeGuard().verify_safety(DANGEROUS[name])
    assert not found.verified
    assert f"Dangerous pattern: {name if name != 'open' else 'READ notes.txt'}" in found.violations


@spec("2.2")
@pytest.mark.parametrize("code", RENAMED)
def test_another_name_for_it_hides_nothing(code: str) -> None:
    found = CodeGuard().verify_safety(code)
    assert not found.verified
    assert f"Dangerous pattern: {RENAMED[code]}" in found.violations


@spec("2.2")
def test_a_greeting_is_not_dangerous() -> None:
    assert CodeGuard().verify_safety("print('hello world')").verified


@spec("2.2")
def test_the_sql_guard_sees_the_injection(run: Run) -> None:
    verified, message = run("mcp_sql_guard")
    assert verified == "Verified: False"
    assert "tautology" in message

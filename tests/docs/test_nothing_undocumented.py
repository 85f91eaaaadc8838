"""Every setting, error code, engine, route, tool and command is documented."""

import dataclasses
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from qwed.api.routes import ROUTES, Route
from qwed.domain.agent import Permissions
from qwed.engines.registry import ENGINE_NAMES, ENGINES
from qwed.kernel.agents.registration import COUNT_LIMITS, MONEY_LIMITS
from qwed.kernel.tools import TOOLS
from qwed.model import Decision, ErrorCode
from qwed.model.currency import CURRENCIES
from qwed.settings import CLIENT_VARIABLES, MCP_VARIABLES, Settings, settings_from, variable_of
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
CODE_PAGES = ("glossary", *(file.stem for file in sorted(DOCS.glob("architecture*.md"))))
"""Pages that name modules and classes."""
ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \|", re.MULTILINE)


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()


def test_the_generated_tables_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_setting_is_documented_and_no_other() -> None:
    expected = {variable_of(field.name) for field in dataclasses.fields(Settings)}
    expected |= CLIENT_VARIABLES | MCP_VARIABLES
    assert {name for name, _ in ROW.findall(page("settings")) if name.startswith("QWED_")} == expected


@pytest.mark.parametrize("field", dataclasses.fields(Settings), ids=lambda field: field.name)
def test_the_documented_default_of_a_setting_is_its_default(field: dataclasses.Field[object]) -> None:
    documented = dict(ROW.findall(page("settings")))[variable_of(field.name)].strip("`")
    if documented == "none":
        assert not field.default
    else:
        assert getattr(settings_from({variable_of(field.name): documented}), field.name) == field.default


def test_every_code_of_the_gateway_and_every_option_of_its_command_is_documented() -> None:
    source = (ROOT / "src" / "qwed_mcp" / "security" / "gateway.py").read_text()
    codes = set(re.findall(r"QWED-MCP-RISK-\d{3}", source))
    assert codes == set(re.findall(r"^\| `(QWED-MCP-RISK-\d{3})` \|", page("mcp"), re.MULTILINE))
    helped = subprocess.run(
        [str(Path(sys.executable).with_name("qwed-mcp")), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert set(re.findall(r"--[a-z-]+", helped.stdout)) - {"--help"} <= set(re.findall(r"--[a-z-]+", page("mcp")))


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_error_code_is_documented(code: ErrorCode) -> None:
    assert f"| `{code.code}` | {code.http} | {code.meaning} |" in page("errors")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_documented(route: Route) -> None:
    assert f"| `{route.method} {route.path}` |" in page("http-api")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_a_page_and_its_row_in_the_table(engine: str) -> None:
    assert (DOCS / f"engine-{engine}.md").exists()
    assert f"[{engine}](engine-{engine}.md)" in page("engines")


def test_no_page_is_about_an_engine_that_is_not_there() -> None:
    assert {file.stem.removeprefix("engine-") for file in DOCS.glob("engine-*.md")} == set(ENGINES)
    assert set(ENGINE_NAMES) <= set(ENGINES)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_is_documented(tool: str) -> None:
    assert f"| `{tool}` | {TOOLS[tool].risk_level} |" in page("tools")


@pytest.mark.parametrize("permission", Permissions.__struct_fields__)
def test_every_permission_is_documented(permission: str) -> None:
    assert f"| `{permission}` |" in page("tools")


@pytest.mark.parametrize("limit", [*MONEY_LIMITS, *COUNT_LIMITS])
def test_every_limit_of_a_budget_is_documented(limit: str) -> None:
    assert f"| `{limit}` |" in page("budget")


@pytest.mark.parametrize("decision", Decision)
def test_every_decision_is_documented(decision: Decision) -> None:
    assert f"| `{decision}` |" in page("decisions")


def test_every_option_of_the_server_is_documented() -> None:
    helped = subprocess.run(
        [sys.executable, "-m", "qwed.cli", "serve", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    options = set(re.findall(r"--[a-z-]+", helped.stdout)) - {"--help"}
    assert options <= set(re.findall(r"--[a-z-]+", page("operating")))


def test_every_make_verb_is_named_in_contributing() -> None:
    verbs = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert [verb for verb in verbs if f"`make {verb}`" not in contributing] == []


def test_every_package_is_on_the_source_map() -> None:
    packages = sorted(path.name for path in (ROOT / "src" / "qwed").iterdir() if (path / "__init__.py").exists())
    assert [name for name in packages if f"{name}/" not in page("architecture")] == []


def test_every_path_on_the_source_map_exists() -> None:
    tree = re.search(r"^```\n(src/.*?)^```", page("architecture"), re.MULTILINE | re.DOTALL)
    assert tree is not None
    path: list[str] = []
    for line in tree[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        path[depth:] = [line.split()[0]]
        assert Path(ROOT, *path).exists(), line


@pytest.mark.parametrize("name", CODE_PAGES)
def test_every_module_and_class_that_an_architecture_page_names_exists(name: str) -> None:
    named = re.findall(r"`([^`\n]+)`", page(name))
    paths = [text for text in named if re.fullmatch(r"[\w/.-]+(?:\.py|\.sql|/)", text)]
    places = (ROOT, ROOT / "src", ROOT / "src" / "qwed")
    assert [path for path in paths if not any((place / path).exists() for place in places)] == []
    source = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    classes = {text for text in named if re.fullmatch(r"(?:[A-Z][a-z]+){2,}", text)}
    assert [text for text in sorted(classes) if text != "TimeoutError" and f"class {text}" not in source] == []


@pytest.mark.parametrize("name", CODE_PAGES)
def test_every_test_that_an_architecture_page_names_exists(name: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page(name))
    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / file).read_text()]
    assert missing == []


def test_the_table_of_layers_is_what_the_imports_are_checked_against() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    # A package in parentheses does not exist yet.
    checked = [re.findall(r"(?<!\()\bqwed[\w.]*", row) for row in layers]
    rows = re.findall(r"^\| \d+ \| (`qwed.*) \|$", page("architecture"), re.MULTILINE)
    assert [re.findall(r"`([\w.]+)`", row) for row in rows] == checked


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("constraints.txt", {"starlette", "msgspec", "pytest", "hatchling", "mcp-server-git"}),
        ("constraints-crewai.txt", {"starlette", "msgspec", "pytest", "hatchling"}),
        ("constraints-servers.txt", {"mcp", "mcp-server-sqlite"}),
    ],
)
def test_the_pins_are_versions_and_not_addresses(name: str, needed: set[str]) -> None:
    lines = (ROOT / name).read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []
    assert needed <= {line.partition("==")[0] for line in pins}


def test_every_currency_is_documented_with_its_decimals() -> None:
    rows = re.findall(r"^\| (\d) \| ([A-Z ]+) \|$", page("a2a-guards"), re.MULTILINE)
    assert {code: int(decimals) for decimals, codes in rows for code in codes.split()} == CURRENCIES

"""The bill of materials in CycloneDX, held to the schema that its makers publish."""

import importlib.metadata
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import qwed
from qwed.engines.table import ENGINES
from qwed_mcp.observability.aibom import AIBOMGenerator
from qwed_mcp.observability.cyclonedx import SPEC_VERSIONS, to_cyclonedx
from qwed_mcp.observability.installed import BEHIND, package_of

if TYPE_CHECKING:
    from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[3]
NAMES = [
    "math",
    "logic",
    "qwed_tax.TaxVerifier",
    "qwed_new.engines.sql_engine",
    "pytest.raises",
    "__main__",
    "\u65e5\u672c",
]
TOOLS = ["execute_python_code", "mcp__files__read_file"]


@cache
def validator(version: str) -> "JsonStrictValidator":
    """Made when it is asked for: that, and the import, take longer than collecting the tests of a directory."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.from_version(version))


def wrong_with(bom: dict[str, Any]) -> object:
    return validator(bom["specVersion"]).validate_str(json.dumps(bom))


def made(**given: Any) -> dict[str, Any]:
    arguments = {"qwed_engines_used": NAMES, "mcp_tools_used": TOOLS, "reproducible": True, **given}
    return AIBOMGenerator().generate_cyclonedx("gpt-4o", **arguments)


def named(bom: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in [*bom["components"], *bom["services"]] if each["name"] == name)
    return found


@pytest.mark.parametrize("version", SPEC_VERSIONS)
def test_a_bill_is_what_the_published_schema_asks_for(version: str) -> None:
    for reproducible in (True, False):
        assert wrong_with(made(spec_version=version, reproducible=reproducible)) is None
    assert wrong_with(made(spec_version=version, qwed_engines_used=[], mcp_tools_used=[])) is None
    assert wrong_with(made(spec_version=version, qwed_engines_used=list(ENGINES))) is None


WRONG: dict[str, dict[str, Any]] = {
    "no such type": {"components": [{"type": "model", "name": "gpt-4o"}]},
    "a component twice": {"components": [{"type": "library", "name": "a"}] * 2},
    "no name": {"services": [{"bom-ref": "tool:a"}]},
    "a member nobody knows": {"manifest_hash": "0"},
    "no serial number": {"serialNumber": "1"},
    "no time": {"metadata": {"timestamp": "yesterday"}},
}


@pytest.mark.parametrize("case", WRONG)
def test_the_schema_does_refuse_a_wrong_bill(case: str) -> None:
    assert wrong_with(made() | WRONG[case]) is not None


def test_the_model_is_a_model_and_a_tool_is_a_service() -> None:
    bom = made()
    model = named(bom, "gpt-4o")
    assert (model["type"], model["modelCard"]["properties"][0]["value"]) == ("machine-learning-model", "generator")
    assert [each["name"] for each in bom["services"]] == TOOLS
    assert bom["services"][1]["group"] == "files"


def test_an_engine_has_the_version_that_is_installed_and_one_that_is_not_here_has_none() -> None:
    bom = made()
    assert named(bom, "math")["version"] == named(bom, "qwed_new.engines.sql_engine")["version"] == qwed.__version__
    assert named(bom, "pytest.raises")["purl"] == f"pkg:pypi/pytest@{importlib.metadata.version('pytest')}"
    for name in ("\u65e5\u672c", "__main__"):
        assert not {"version", "purl", "licenses"} & set(named(bom, name))


def test_what_stands_behind_an_engine_is_listed_with_its_version_and_its_licence() -> None:
    bom = made(qwed_engines_used=["math"])
    for name in ("sympy", "z3-solver"):
        found = named(bom, name)
        assert found["version"] == importlib.metadata.version(name)
        assert found["purl"] == f"pkg:pypi/{name}@{found['version']}"
        assert found["licenses"]


def test_every_reference_leads_to_something_and_everything_is_reached() -> None:
    bom = made()
    refs = [each["bom-ref"] for each in [*bom["components"], *bom["services"], bom["metadata"]["component"]]]
    assert len(refs) == len(set(refs))
    assert sorted(each["ref"] for each in bom["dependencies"]) == sorted(refs)
    reached = {below for each in bom["dependencies"] for below in each.get("dependsOn", ())}
    assert reached == set(refs) - {"pipeline"}


def test_the_packages_behind_the_engines_are_those_that_the_engines_are_installed_with() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = [each for name in ("engines", "legal", "citations", "finance", "ucp", "tax") for each in extras[name]]
    named = {re.split(r"[\[<>=]", each)[0] for each in needed} - {"qwed"}
    assert {name for names in BEHIND.values() for name in names} == named
    assert set(BEHIND) == set(ENGINES)


def test_a_guard_of_a_pack_brings_the_packages_of_its_pack() -> None:
    bom = made(qwed_engines_used=["qwed_tax.TaxVerifier", "qwed_legal.FairnessGuard", "qwed_finance.ISOGuard"])
    components = {each["name"] for each in bom["components"]}
    assert {"holidays", "reporters-db", "courts-db", "lxml"} <= components
    assert "ucp-sdk" not in components
    below = {each["ref"]: each.get("dependsOn", []) for each in bom["dependencies"]}
    assert below["engine:qwed_tax.TaxVerifier"] == []
    assert [each.partition("@")[0] for each in below["engine:qwed_finance.ISOGuard"]] == ["pkg:pypi/lxml"]


def test_a_reproducible_bill_is_the_same_for_the_same_components() -> None:
    first = made()
    assert made(qwed_engines_used=NAMES[::-1], mcp_tools_used=[*TOOLS, *TOOLS]) == first
    assert made(mcp_tools_used=TOOLS[:1])["serialNumber"] != first["serialNumber"]
    assert "timestamp" not in first["metadata"]
    once, again = made(reproducible=False), made(reproducible=False)
    assert once["serialNumber"] != again["serialNumber"]
    assert once["metadata"]["timestamp"].endswith("Z")


def test_the_bill_names_the_manifest_it_was_made_of() -> None:
    manifest = AIBOMGenerator().generate_manifest("gpt-4o", ["math"])
    told = {each["name"]: each["value"] for each in to_cyclonedx(manifest)["metadata"]["properties"]}
    assert told == {"qwed:compliance": "QWED_AI_SPM_v1", "qwed:manifest_hash": manifest["manifest_hash"]}


def test_another_version_of_the_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`2\.0` is not one of 1\.6, 1\.7"):
        made(spec_version="2.0")


@pytest.mark.parametrize("name", ["", ".", "..math", "a b", "no_such_package_here.X", "__main__", "/etc/passwd", "-"])
def test_a_name_that_is_no_package_has_none(name: str) -> None:
    assert package_of(name) is None

"""CycloneDX bill of materials, validated with the published schema."""

import importlib.metadata
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import qwed
from qwed.engines.registry import ENGINES
from qwed_mcp.observability.aibom import AIBOMGenerator
from qwed_mcp.observability.cyclonedx import SPEC_VERSIONS, to_cyclonedx
from qwed_mcp.observability.packages import ENGINE_DISTRIBUTIONS, package_of_component

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
    """Return the schema validator; created on demand, because the import is slow."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.from_version(version))


def schema_error(bom: dict[str, Any]) -> object:
    return validator(bom["specVersion"]).validate_str(json.dumps(bom))


def make_bom(**overrides: Any) -> dict[str, Any]:
    arguments = {"qwed_engines_used": NAMES, "mcp_tools_used": TOOLS, "reproducible": True, **overrides}
    return AIBOMGenerator().generate_cyclonedx("gpt-4o", **arguments)


def named(bom: dict[str, Any], name: str) -> dict[str, Any]:
    component: dict[str, Any] = next(item for item in [*bom["components"], *bom["services"]] if item["name"] == name)
    return component


@pytest.mark.parametrize("version", SPEC_VERSIONS)
def test_a_bill_is_what_the_published_schema_asks_for(version: str) -> None:
    for reproducible in (True, False):
        assert schema_error(make_bom(spec_version=version, reproducible=reproducible)) is None
    assert schema_error(make_bom(spec_version=version, qwed_engines_used=[], mcp_tools_used=[])) is None
    assert schema_error(make_bom(spec_version=version, qwed_engines_used=list(ENGINES))) is None


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
    assert schema_error(make_bom() | WRONG[case]) is not None


def test_the_model_is_a_model_and_a_tool_is_a_service() -> None:
    bom = make_bom()
    model = named(bom, "gpt-4o")
    assert (model["type"], model["modelCard"]["properties"][0]["value"]) == ("machine-learning-model", "generator")
    assert [service["name"] for service in bom["services"]] == TOOLS
    assert bom["services"][1]["group"] == "files"


def test_an_engine_has_the_version_that_is_installed_and_one_that_is_not_here_has_none() -> None:
    bom = make_bom()
    assert named(bom, "math")["version"] == named(bom, "qwed_new.engines.sql_engine")["version"] == qwed.__version__
    assert named(bom, "pytest.raises")["purl"] == f"pkg:pypi/pytest@{importlib.metadata.version('pytest')}"
    for name in ("\u65e5\u672c", "__main__"):
        assert not {"version", "purl", "licenses"} & set(named(bom, name))


def test_what_stands_behind_an_engine_is_listed_with_its_version_and_its_licence() -> None:
    bom = make_bom(qwed_engines_used=["math"])
    for name in ("sympy", "z3-solver"):
        component = named(bom, name)
        assert component["version"] == importlib.metadata.version(name)
        assert component["purl"] == f"pkg:pypi/{name}@{component['version']}"
        assert component["licenses"]


def test_every_reference_leads_to_something_and_everything_is_reached() -> None:
    bom = make_bom()
    refs = [item["bom-ref"] for item in [*bom["components"], *bom["services"], bom["metadata"]["component"]]]
    assert len(refs) == len(set(refs))
    assert sorted(item["ref"] for item in bom["dependencies"]) == sorted(refs)
    reached = {below for item in bom["dependencies"] for below in item.get("dependsOn", ())}
    assert reached == set(refs) - {"pipeline"}


def test_the_packages_behind_the_engines_are_those_that_the_engines_are_installed_with() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = [
        requirement
        for name in ("engines", "legal", "citations", "finance", "ucp", "tax")
        for requirement in extras[name]
    ]
    named = {re.split(r"[\[<>=]", requirement)[0] for requirement in needed} - {"qwed"}
    assert {name for names in ENGINE_DISTRIBUTIONS.values() for name in names} == named
    assert set(ENGINE_DISTRIBUTIONS) == set(ENGINES)


def test_a_guard_of_a_pack_brings_the_packages_of_its_pack() -> None:
    bom = make_bom(qwed_engines_used=["qwed_tax.TaxVerifier", "qwed_legal.FairnessGuard", "qwed_finance.ISOGuard"])
    components = {item["name"] for item in bom["components"]}
    assert {"holidays", "reporters-db", "courts-db", "lxml"} <= components
    assert "ucp-sdk" not in components
    below = {item["ref"]: item.get("dependsOn", []) for item in bom["dependencies"]}
    assert below["engine:qwed_tax.TaxVerifier"] == []
    assert [item.partition("@")[0] for item in below["engine:qwed_finance.ISOGuard"]] == ["pkg:pypi/lxml"]


def test_a_reproducible_bill_is_the_same_for_the_same_components() -> None:
    first = make_bom()
    assert make_bom(qwed_engines_used=NAMES[::-1], mcp_tools_used=[*TOOLS, *TOOLS]) == first
    assert make_bom(mcp_tools_used=TOOLS[:1])["serialNumber"] != first["serialNumber"]
    assert "timestamp" not in first["metadata"]
    once, again = make_bom(reproducible=False), make_bom(reproducible=False)
    assert once["serialNumber"] != again["serialNumber"]
    assert once["metadata"]["timestamp"].endswith("Z")


def test_the_bill_names_the_manifest_it_was_made_of() -> None:
    manifest = AIBOMGenerator().generate_manifest("gpt-4o", ["math"])
    properties = {item["name"]: item["value"] for item in to_cyclonedx(manifest)["metadata"]["properties"]}
    assert properties == {"qwed:compliance": "QWED_AI_SPM_v1", "qwed:manifest_hash": manifest["manifest_hash"]}


def test_another_version_of_the_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`2\.0` is not one of 1\.6, 1\.7"):
        make_bom(spec_version="2.0")


@pytest.mark.parametrize("name", ["", ".", "..math", "a b", "no_such_package_here.X", "__main__", "/etc/passwd", "-"])
def test_a_name_that_is_no_package_has_none(name: str) -> None:
    assert package_of_component(name) is None

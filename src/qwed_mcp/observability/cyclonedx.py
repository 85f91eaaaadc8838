"""Conversion of a manifest to a CycloneDX ML-BOM (ECMA-424)."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import qwed
from qwed.engines.registry import ENGINES
from qwed.model.canonical import sha256_of
from qwed_mcp.observability.packages import (
    ENGINE_DISTRIBUTIONS,
    OURS,
    Package,
    engine_named,
    installed_package,
    package_of_component,
)

SPEC_VERSIONS = ("1.6", "1.7")
_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
_PIPELINE = "pipeline"
JsonObject = dict[str, Any]


def to_cyclonedx(manifest: Mapping[str, Any], *, spec_version: str = "1.6", reproducible: bool = False) -> JsonObject:
    """Convert a manifest to a bill of materials.

    A reproducible one has no timestamp, and its serial number is derived from its content: the same components on the
    same installation give the same bytes.
    """
    if spec_version not in SPEC_VERSIONS:
        raise ValueError(f"spec_version: `{spec_version}` is not one of {', '.join(SPEC_VERSIONS)}")
    parts = manifest["components"]
    engines = [_engine(part) for part in parts["verification_engines"]]
    models = [_model(part) for part in parts["models"]]
    services = [_service(part) for part in parts["mcp_tools"]]
    needed = {part["name"]: _distributions(part["name"]) for part in parts["verification_engines"]}
    libraries = {part.purl: _library(part) for packages in needed.values() for part in packages}
    bom: JsonObject = {
        "$schema": f"http://cyclonedx.org/schema/bom-{spec_version}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": spec_version,
        "version": 1,
        "metadata": _metadata(manifest, reproducible),
        "components": _in_order([*models, *engines, *libraries.values()]),
        "services": _in_order(services),
        "dependencies": _dependencies([*models, *engines, *services], needed, libraries),
    }
    return bom | {"serialNumber": _serial_number(bom, reproducible)}


def _metadata(manifest: Mapping[str, Any], reproducible: bool) -> JsonObject:
    time = {} if reproducible else {"timestamp": manifest["timestamp"]}
    tool = {"type": "application", "name": OURS, "version": qwed.__version__}
    return time | {
        "lifecycles": [{"phase": "operations"}],
        "tools": {"components": [tool]},
        "component": {"type": "application", "bom-ref": _PIPELINE, "name": "ai-pipeline"},
        "properties": _properties(compliance=manifest["compliance"], manifest_hash=manifest["manifest_hash"]),
    }


def _model(part: Mapping[str, str]) -> JsonObject:
    """Describe a model, of which only its name and its role in the run are known."""
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{part['name']}",
        "name": part["name"],
        "modelCard": {"properties": _properties(type=part["type"])},
    }


def _engine(part: Mapping[str, str]) -> JsonObject:
    package = package_of_component(part["name"])
    engine = engine_named(part["name"])
    version = {} if engine is None else {"engine_version": str(ENGINES[engine].version)}
    return {
        "type": "library",
        "bom-ref": f"engine:{part['name']}",
        "name": part["name"],
        **({} if package is None else {"version": package.version, "purl": package.purl, **_licences(package)}),
        "properties": _properties(type=part["type"], **version),
    }


def _library(package: Package) -> JsonObject:
    identity = {"type": "library", "bom-ref": package.purl, "name": package.name, "version": package.version}
    return {**identity, "purl": package.purl, **_licences(package)}


def _licences(package: Package) -> JsonObject:
    if package.expression:
        return {"licenses": [{"expression": package.expression}]}
    return {"licenses": [{"license": {"name": package.licence}}]} if package.licence else {}


def _service(part: Mapping[str, str]) -> JsonObject:
    """Describe a tool as a service: it is called, not linked, and may run on any machine."""
    server, _, tool = part["name"].removeprefix("mcp__").partition("__")
    group = {"group": server} if part["name"].startswith("mcp__") and tool else {}
    return {
        "bom-ref": f"tool:{part['name']}",
        **group,
        "name": part["name"],
        "properties": _properties(type=part["type"]),
    }


def _distributions(engine: str) -> list[Package]:
    packages = map(installed_package, ENGINE_DISTRIBUTIONS.get(engine_named(engine) or "", ()))
    return [package for package in packages if package is not None]


def _dependencies(
    direct: Iterable[JsonObject], needed: Mapping[str, list[Package]], libraries: Mapping[str, JsonObject]
) -> list[JsonObject]:
    refs = sorted(item["bom-ref"] for item in direct)
    below = {f"engine:{name}": sorted(item.purl for item in packages) for name, packages in needed.items()}
    return [
        {"ref": _PIPELINE, "dependsOn": refs},
        *({"ref": ref, "dependsOn": below[ref]} if below.get(ref) else {"ref": ref} for ref in refs),
        *({"ref": purl} for purl in sorted(libraries)),
    ]


def _properties(**named: str) -> list[dict[str, str]]:
    return [{"name": f"qwed:{name}", "value": value} for name, value in named.items()]


def _in_order(nodes: Iterable[JsonObject]) -> list[JsonObject]:
    return sorted(nodes, key=lambda node: str(node["bom-ref"]))


def _serial_number(bom: JsonObject, reproducible: bool) -> str:
    # Derived from the whole bill: other library versions make another bill, though the manifest is the same.
    number = uuid.uuid5(_NAMESPACE, f"qwed:aibom:{sha256_of(bom)}") if reproducible else uuid.uuid4()
    return f"urn:uuid:{number}"

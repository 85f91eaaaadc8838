"""The same manifest as a CycloneDX ML-BOM (ECMA-424), for whoever keeps bills of materials of software."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import qwed
from qwed.engines.table import ENGINES
from qwed.words.canonical import sha256_of
from qwed_mcp.observability.installed import BEHIND, OURS, Package, engine_called, package, package_of

SPEC_VERSIONS = ("1.6", "1.7")
_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
_PIPELINE = "pipeline"
Node = dict[str, Any]


def to_cyclonedx(manifest: Mapping[str, Any], *, spec_version: str = "1.6", reproducible: bool = False) -> Node:
    """The bill of materials of a manifest.

    A reproducible one has no time, and a serial number made of what it holds: the same components on the same
    installation are the same bytes.
    """
    if spec_version not in SPEC_VERSIONS:
        raise ValueError(f"spec_version: `{spec_version}` is not one of {', '.join(SPEC_VERSIONS)}")
    parts = manifest["components"]
    engines = [_engine(each) for each in parts["verification_engines"]]
    models = [_model(each) for each in parts["models"]]
    services = [_service(each) for each in parts["mcp_tools"]]
    needed = {each["name"]: _distributions(each["name"]) for each in parts["verification_engines"]}
    libraries = {each.purl: _library(each) for packages in needed.values() for each in packages}
    bom: Node = {
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


def _metadata(manifest: Mapping[str, Any], reproducible: bool) -> Node:
    time = {} if reproducible else {"timestamp": manifest["timestamp"]}
    tool = {"type": "application", "name": OURS, "version": qwed.__version__}
    return time | {
        "lifecycles": [{"phase": "operations"}],
        "tools": {"components": [tool]},
        "component": {"type": "application", "bom-ref": _PIPELINE, "name": "ai-pipeline"},
        "properties": _properties(compliance=manifest["compliance"], manifest_hash=manifest["manifest_hash"]),
    }


def _model(part: Mapping[str, str]) -> Node:
    """Of a model only its name and its part in the run are known."""
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{part['name']}",
        "name": part["name"],
        "modelCard": {"properties": _properties(type=part["type"])},
    }


def _engine(part: Mapping[str, str]) -> Node:
    found = package_of(part["name"])
    called = engine_called(part["name"])
    version = {} if called is None else {"engine_version": str(ENGINES[called].version)}
    return {
        "type": "library",
        "bom-ref": f"engine:{part['name']}",
        "name": part["name"],
        **({} if found is None else {"version": found.version, "purl": found.purl, **_licences(found)}),
        "properties": _properties(type=part["type"], **version),
    }


def _library(found: Package) -> Node:
    named = {"type": "library", "bom-ref": found.purl, "name": found.name, "version": found.version}
    return {**named, "purl": found.purl, **_licences(found)}


def _licences(found: Package) -> Node:
    if found.expression:
        return {"licenses": [{"expression": found.expression}]}
    return {"licenses": [{"license": {"name": found.licence}}]} if found.licence else {}


def _service(part: Mapping[str, str]) -> Node:
    """A tool is called, not linked: it may run on any machine, so it is a service."""
    server, _, tool = part["name"].removeprefix("mcp__").partition("__")
    group = {"group": server} if part["name"].startswith("mcp__") and tool else {}
    return {
        "bom-ref": f"tool:{part['name']}",
        **group,
        "name": part["name"],
        "properties": _properties(type=part["type"]),
    }


def _distributions(engine: str) -> list[Package]:
    found = map(package, BEHIND.get(engine_called(engine) or "", ()))
    return [each for each in found if each is not None]


def _dependencies(
    direct: Iterable[Node], needed: Mapping[str, list[Package]], libraries: Mapping[str, Node]
) -> list[Node]:
    refs = sorted(each["bom-ref"] for each in direct)
    below = {f"engine:{name}": sorted(each.purl for each in packages) for name, packages in needed.items()}
    return [
        {"ref": _PIPELINE, "dependsOn": refs},
        *({"ref": ref, "dependsOn": below[ref]} if below.get(ref) else {"ref": ref} for ref in refs),
        *({"ref": purl} for purl in sorted(libraries)),
    ]


def _properties(**named: str) -> list[dict[str, str]]:
    return [{"name": f"qwed:{name}", "value": value} for name, value in named.items()]


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: str(node["bom-ref"]))


def _serial_number(bom: Node, reproducible: bool) -> str:
    # Made of all that it holds: other versions of the libraries are another bill, though the manifest is the same.
    number = uuid.uuid5(_NAMESPACE, f"qwed:aibom:{sha256_of(bom)}") if reproducible else uuid.uuid4()
    return f"urn:uuid:{number}"

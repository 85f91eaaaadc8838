"""Manifest of the model, engines and tools of one agent run (seed 004, AIBOMGenerator)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from qwed.guards.text_scan import is_readable
from qwed.model.canonical import sha256_of
from qwed.model.clock import Clock, rfc3339

COMPLIANCE = "QWED_AI_SPM_v1"
MAX_COMPONENTS = 1_000
MAX_NAME_LENGTH = 256
_MODEL, _ENGINE, _TOOL = "generator", "qwed_deterministic", "action_execution"


class Manifest(dict[str, Any]):
    """Manifest dict whose members are also attributes; `str` gives its JSON."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"`{name}`: this manifest has {', '.join(self)}")

    def __str__(self) -> str:
        return json.dumps(self, indent=2)


class AIBOMGenerator:
    """Generates the manifest of a run."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()

    def generate_manifest(
        self,
        llm_model: str,
        qwed_engines_used: Sequence[str] | None = None,
        mcp_tools_used: Sequence[str] | None = None,
    ) -> Manifest:
        """Return the manifest of these components, each listed once; raise TypeError or ValueError for a bad name."""
        components = {
            "models": [{"name": _checked_name("llm_model", llm_model), "type": _MODEL}],
            "verification_engines": _component_list("qwed_engines_used", qwed_engines_used, _ENGINE),
            "mcp_tools": _component_list("mcp_tools_used", mcp_tools_used, _TOOL),
        }
        manifest = Manifest(timestamp=rfc3339(self._clock.now()), components=components, compliance=COMPLIANCE)
        manifest["manifest_hash"] = hash_of(manifest)
        return manifest

    def generate_cyclonedx(
        self,
        llm_model: str,
        qwed_engines_used: Sequence[str] | None = None,
        mcp_tools_used: Sequence[str] | None = None,
        *,
        spec_version: str = "1.6",
        reproducible: bool = False,
    ) -> dict[str, Any]:
        """Return the same components as a CycloneDX ML-BOM in JSON."""
        from qwed_mcp.observability.cyclonedx import to_cyclonedx

        manifest = self.generate_manifest(llm_model, qwed_engines_used, mcp_tools_used)
        return to_cyclonedx(manifest, spec_version=spec_version, reproducible=reproducible)


def hash_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest's canonical JSON (RFC 8785), without its time and hash.

    The lists are sorted by name, so the order in which components were used does not matter.
    """
    components = {
        kind: sorted(entries, key=lambda component: (component["name"], component["type"]))
        for kind, entries in manifest["components"].items()
    }
    return sha256_of({"components": components, "compliance": manifest["compliance"]})


def _component_list(parameter: str, names: Sequence[str] | None, kind: str) -> list[dict[str, str]]:
    if names is None:
        return []
    if isinstance(names, str | bytes) or not isinstance(names, Sequence | set | frozenset):
        raise TypeError(f"{parameter} takes a list of names, not a `{type(names).__name__}`")
    if len(names) > MAX_COMPONENTS:
        raise ValueError(f"{parameter} names {len(names)} components, at most {MAX_COMPONENTS} fit")
    ordered = sorted(names) if isinstance(names, set | frozenset) else names
    return [{"name": name, "type": kind} for name in dict.fromkeys(_checked_name(parameter, name) for name in ordered)]


def _checked_name(parameter: str, name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{parameter}: a name is text, not a `{type(name).__name__}`")
    if not is_readable(name) or name != name.strip() or not name.isprintable():
        raise ValueError(f"{parameter}: `{ascii(name[:64])[1:-1]}` cannot be read as a name")
    if len(name) > MAX_NAME_LENGTH:
        raise ValueError(f"{parameter}: a name has at most {MAX_NAME_LENGTH} characters, this one has {len(name)}")
    return name

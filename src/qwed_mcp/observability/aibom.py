"""Seed 004, AIBOMGenerator: a manifest of the model, the engines and the tools that one run of an agent used."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from qwed.guards.text import readable
from qwed.words.canonical import sha256_of
from qwed.words.clock import Clock, rfc3339

COMPLIANCE = "QWED_AI_SPM_v1"
MOST_COMPONENTS = 1_000
LONGEST_NAME = 256
_MODEL, _ENGINE, _TOOL = "generator", "qwed_deterministic", "action_execution"


class Manifest(dict[str, Any]):
    """The manifest: a plain dict for `json.dumps`, its members as attributes too, and JSON where it is printed."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"`{name}`: this manifest has {', '.join(self)}")

    def __str__(self) -> str:
        return json.dumps(self, indent=2)


class AIBOMGenerator:
    """Writes down what a run was made of."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()

    def generate_manifest(
        self,
        llm_model: str,
        qwed_engines_used: Sequence[str] | None = None,
        mcp_tools_used: Sequence[str] | None = None,
    ) -> Manifest:
        """The manifest of these components, each named once; TypeError or ValueError says what to change."""
        components = {
            "models": [{"name": _name("llm_model", llm_model), "type": _MODEL}],
            "verification_engines": _listed("qwed_engines_used", qwed_engines_used, _ENGINE),
            "mcp_tools": _listed("mcp_tools_used", mcp_tools_used, _TOOL),
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
        """The same components as a CycloneDX ML-BOM in JSON."""
        from qwed_mcp.observability.cyclonedx import to_cyclonedx

        manifest = self.generate_manifest(llm_model, qwed_engines_used, mcp_tools_used)
        return to_cyclonedx(manifest, spec_version=spec_version, reproducible=reproducible)


def hash_of(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON (RFC 8785) of a manifest without its time and its hash, its lists by name.

    Who used the same components in another order used the same components.
    """
    components = {
        kind: sorted(listed, key=lambda each: (each["name"], each["type"]))
        for kind, listed in manifest["components"].items()
    }
    return sha256_of({"components": components, "compliance": manifest["compliance"]})


def _listed(parameter: str, names: Sequence[str] | None, kind: str) -> list[dict[str, str]]:
    if names is None:
        return []
    if isinstance(names, str | bytes) or not isinstance(names, Sequence | set | frozenset):
        raise TypeError(f"{parameter} takes a list of names, not a `{type(names).__name__}`")
    if len(names) > MOST_COMPONENTS:
        raise ValueError(f"{parameter} names {len(names)} components, at most {MOST_COMPONENTS} fit")
    ordered = sorted(names) if isinstance(names, set | frozenset) else names
    return [{"name": name, "type": kind} for name in dict.fromkeys(_name(parameter, name) for name in ordered)]


def _name(parameter: str, name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{parameter}: a name is text, not a `{type(name).__name__}`")
    if not readable(name) or name != name.strip() or not name.isprintable():
        raise ValueError(f"{parameter}: `{ascii(name[:64])[1:-1]}` cannot be read as a name")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"{parameter}: a name has at most {LONGEST_NAME} characters, this one has {len(name)}")
    return name

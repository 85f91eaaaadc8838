"""Settings of a verified CrewAI agent: `qwed_settings` and keywords."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed_sdk.tool_guard import Checkpoint, CheckpointOptions

_CHECKPOINT_SETTINGS = frozenset(CheckpointOptions.__annotations__)
_SWITCHES = frozenset({"require_attestation", "verify_all_tools"})
KNOWN_SETTINGS = _CHECKPOINT_SETTINGS | _SWITCHES


class GuardSettings(NamedTuple):
    """Checkpoint of an agent's tools; `attested` rejects permits without an attestation."""

    checkpoint: Checkpoint
    attested: bool


def parse_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> GuardSettings:
    """Return the settings that `qwed_settings` and the keywords describe; raise ValueError if they are invalid."""
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError("`qwed_settings` must be a mapping from the names of settings to their values")
    merged = _merge_settings(settings or {}, {name: value for name, value in keywords.items() if value is not None})
    if merged.get("verify_all_tools") is False:
        raise ValueError("`verify_all_tools` cannot be false: give tools that need no verification to another agent")
    options = dict(merged.get("options") or {})
    if "require_attestation" in merged:
        options["require_attestation"] = merged["require_attestation"]
    checkpoint_settings = {name: merged[name] for name in _CHECKPOINT_SETTINGS & merged.keys()}
    checkpoint = Checkpoint(**checkpoint_settings | ({"options": options} if options else {}))
    return GuardSettings(checkpoint, bool(options.get("require_attestation")))


def _merge_settings(settings: Mapping[str, Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(settings.keys() - KNOWN_SETTINGS)
    if unknown:
        raise ValueError(
            f"unknown setting `{unknown[0]}` in qwed_settings: known are {', '.join(sorted(KNOWN_SETTINGS))}"
        )
    twice = sorted(settings.keys() & keywords.keys())
    if twice:
        raise ValueError(f"`{twice[0]}` is given twice: in qwed_settings and as a keyword")
    merged = {**settings, **keywords}
    for name in sorted(_SWITCHES & merged.keys()):
        if not isinstance(merged[name], bool):
            raise ValueError(f"`{name}` must be True or False")
    return merged

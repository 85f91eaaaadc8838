"""Seed 004 and ruling 4.21: what an administrator sets for the MCP server, read once at its start."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qwed.settings import SettingsError

BACKGROUND_SECONDS = 120.0
MOST_BACKGROUND_SECONDS = 600.0
BUBBLEWRAP, NONE = "bubblewrap", "none"
_SANDBOXES = (BUBBLEWRAP, NONE)


@dataclass(frozen=True, kw_only=True, slots=True)
class McpSettings:
    """What is not said is the strict choice."""

    trusted_code_execution: bool = False
    background_seconds: float = BACKGROUND_SECONDS
    sandbox: str = BUBBLEWRAP
    skill_manifest: Path | None = None


def mcp_settings_from(environment: Mapping[str, str] = os.environ) -> McpSettings:
    """The settings in the environment; SettingsError where a word decides about safety and cannot be read."""
    manifest = environment.get("QWED_SKILL_MANIFEST")
    return McpSettings(
        trusted_code_execution=environment.get("QWED_MCP_TRUSTED_CODE_EXECUTION", "").strip().lower() == "true",
        background_seconds=_background_seconds(environment.get("QWED_MCP_BACKGROUND_TIMEOUT", "")),
        sandbox=_sandbox(environment.get("QWED_MCP_SANDBOX", BUBBLEWRAP)),
        skill_manifest=Path(manifest) if manifest else None,
    )


def _background_seconds(text: str) -> float:
    """Seed 004: above the ceiling is the ceiling, and what is no positive number is the default."""
    try:
        seconds = float(text)
    except ValueError:
        return BACKGROUND_SECONDS
    # NaN is not above nothing, so it falls back too.
    return min(seconds, MOST_BACKGROUND_SECONDS) if seconds > 0 else BACKGROUND_SECONDS


def _sandbox(text: str) -> str:
    if text not in _SANDBOXES:
        raise SettingsError(f"QWED_MCP_SANDBOX: `{text[:64]}` cannot be used: must be one of {', '.join(_SANDBOXES)}")
    return text

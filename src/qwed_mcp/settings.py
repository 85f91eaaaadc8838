"""Settings of the MCP server, read once at its start (seed 004, ruling 4.21)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qwed.settings import SettingsError

BACKGROUND_SECONDS = 120.0
MAX_BACKGROUND_SECONDS = 600.0
BUBBLEWRAP, NONE = "bubblewrap", "none"
_SANDBOXES = (BUBBLEWRAP, NONE)


@dataclass(frozen=True, kw_only=True, slots=True)
class McpSettings:
    """Settings of the MCP server; every default is the strict choice."""

    trusted_code_execution: bool = False
    background_seconds: float = BACKGROUND_SECONDS
    sandbox: str = BUBBLEWRAP
    skill_manifest: Path | None = None


def mcp_settings_from(environment: Mapping[str, str] = os.environ) -> McpSettings:
    """Read the settings from the environment; raise SettingsError for an unknown sandbox."""
    manifest = environment.get("QWED_SKILL_MANIFEST")
    return McpSettings(
        trusted_code_execution=environment.get("QWED_MCP_TRUSTED_CODE_EXECUTION", "").strip().lower() == "true",
        background_seconds=_parse_background_seconds(environment.get("QWED_MCP_BACKGROUND_TIMEOUT", "")),
        sandbox=_parse_sandbox(environment.get("QWED_MCP_SANDBOX", BUBBLEWRAP)),
        skill_manifest=Path(manifest) if manifest else None,
    )


def _parse_background_seconds(text: str) -> float:
    """Cap the value at the maximum, and use the default if it is not a positive number (seed 004)."""
    try:
        seconds = float(text)
    except ValueError:
        return BACKGROUND_SECONDS
    # NaN is not greater than zero, so it falls back too.
    return min(seconds, MAX_BACKGROUND_SECONDS) if seconds > 0 else BACKGROUND_SECONDS


def _parse_sandbox(text: str) -> str:
    if text not in _SANDBOXES:
        raise SettingsError(f"QWED_MCP_SANDBOX: `{text[:64]}` cannot be used: must be one of {', '.join(_SANDBOXES)}")
    return text

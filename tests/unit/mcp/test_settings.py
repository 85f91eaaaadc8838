"""Settings of the MCP server, and the meaning of invalid values (seed 004, ruling 4.21)."""

from pathlib import Path

import pytest

from qwed.settings import SettingsError
from qwed_mcp.settings import McpSettings, mcp_settings_from

SECONDS = {
    "": 120.0,
    "1": 1.0,
    "0.5": 0.5,
    " 90 ": 90.0,
    "600": 600.0,
    "601": 600.0,
    "1e9": 600.0,
    "inf": 600.0,
    "0": 120.0,
    "-5": 120.0,
    "nan": 120.0,
    "-inf": 120.0,
    "two minutes": 120.0,
    "120s": 120.0,
}


def test_what_is_not_said_is_the_strict_choice() -> None:
    assert mcp_settings_from({}) == McpSettings(
        trusted_code_execution=False, background_seconds=120.0, sandbox="bubblewrap", skill_manifest=None
    )


@pytest.mark.parametrize("text", SECONDS)
def test_a_background_job_has_its_seconds(text: str) -> None:
    assert mcp_settings_from({"QWED_MCP_BACKGROUND_TIMEOUT": text}).background_seconds == SECONDS[text]


@pytest.mark.parametrize("text", ["true", "TRUE", " true "])
def test_code_is_trusted_where_it_is_said(text: str) -> None:
    assert mcp_settings_from({"QWED_MCP_TRUSTED_CODE_EXECUTION": text}).trusted_code_execution


@pytest.mark.parametrize("text", ["", "1", "yes", "on", "tru", "true;", "false"])
def test_code_is_not_trusted_by_any_other_word(text: str) -> None:
    assert not mcp_settings_from({"QWED_MCP_TRUSTED_CODE_EXECUTION": text}).trusted_code_execution


def test_a_manifest_is_a_path_and_an_empty_one_is_none() -> None:
    assert mcp_settings_from({"QWED_SKILL_MANIFEST": "/a/b.json"}).skill_manifest == Path("/a/b.json")
    assert mcp_settings_from({"QWED_SKILL_MANIFEST": ""}).skill_manifest is None


@pytest.mark.parametrize("text", ["", "None", "docker", "bubblewrap "])
def test_a_sandbox_nobody_knows_is_refused_by_name(text: str) -> None:
    with pytest.raises(SettingsError, match="must be one of bubblewrap, none"):
        mcp_settings_from({"QWED_MCP_SANDBOX": text})

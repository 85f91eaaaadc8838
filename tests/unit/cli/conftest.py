"""Fixtures of the command-line tests."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Register
from tests.support.server import Server
from tests.unit.cli.hook_runner import HookRunner


@pytest.fixture
def coder(register: Register) -> dict[str, Any]:
    """An autonomous agent: low risk actions are approved, others need a person."""
    return register(type="autonomous")


@pytest.fixture
def hook(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    server: Server,
    coder: dict[str, Any],
) -> HookRunner:
    """`qwed hook` with an agent, a server and an empty home."""
    for name, value in {
        "HOME": str(tmp_path),
        "QWED_BASE_URL": server.base_url,
        "QWED_AGENT_ID": coder["agent_id"],
        "QWED_AGENT_TOKEN": coder["agent_token"],
    }.items():
        monkeypatch.setenv(name, value)
    return HookRunner(tmp_path, capfd)

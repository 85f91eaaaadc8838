"""Fixtures of the command's own tests."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Register
from tests.support.server import Server
from tests.unit.cli.hooking import Hook


@pytest.fixture
def coder(register: Register) -> dict[str, Any]:
    """An agent that may do low risk things alone, and more with a person."""
    return register(type="autonomous")


@pytest.fixture
def hook(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    server: Server,
    coder: dict[str, Any],
) -> Hook:
    """`qwed hook` with an agent, a server and an empty home."""
    for name, value in {
        "HOME": str(tmp_path),
        "QWED_BASE_URL": server.base_url,
        "QWED_AGENT_ID": coder["agent_id"],
        "QWED_AGENT_TOKEN": coder["agent_token"],
    }.items():
        monkeypatch.setenv(name, value)
    return Hook(tmp_path, capfd)

"""Published MCP servers, with a client for each: direct, and through the proxy."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from mcp_types import CallToolResult

from tests.support.mcp_proxies import PROXY, Session, session, text_of, until

ROOT = Path(__file__).parents[2]
SERVERS_DIRECTORY = ROOT / ".venv-servers"
SQLITE = SERVERS_DIRECTORY / "bin" / "mcp-server-sqlite"
FILES = SERVERS_DIRECTORY / "node_modules" / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js"
GIT = Path(sys.executable).with_name("mcp-server-git")
SHIM = Path(__file__).with_name("shim.py")


class ControlPlane(NamedTuple):
    """Control plane, and an approver with their own key."""

    environment: dict[str, str]
    approver: httpx.Client

    def waiting(self, tool: str) -> list[dict[str, Any]]:
        """Return the pending approvals for one tool, newest first."""
        approvals = self.approver.get("/approvals?state=pending&limit=1000").json()["approvals"]
        return [approval for approval in approvals if approval["action"]["tool"] == tool]

    def approve(self, approval_id: str) -> None:
        answer = self.approver.post(f"/approvals/{approval_id}/approve", json={"reason": "looked at it"})
        assert answer.status_code == 200, answer.text


@contextmanager
def proxied(
    home: Path, name: str, command: Sequence[str], *options: str, control_plane: ControlPlane | None = None
) -> Iterator[Session]:
    """Client of a server through the proxy; without a control plane the proxy uses a local Gate."""
    proxy_command = [*PROXY, "--name", name, *options, "--", *command]
    with session(proxy_command, home, control_plane.environment if control_plane else None) as connected:
        yield connected


def shim_command(directory: Path, command: Sequence[str]) -> list[str]:
    """Return the command of a server that changes its tools at its second start."""
    return [sys.executable, str(SHIM), str(directory / "starts"), str(directory / "change.json"), *command]


def answer_of(result: CallToolResult) -> tuple[bool, str, Any]:
    """Return the parts of an answer that the server determines."""
    return bool(result.is_error), text_of(result), result.structured_content


def wait_for_quarantine(session: Session, tool: str, **arguments: Any) -> tuple[str, str]:
    """Return the refusal text and the approval id of a call of a quarantined tool."""

    def refused() -> tuple[str, str] | None:
        result = session.call(tool, **arguments)
        assert result.is_error, result
        approval = (result.meta or {}).get("qwed/approval_id")
        return (text_of(result), str(approval)) if approval else None

    return until(refused)

"""Published MCP servers, not written here, and a client before each: without us, and through the proxy."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from mcp_types import CallToolResult

from tests.support.proxies import PROXY, Session, session, text_of, until

ROOT = Path(__file__).parents[2]
ELSEWHERE = ROOT / ".venv-servers"
SQLITE = ELSEWHERE / "bin" / "mcp-server-sqlite"
FILES = ELSEWHERE / "node_modules" / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js"
GIT = Path(sys.executable).with_name("mcp-server-git")
SHIM = Path(__file__).with_name("shim.py")


class People(NamedTuple):
    """A control plane, and a person with a key of their own who decides there."""

    environment: dict[str, str]
    approver: httpx.Client

    def waiting(self, tool: str) -> list[dict[str, Any]]:
        """What waits for them about one tool, the newest first."""
        found = self.approver.get("/approvals?state=pending&limit=1000").json()["approvals"]
        return [each for each in found if each["action"]["tool"] == tool]

    def approve(self, approval_id: str) -> None:
        answer = self.approver.post(f"/approvals/{approval_id}/approve", json={"reason": "looked at it"})
        assert answer.status_code == 200, answer.text


@contextmanager
def proxied(
    home: Path, name: str, command: Sequence[str], *options: str, people: People | None = None
) -> Iterator[Session]:
    """A client before the proxy before a server; without people the proxy decides with a Gate of its own."""
    whole = [*PROXY, "--name", name, *options, "--", *command]
    with session(whole, home, people.environment if people else None) as found:
        yield found


def shimmed(place: Path, command: Sequence[str]) -> list[str]:
    """The command of a server that says other things of its tools from its second start on."""
    return [sys.executable, str(SHIM), str(place / "starts"), str(place / "change.json"), *command]


def told(result: CallToolResult) -> tuple[bool, str, Any]:
    """What the server answered, without what is said beside it."""
    return bool(result.is_error), text_of(result), result.structured_content


def held(session: Session, tool: str, **arguments: Any) -> tuple[str, str]:
    """What a call of a held tool is told, and the approval that would release it."""

    def refused() -> tuple[str, str] | None:
        result = session.call(tool, **arguments)
        assert result.is_error, result
        approval = (result.meta or {}).get("qwed/approval_id")
        return (text_of(result), str(approval)) if approval else None

    return until(refused)

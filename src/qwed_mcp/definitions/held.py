"""What became of the tools a server listed."""

from typing import Any, NamedTuple

from mcp_types import Tool

from qwed.guards.visible import visible_name, visible_texts
from qwed_mcp.definitions.shown import excerpt


class Held(NamedTuple):
    """A tool that the client is not shown until an approver releases exactly this definition of it."""

    tool: Tool
    digest: str
    """The SHA-256 of the canonical definition: what is released is this and nothing else."""
    reasons: tuple[str, ...]
    server: str = ""
    previous: str = ""
    """The digest of the definition that is pinned under this name; empty where there is none."""
    releasable: bool = True
    """Whether an approver can be asked at all: not about a name that is listed twice, nor what is too large to show."""
    found: tuple[str, ...] = ()
    """The words it is held for, as they stand in it: for the approver, never for a model."""

    @property
    def what(self) -> str:
        """What is held of the tool."""
        return "definition"

    @property
    def name(self) -> str:
        """The tool's own name."""
        return self.tool.name

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of the action an approver decides about: plain, short, with nothing hidden and no secret."""
        return {
            "server": self.server,
            "tool": visible_name(self.tool.name),
            "digest": self.digest,
            "previous_digest": self.previous,
            "reasons": visible_texts(self.reasons),
            "found": visible_texts(self.found),
            "definition": excerpt(self.tool),
        }


class Screened(NamedTuple):
    """The tools of one listing, told apart."""

    passed: tuple[Tool, ...]
    held: tuple[Held, ...]

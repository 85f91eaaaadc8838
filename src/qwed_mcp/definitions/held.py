"""What became of the tools a server listed."""

from typing import Any, NamedTuple

from mcp_types import Tool


class Held(NamedTuple):
    """A tool that the client is not shown until an approver releases exactly this definition of it."""

    tool: Tool
    digest: str
    """The SHA-256 of the canonical definition: what is released is this and nothing else."""
    reasons: tuple[str, ...]

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of the action an approver decides about: plain, short, with nothing hidden and no secret."""
        raise NotImplementedError


class Screened(NamedTuple):
    """The tools of one listing, told apart."""

    passed: tuple[Tool, ...]
    held: tuple[Held, ...]

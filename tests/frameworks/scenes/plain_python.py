"""No framework: a loop around a scripted model, with a Checkpoint before each tool call."""

from typing import Any

from qwed_sdk import Checkpoint, QWEDAgentClient, Refusal
from tests.frameworks.scene import SceneOutcome

NAME = "Plain Python"
PACKAGE = None
HOOK = "`Checkpoint`"
TOOLS = frozenset({"search_web", "delete_database", "send_email"})


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> SceneOutcome:
    """Return the tools that ran, and the text that the model received."""
    ran: list[tuple[str, dict[str, Any]]] = []
    texts: list[str] = []
    checkpoint = Checkpoint(agent)
    for tool, arguments in calls:
        permit = checkpoint.before(tool, arguments)
        if isinstance(permit, Refusal):
            texts.append(str(permit))
            continue
        assert tool in TOOLS
        ran.append((tool, permit.arguments))
        checkpoint.after(permit, True, "done")
        texts.append("done")
    return SceneOutcome(ran, "\n".join([*texts, "done"]))

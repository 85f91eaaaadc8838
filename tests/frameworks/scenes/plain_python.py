"""No framework: a loop around a scripted model, with a Checkpoint where the tool is called."""

from typing import Any

from qwed_sdk import Checkpoint, QWEDAgentClient, Refusal
from tests.frameworks.scene import Outcome

NAME = "Plain Python"
PACKAGE = None
HOOK = "`Checkpoint`"
TOOLS = frozenset({"search_web", "delete_database", "send_email"})


def run(agent: QWEDAgentClient, calls: list[tuple[str, dict[str, Any]]]) -> Outcome:
    """What ran, and everything the model was told."""
    ran: list[tuple[str, dict[str, Any]]] = []
    said: list[str] = []
    checkpoint = Checkpoint(agent)
    for tool, arguments in calls:
        permit = checkpoint.before(tool, arguments)
        if isinstance(permit, Refusal):
            said.append(str(permit))
            continue
        assert tool in TOOLS
        ran.append((tool, permit.arguments))
        checkpoint.after(permit, True, "done")
        said.append("done")
    return Outcome(ran, "\n".join([*said, "done"]))

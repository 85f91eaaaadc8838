"""`qwed approvals list`, `show`, `approve` and `reject`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from qwed.cli.actions import about
from qwed.cli.agents.registering import show_fields
from qwed.cli.asking import Url, Where, server
from qwed.cli.options import AsJson, DataDir
from qwed.cli.printing import WRONG, print_json, say, table

STATES = "pending, approved, rejected, expired"
ApprovalId = Annotated[str, typer.Argument(metavar="APPROVAL", help="its id, apr_...")]
Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="why; it is kept in the log")]
Approver = Annotated[str | None, typer.Option(metavar="NAME", help="in whose name; the log names the key in any case")]
Agent = Annotated[str | None, typer.Option("--agent", metavar="AGENT", help="only what this agent asked")]


def add_to(approvals: typer.Typer) -> None:
    """Add the commands."""
    approvals.command("list", help="What waits, newest first.")(_list)
    approvals.command("show", help="One approval, with the action it is about.")(_show)
    approvals.command("approve", help="Permit what waits.")(_approve)
    approvals.command("reject", help="Refuse what waits.")(_reject)


def _list(
    state: Annotated[str, typer.Option(metavar="NAME", help=f"{STATES}, or all of them with `all`")] = "pending",
    agent_id: Agent = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="how many at most", min=1)] = 100,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server(Where(url, data_dir)) as client:
        found = client.list_approvals(None if state == "all" else state, agent_id, limit)
    if as_json:
        print_json([dict(approval) for approval in found])
        return 0
    heads = ("approval", "state", "agent", "risk", "what", "expires")
    table(heads, map(row, found))
    return 0


def row(approval: Mapping[str, Any]) -> list[Any]:
    """An approval in one line."""
    parts = ("approval_id", "state", "agent_id", "risk_level")
    return [*(approval.get(part) for part in parts), what(approval), approval.get("expires_at")]


def what(approval: Mapping[str, Any]) -> str:
    """What would happen: the repaired action where there is one, since that is what is permitted."""
    action = action_of(approval)
    return about(action) if action else elevation(approval)


def action_of(approval: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The action that is permitted; none where it is about trust, or erased."""
    found: Mapping[str, Any] | None = approval.get("corrected") or approval.get("action")
    return found


def elevation(approval: Mapping[str, Any]) -> str:
    """What is asked for that is no action."""
    level = (approval.get("request") or {}).get("to_level")
    return " ".join(str(part) for part in (approval.get("kind"), level) if part is not None)


def _show(approval_id: ApprovalId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server(Where(url, data_dir)) as client:
        found = dict(client.get_approval(approval_id))
    if as_json:
        print_json(found)
    else:
        show_fields(found)
    return 0


def _approve(
    approval_id: ApprovalId,
    reason: Reason,
    approver: Approver = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server(Where(url, data_dir)) as client:
        return settled(client.approve(approval_id, reason, approver), "approved", as_json=as_json)


def _reject(
    approval_id: ApprovalId,
    reason: Reason,
    approver: Approver = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server(Where(url, data_dir)) as client:
        return settled(client.reject(approval_id, reason, approver), "rejected", as_json=as_json)


def settled(approval: Mapping[str, Any], wanted: str, *, as_json: bool) -> int:
    """Show what became of it; 1 where that is not what the person said."""
    if as_json:
        print_json(dict(approval))
    else:
        decision = (approval.get("resolution") or {}).get("decision")
        told = f": the decision is {decision}" if decision else ""
        say(f"{approval['approval_id']} is {approval['state']}{told}", "bold")
    return 0 if approval.get("state") == wanted else WRONG

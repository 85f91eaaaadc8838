"""`qwed approvals list`, `show`, `approve` and `reject`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from qwed.cli.action_format import summarize_action
from qwed.cli.agents.register import show_fields
from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import EXIT_FAILED, echo, print_json, print_table

STATES = "pending, approved, rejected, expired"
ApprovalId = Annotated[str, typer.Argument(metavar="APPROVAL", help="approval id (apr_...)")]
Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="reason, recorded in the log")]
Approver = Annotated[
    str | None, typer.Option(metavar="NAME", help="name of the approver; the log also records the key")
]
Agent = Annotated[str | None, typer.Option("--agent", metavar="AGENT", help="only requests of this agent")]


def add_to(approvals: typer.Typer) -> None:
    """Add the commands."""
    approvals.command("list", help="List approvals, newest first.")(_list)
    approvals.command("show", help="Show an approval and its action.")(_show)
    approvals.command("approve", help="Approve a pending action.")(_approve)
    approvals.command("reject", help="Reject a pending action.")(_reject)


def _list(
    state: Annotated[str, typer.Option(metavar="NAME", help=f"state: {STATES} or all")] = "pending",
    agent_id: Agent = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="maximum number of approvals", min=1)] = 100,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        approvals = client.list_approvals(None if state == "all" else state, agent_id, limit)
    if as_json:
        print_json([dict(approval) for approval in approvals])
        return 0
    heads = ("approval", "state", "agent", "name", "risk", "action", "expires")
    print_table(heads, map(approval_row, approvals))
    return 0


def approval_row(approval: Mapping[str, Any]) -> list[Any]:
    """Return an approval as a table row."""
    parts = ("approval_id", "state", "agent_id", "agent_name", "risk_level")
    return [*(approval.get(part) for part in parts), approval_summary(approval), approval.get("expires_at")]


def approval_summary(approval: Mapping[str, Any]) -> str:
    """Return the action that would be permitted (the corrected one if there is one) on one line."""
    action = permitted_action(approval)
    return summarize_action(action) if action else trust_request_text(approval)


def permitted_action(approval: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the action that approval permits, or None for a trust request or an erased action."""
    action: Mapping[str, Any] | None = approval.get("corrected") or approval.get("action")
    return action


def trust_request_text(approval: Mapping[str, Any]) -> str:
    """Return the kind and the requested trust level of an approval without an action."""
    level = (approval.get("request") or {}).get("to_level")
    return " ".join(str(part) for part in (approval.get("kind"), level) if part is not None)


def _show(approval_id: ApprovalId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        approval = dict(client.get_approval(approval_id))
    if as_json:
        print_json(approval)
    else:
        show_fields(approval)
    return 0


def _approve(
    approval_id: ApprovalId,
    reason: Reason,
    approver: Approver = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        return show_resolution(client.approve(approval_id, reason, approver), "approved", as_json=as_json)


def _reject(
    approval_id: ApprovalId,
    reason: Reason,
    approver: Approver = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        return show_resolution(client.reject(approval_id, reason, approver), "rejected", as_json=as_json)


def show_resolution(approval: Mapping[str, Any], expected: str, *, as_json: bool) -> int:
    """Print the state of the approval; return 1 if it is not the expected one."""
    if as_json:
        print_json(dict(approval))
    else:
        decision = (approval.get("resolution") or {}).get("decision")
        suffix = f": the decision is {decision}" if decision else ""
        if approval.get("state") == "pending":
            suffix = f": approved once, and a key of each of {', '.join(approval['approvers'])} must approve it"
        echo(f"{approval['approval_id']} is {approval['state']}{suffix}", "bold")
    is_recorded = approval.get("state") == "pending" and bool(approval.get("approved_by"))
    return 0 if approval.get("state") == expected or is_recorded else EXIT_FAILED

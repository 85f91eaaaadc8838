"""`qwed a2a lists`, `block`, `unblock`, `block-pair`, `unblock-pair`, `trust` and `revoke`."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import echo, print_json, print_table

AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="agent id, or the name it sends under")]
SenderName = Annotated[str, typer.Argument(metavar="SENDER", help="sending agent")]
ReceiverName = Annotated[str, typer.Argument(metavar="RECEIVER", help="receiving agent")]

_AGENT_COMMANDS = (
    ("block", "Block an agent from sending and receiving.", "block_agent", "is blocked"),
    ("unblock", "Remove an agent from the blocklist.", "unblock_agent", "is no longer blocked"),
    (
        "trust",
        "Trust an agent: its authenticated messages are not verified.",
        "trust_agent",
        "is trusted",
    ),
    ("revoke", "Revoke trust in an agent: its messages are verified again.", "revoke_agent", "is no longer trusted"),
)
_PAIR_COMMANDS = (
    ("block-pair", "Block messages from a sender to a receiver.", "block_pair", "may no longer send to"),
    ("unblock-pair", "Allow messages from a sender to a receiver again.", "unblock_pair", "may send again to"),
)


def add_to(messages: typer.Typer) -> None:
    """Add the commands."""
    messages.command("lists", help="List blocked agents, blocked pairs and trusted agents.")(_lists)
    for name, summary, verb, message in _AGENT_COMMANDS:
        messages.command(name, help=summary)(_agent_command(verb, message))
    for name, summary, verb, message in _PAIR_COMMANDS:
        messages.command(name, help=summary)(_pair_command(verb, message))


def _lists(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        lists = dict(client.a2a_lists())
    if as_json:
        print_json(lists)
        return 0
    rows = [
        *(("blocked", agent, "") for agent in lists.get("blocks") or ()),
        *(("blocked pair", pair.get("sender"), pair.get("receiver")) for pair in lists.get("pairs") or ()),
        *(("trusted", agent, "") for agent in lists.get("trusted") or ()),
    ]
    if rows:
        print_table(("list", "agent", "to"), rows)
    else:
        echo("no agent is blocked or trusted")
    return 0


def _agent_command(verb: str, message: str) -> Callable[..., int]:
    def change(agent: AgentName, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
        with server_client(Target(url, data_dir)) as client:
            changed = getattr(client, verb)(agent)
        return _show_change(changed, f"{agent} {message}", as_json=as_json)

    return change


def _pair_command(verb: str, message: str) -> Callable[..., int]:
    def change(
        sender: SenderName, receiver: ReceiverName, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
    ) -> int:
        with server_client(Target(url, data_dir)) as client:
            changed = getattr(client, verb)(sender, receiver)
        return _show_change(changed, f"{sender} {message} {receiver}", as_json=as_json)

    return change


def _show_change(response: Mapping[str, Any], sentence: str, *, as_json: bool) -> int:
    if as_json:
        print_json(dict(response))
    else:
        echo(sentence)
    return 0

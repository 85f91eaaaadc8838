"""`qwed a2a lists`, `block`, `unblock`, `block-pair`, `unblock-pair`, `trust` and `revoke`: who may send to whom."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from qwed.cli.asking import Url, Where, server
from qwed.cli.options import AsJson, DataDir
from qwed.cli.printing import print_json, say, table

AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="its id, or the name it sends under")]
SenderName = Annotated[str, typer.Argument(metavar="SENDER", help="who sends")]
ReceiverName = Annotated[str, typer.Argument(metavar="RECEIVER", help="to whom")]

_OF_AGENTS = (
    ("block", "Block an agent: it sends and receives nothing.", "block_agent", "is blocked"),
    ("unblock", "Take an agent off the blocklist.", "unblock_agent", "is not blocked any more"),
    (
        "trust",
        "Trust an agent: what it provably sends is not verified.",
        "trust_agent",
        "is trusted",
    ),
    ("revoke", "Trust an agent no more: what it sends is verified again.", "revoke_agent", "is not trusted any more"),
)
_OF_PAIRS = (
    ("block-pair", "Block a pair: the one sends nothing to the other.", "block_pair", "sends nothing more to"),
    ("unblock-pair", "Let the one send to the other again.", "unblock_pair", "may send again to"),
)


def add_to(messages: typer.Typer) -> None:
    """Add the commands."""
    messages.command("lists", help="Who is blocked, which pairs are, and who is trusted.")(_lists)
    for name, summary, verb, said in _OF_AGENTS:
        messages.command(name, help=summary)(_of_agent(verb, said))
    for name, summary, verb, said in _OF_PAIRS:
        messages.command(name, help=summary)(_of_pair(verb, said))


def _lists(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server(Where(url, data_dir)) as client:
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
        table(("list", "agent", "to"), rows)
    else:
        say("nobody is blocked, and nobody is trusted")
    return 0


def _of_agent(verb: str, said: str) -> Callable[..., int]:
    def change(agent: AgentName, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
        with server(Where(url, data_dir)) as client:
            changed = getattr(client, verb)(agent)
        return _told(changed, f"{agent} {said}", as_json=as_json)

    return change


def _of_pair(verb: str, said: str) -> Callable[..., int]:
    def change(
        sender: SenderName, receiver: ReceiverName, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
    ) -> int:
        with server(Where(url, data_dir)) as client:
            changed = getattr(client, verb)(sender, receiver)
        return _told(changed, f"{sender} {said} {receiver}", as_json=as_json)

    return change


def _told(changed: Mapping[str, Any], sentence: str, *, as_json: bool) -> int:
    if as_json:
        print_json(dict(changed))
    else:
        say(sentence)
    return 0

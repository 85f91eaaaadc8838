"""`qwed api-keys`: the keys of an organisation, with which people and programs ask."""

from typing import Annotated

import typer

from qwed.cli.asking import Url, Where, server
from qwed.cli.options import AsJson, DataDir, group
from qwed.cli.printing import json_of, print_json, say, show_once, sorry, table

_HEADS = ("id", "name", "role", "prefix", "created_at", "revoked_at")


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    keys = group("Keys of the organisation: for owners, approvers, members and metrics.")
    keys.command("list", help="Every key, without its secret.")(_list)
    keys.command("create", help="Make a key; it is shown once.")(_create)
    keys.command("revoke", help="End a key: it opens nothing any more.")(_revoke)
    app.add_typer(keys, name="api-keys")


def _list(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server(Where(url, data_dir)) as client:
        keys = [dict(key) for key in client.list_keys()]
    if as_json:
        print_json(keys)
    else:
        table([head.replace("_at", "") for head in _HEADS], [[key.get(head) for head in _HEADS] for key in keys])
    return 0


def _create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="whose it is, or what for")],
    role: Annotated[str, typer.Option(metavar="ROLE", help="owner, approver, member or metrics")] = "member",
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server(Where(url, data_dir)) as client:
        made = client.create_key(name, role)
        # The secret alone on standard output, so that it can be piped to where it is kept.
        if not show_once(json_of(dict(made)) if as_json else made["key"]):
            client.revoke_key(made["id"])
            sorry(f"the key could not be shown, so it was revoked again ({made['id']}): see where the output goes")
    if not as_json:
        say(f"{made['id']}: a key for the role {made['role']}; it is not shown again", err=True)
    return 0


def _revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="its id, key_...")],
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server(Where(url, data_dir)) as client:
        key = client.revoke_key(key_id)
    if as_json:
        print_json(dict(key))
    else:
        say(f"{key['id']} ({key['name']}) opens nothing any more")
    return 0

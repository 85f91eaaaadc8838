"""`qwed api-keys` command group: the API keys of an organisation."""

from typing import Annotated

import typer

from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir, group
from qwed.cli.output import echo, fail, print_json, print_table, show_once, to_json

_HEADS = ("id", "name", "role", "prefix", "created_at", "revoked_at")
KeyId = Annotated[str, typer.Argument(metavar="KEY", help="key id (key_...)")]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME", help="group in whose name the key approves; give it once for each group"),
]


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    keys = group("Manage the organisation's API keys.")
    keys.command("list", help="List API keys, without their secrets.")(_list)
    keys.command("create", help="Create an API key and print it; it is shown once.")(_create)
    keys.command("groups", help="Set the groups in whose name a key approves.")(_change_groups)
    keys.command("revoke", help="Revoke an API key.")(_revoke)
    app.add_typer(keys, name="api-keys")


def _list(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        keys = [dict(key) for key in client.list_keys()]
    if as_json:
        print_json(keys)
    else:
        print_table([head.replace("_at", "") for head in _HEADS], [[key.get(head) for head in _HEADS] for key in keys])
    return 0


def _create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="owner or purpose of the key")],
    role: Annotated[str, typer.Option(metavar="ROLE", help="role: owner, approver, member or metrics")] = "member",
    groups: Groups = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        created = client.create_key(name, role, groups or ())
        # Only the secret goes to standard output, so that it can be piped to a secret store.
        if not show_once(to_json(dict(created)) if as_json else created["key"]):
            client.revoke_key(created["id"])
            fail(f"the key could not be printed, so it was revoked ({created['id']}): check the output and try again")
    if not as_json:
        echo(f"{created['id']}: API key with the role {created['role']}; it is not shown again", err=True)
    return 0


def _change_groups(
    key_id: KeyId, groups: Groups = None, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> int:
    with server_client(Target(url, data_dir)) as client:
        key = client.change_key_groups(key_id, groups or ())
    if as_json:
        print_json(dict(key))
    else:
        echo(f"{key['id']} ({key['name']}) approves for {', '.join(key['groups']) or 'no group'}")
    return 0


def _revoke(
    key_id: KeyId,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        key = client.revoke_key(key_id)
    if as_json:
        print_json(dict(key))
    else:
        echo(f"{key['id']} ({key['name']}) is revoked")
    return 0

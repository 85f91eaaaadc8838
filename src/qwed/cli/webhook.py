"""`qwed webhook` command group: the address that is told what happens."""

from typing import Annotated

import typer

from qwed.cli.agents.register import show_fields
from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir, group
from qwed.cli.output import echo, fail, print_json, show_once, to_json


def add_to(app: typer.Typer) -> None:
    """Add the group and its commands."""
    webhook = group("Set the address that is told about approvals and suspensions.")
    webhook.command("show", help="Show the webhook and its deliveries.")(_show)
    webhook.command("set", help="Set the webhook and print its secret; it is shown once.")(_set)
    webhook.command("delete", help="Delete the webhook.")(_delete)
    app.add_typer(webhook, name="webhook")


def _show(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        webhook = dict(client.get_webhook())
    if as_json:
        print_json(webhook)
    else:
        show_fields(webhook)
    return 0


def _set(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="https address that receives the events")],
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="event to send: pending, failed, degraded, suspended; repeatable"),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        webhook = client.set_webhook(address, event or None)
        # Only the secret goes to standard output, so that it can be piped to a secret store.
        if not show_once(to_json(dict(webhook)) if as_json else webhook["secret"]):
            fail("the webhook is set, but its secret could not be printed: check the output and set it again")
    if not as_json:
        echo(f"{webhook['url']} receives {', '.join(webhook['events'])}; the secret is not shown again", err=True)
    return 0


def _delete(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        response = client.delete_webhook()
    if as_json:
        print_json(dict(response))
    else:
        echo("the webhook is deleted")
    return 0

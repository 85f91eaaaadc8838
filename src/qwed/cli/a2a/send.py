"""`qwed a2a send`: verify one message without delivering it."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from qwed.cli.backend import Target, Url, require_text, server_client
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json

_SEND = """Verify one message without delivering it. The message is verified, logged and counted like any
other.

If QWED_AGENT_TOKEN is set, that token proves the sender and no key is needed; otherwise the API
key proves it (an owner's key may use any sender name).

Exit code: 0 the message would be forwarded, 1 it would not, 2 the command failed."""

_PAYLOAD_HINT = """write it as in --payload '{"text": "hello"}'"""


def add_to(messages: typer.Typer) -> None:
    """Add the command."""
    messages.command("send", short_help="Verify one message without delivering it.", help=_SEND)(_send)


def _send(
    sender: Annotated[str, typer.Argument(metavar="SENDER", help="sender: an agent id, or any other name")],
    receiver: Annotated[str, typer.Argument(metavar="RECEIVER", help="receiver")],
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON", help="payload, a JSON object; `-` reads standard input")
    ] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="FILE", help="file with the payload")] = None,
    payload_type: Annotated[
        str,
        typer.Option(
            metavar="TYPE", help="financial_transaction, logic_assertion, code_execution, data_query or general"
        ),
    ] = "general",
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="conversation of the message, for loop detection")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    message = {
        "sender_agent_id": sender,
        "receiver_agent_id": receiver,
        "payload_type": payload_type,
        "payload": _parse_payload(payload, file),
    }
    if conversation is not None:
        message["metadata"] = {"conversation_id": conversation}
    token = os.environ.get("QWED_AGENT_TOKEN", "").strip() or None
    with server_client(Target(url, data_dir), keyed=token is None) as client:
        verdict = client.intercept(message, token)
    if as_json:
        print_json(dict(verdict))
    else:
        _show(verdict)
    return 0 if verdict.forwarded else EXIT_FAILED


def _parse_payload(argument: str | None, file: str | None) -> dict[str, Any]:
    from qwed.model.strict_json import StrictJsonError, parse_strict_json

    text = require_text(argument, file, "--payload")
    try:
        # Parsed as strictly as by the server: a lenient parser would drop duplicate members and test another message.
        payload = parse_strict_json(text.encode(errors="surrogateescape"), "the payload")
    except StrictJsonError as error:
        fail(f"{error}; {_PAYLOAD_HINT}")
    if not isinstance(payload, dict):
        fail(f"the payload is not a JSON object; {_PAYLOAD_HINT}")
    return payload


def _show(verdict: Mapping[str, Any]) -> None:
    status = str(verdict.get("status"))
    style = "bold green" if status == "forwarded" else "bold red"
    echo(f"{status}  {verdict.get('engine_used')}  {verdict.get('reason') or ''}".rstrip(), style)
    code = (verdict.get("details") or {}).get("code")
    if code:
        echo(f"  code      {code}")
    echo(f"  trace     {verdict.get('audit_trace_id')}")
    echo(f"  activity  {verdict.get('activity_id')}")

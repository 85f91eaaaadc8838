"""`qwed a2a send`: one message, judged as if it were on its way."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from qwed.cli.asking import Url, Where, require_text, server
from qwed.cli.options import AsJson, DataDir
from qwed.cli.printing import WRONG, print_json, say, sorry

_SEND = """Have one message judged, to try out what becomes of it. It is judged, logged and counted like any
other; it is delivered to nobody.

The sender is proven with the token in QWED_AGENT_TOKEN where that is set, and no key is needed
then; otherwise with the key: an owner's proves any name.

Exit code: 0 it is forwarded, 1 it is not, 2 it could not be asked."""

_SUCH = """write it as in --payload '{"text": "hello"}'"""


def add_to(messages: typer.Typer) -> None:
    """Add the command."""
    messages.command("send", short_help="Have one message judged, to try it out.", help=_SEND)(_send)


def _send(
    sender: Annotated[str, typer.Argument(metavar="SENDER", help="who sends: an agent's id, or any other name")],
    receiver: Annotated[str, typer.Argument(metavar="RECEIVER", help="to whom")],
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON", help="what is sent, an object; `-` is standard input")
    ] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="FILE", help="a file with the payload")] = None,
    payload_type: Annotated[
        str,
        typer.Option(
            metavar="TYPE", help="financial_transaction, logic_assertion, code_execution, data_query or general"
        ),
    ] = "general",
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="the conversation it is the next step of; loops are found in one")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    message = {
        "sender_agent_id": sender,
        "receiver_agent_id": receiver,
        "payload_type": payload_type,
        "payload": _payload(payload, file),
    }
    if conversation is not None:
        message["metadata"] = {"conversation_id": conversation}
    token = os.environ.get("QWED_AGENT_TOKEN", "").strip() or None
    with server(Where(url, data_dir), keyed=token is None) as client:
        verdict = client.intercept(message, token)
    if as_json:
        print_json(dict(verdict))
    else:
        _show(verdict)
    return 0 if verdict.forwarded else WRONG


def _payload(given: str | None, file: str | None) -> dict[str, Any]:
    from qwed.words.strict import NotStrict, read_json

    text = require_text(given, file, "--payload")
    try:
        # As strictly as the server reads it: what is tried out here must not pass because one of two members was lost.
        payload = read_json(text.encode(errors="surrogateescape"), "the payload")
    except NotStrict as error:
        sorry(f"{error}; {_SUCH}")
    if not isinstance(payload, dict):
        sorry(f"the payload is no object; {_SUCH}")
    return payload


def _show(verdict: Mapping[str, Any]) -> None:
    status = str(verdict.get("status"))
    style = "bold green" if status == "forwarded" else "bold red"
    say(f"{status}  {verdict.get('engine_used')}  {verdict.get('reason') or ''}".rstrip(), style)
    code = (verdict.get("details") or {}).get("code")
    if code:
        say(f"  code      {code}")
    say(f"  trace     {verdict.get('audit_trace_id')}")
    say(f"  activity  {verdict.get('activity_id')}")

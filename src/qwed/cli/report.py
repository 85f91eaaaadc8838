"""`qwed report`: what an auditor is handed about an agent, as a file."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from qwed.cli.agents.activity import From, To
from qwed.cli.agents.registering import AgentId
from qwed.cli.asking import STDIN, Url, Where, server, working
from qwed.cli.files import whole_file
from qwed.cli.options import DataDir
from qwed.cli.printing import print_json, say, shown, sorry

_PATIENCE = 600.0
"""Seconds; a report of a year is made while it is sent."""
_HELP = """An agent's compliance report. Of one period, the last thirty days where none is named.

It goes to --output FILE, or to standard output where that is no terminal or the format is text."""


class Format(StrEnum):
    """How the report is written."""

    PDF = "pdf"
    JSON = "json"
    CSV = "csv"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", help=_HELP)(_report)


def _report(
    agent_id: AgentId,
    written: Annotated[
        Format, typer.Option("--format", metavar="NAME", help="pdf (the default), json or csv")
    ] = Format.PDF,
    since: From = None,
    until: To = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="where it goes, or `-` for standard output")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="tell as JSON what was written to --output")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    file = None if output in (None, STDIN) else Path(str(output))
    if file is None and as_json:
        sorry("--json tells what was written to a file: name it with --output, or say --format json")
    if file is None and written is Format.PDF and sys.stdout.isatty():
        sorry("a PDF is nothing for a terminal: name a file with --output FILE")
    with server(Where(url, data_dir), timeout=_PATIENCE) as client, working(f"the report of {shown(agent_id)} is made"):
        content = client.compliance_report(agent_id, written.value, since, until)
    if file is None:
        _print(content)
        return 0
    _write(file, content)
    if as_json:
        print_json({"agent_id": agent_id, "format": written.value, "output": str(file), "bytes": len(content)})
    else:
        say(f"{file}: {len(content)} bytes")
    return 0


def _print(content: bytes) -> None:
    if sys.stdout.isatty():
        for line in content.decode(errors="replace").splitlines():
            say(line)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _write(file: Path, content: bytes) -> None:
    try:
        with whole_file(file, private=True) as out:
            out.write(content)
    except (OSError, ValueError) as error:
        sorry(f"`{file}` cannot be written: {getattr(error, 'strerror', None) or 'it is no name of a file'}")

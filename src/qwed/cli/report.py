"""`qwed report`: write the compliance report of an agent."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from qwed.cli.agents.activity import From, To
from qwed.cli.agents.register import AgentId
from qwed.cli.backend import STDIN, Target, Url, server_client, spinner
from qwed.cli.options import DataDir
from qwed.cli.output import echo, fail, print_json, sanitize
from qwed.model.private_files import atomic_file

_TIMEOUT_SECONDS = 600.0
"""Client timeout; the server builds a report of a year while sending it."""
_HELP = """Write an agent's compliance report. The period is the last thirty days by default.

The report goes to --output FILE or to standard output; a PDF is not written to a terminal."""


class OutputFormat(StrEnum):
    """File formats of a report."""

    PDF = "pdf"
    JSON = "json"
    CSV = "csv"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", help=_HELP)(_report)


def _report(
    agent_id: AgentId,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", metavar="NAME", help="format: pdf (the default), json or csv")
    ] = OutputFormat.PDF,
    since: From = None,
    until: To = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="output file, or `-` for standard output")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print a JSON summary of what was written to --output")
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    file = None if output in (None, STDIN) else Path(str(output))
    if file is None and as_json:
        fail("--json needs --output FILE; for a JSON report use --format json")
    if file is None and output_format is OutputFormat.PDF and sys.stdout.isatty():
        fail("a PDF cannot be written to a terminal: give --output FILE")
    with (
        server_client(Target(url, data_dir), timeout=_TIMEOUT_SECONDS) as client,
        spinner(f"creating the report of {sanitize(agent_id)}"),
    ):
        content = client.compliance_report(agent_id, output_format.value, since, until)
    if file is None:
        _print(content)
        return 0
    _write(file, content)
    if as_json:
        print_json({"agent_id": agent_id, "format": output_format.value, "output": str(file), "bytes": len(content)})
    else:
        echo(f"{file}: {len(content)} bytes")
    return 0


def _print(content: bytes) -> None:
    if sys.stdout.isatty():
        for line in content.decode(errors="replace").splitlines():
            echo(line)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _write(file: Path, content: bytes) -> None:
    try:
        with atomic_file(file, private=True) as out:
            out.write(content)
    except (OSError, ValueError) as error:
        fail(f"`{file}` cannot be written: {getattr(error, 'strerror', None) or 'not a valid file name'}")

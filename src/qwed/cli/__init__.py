"""The `qwed` command."""

import argparse
from collections.abc import Sequence

import qwed
from qwed.cli import attestation, audit, keys, serve
from qwed.cli.telling import quietly


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 when it did what it was asked, 2 when it could not."""
    parser = argparse.ArgumentParser(
        prog="qwed", description="Decides, before an AI agent acts, whether the action may happen."
    )
    parser.add_argument("--version", action="version", version=f"qwed {qwed.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    serve.add_to(commands)
    keys.add_to(commands)
    audit.add_to(commands)
    attestation.add_to(commands)
    given = parser.parse_args(arguments)
    return quietly(lambda: given.run(given))

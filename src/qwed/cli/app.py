"""Root `qwed` command: its subcommands, shell completion and usage errors."""

import functools
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.main import get_command

import qwed
from qwed.cli import (
    a2a,
    agents,
    api_keys,
    approvals,
    attestation,
    audit,
    batch,
    cache,
    copy_command,
    demo,
    doctor,
    hook,
    migrate_command,
    policy,
    report,
    serve,
    signing_keys,
    verify,
)
from qwed.cli.options import group
from qwed.cli.output import echo, fail
from qwed.cli.usage_errors import usage_message

PROGRAM = "qwed"
COMPLETE_VARIABLE = "_QWED_COMPLETE"
_MODULES = (
    demo,
    serve,
    verify,
    batch,
    hook,
    agents,
    a2a,
    approvals,
    policy,
    report,
    audit,
    attestation,
    api_keys,
    signing_keys,
    cache,
    migrate_command,
    copy_command,
    doctor,
)
"""Modules that add commands, in the order of `--help`."""
_COMPLETION_OPTIONS = ("--install-completion", "--show-completion")


class Shell(StrEnum):
    """Shells with command completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def build() -> typer.Typer:
    """Return the root command with all subcommands."""
    app = group("Verify the actions of AI agents before they happen, and prove every decision.")
    app.callback()(_root_options)
    for module in _MODULES:
        module.add_to(app)
    return app


@functools.cache
def _root_command() -> Any:
    return get_command(build())


def iter_commands() -> Iterator[tuple[str, Any]]:
    """Yield the path and command object of the program itself and of every runnable command."""
    root = _root_command()
    queue = [(PROGRAM, root)]
    while queue:
        path, command = queue.pop(0)
        subcommands = getattr(command, "commands", {})
        if not subcommands or command is root:
            yield path, command
        queue[:0] = [(f"{path} {name}", subcommand) for name, subcommand in subcommands.items()]


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    command = _root_command()
    if os.environ.get(COMPLETE_VARIABLE):
        from typer.completion import completion_init  # type: ignore[attr-defined]  # no public API

        completion_init()
        command.main([], prog_name=PROGRAM)
    try:
        with command.make_context(PROGRAM, _with_shell(list(arguments))) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as error:
        fail(usage_message(error, _command_path(arguments)))
    return code if isinstance(code, int) else 0


def _command_path(arguments: Sequence[str]) -> str:
    """Return the path of the command that these arguments name."""
    command, path = _root_command(), PROGRAM
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path = f"{path} {word}"
    return path


def _with_shell(arguments: list[str]) -> list[str]:
    """Return the arguments, with the login shell added if a completion option names none."""
    if arguments and arguments[-1] in _COMPLETION_OPTIONS:
        return [*arguments, os.path.basename(os.environ.get("SHELL", ""))]
    return arguments


def _print_version(requested: bool) -> None:
    if requested:
        echo(f"{PROGRAM} {qwed.__version__}")
        raise typer.Exit


def _show_completion(shell: Shell | None) -> None:
    if shell is not None:
        from typer.completion import get_completion_script  # type: ignore[attr-defined]  # no public API

        typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE, shell=shell.value))
        raise typer.Exit


def _install_completion(shell: Shell | None) -> None:
    if shell is not None:
        from typer.completion import install  # type: ignore[attr-defined]  # no public API

        name, path = install(shell=shell.value, prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE)
        echo(f"{name} completes `{PROGRAM}` from its next start: {path}")
        raise typer.Exit


def _root_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
    install_completion: Annotated[
        Shell | None,
        typer.Option(
            metavar="SHELL",
            callback=_install_completion,
            is_eager=True,
            help="install completion for bash, zsh or fish",
        ),
    ] = None,
    show_completion: Annotated[
        Shell | None,
        typer.Option(metavar="SHELL", callback=_show_completion, is_eager=True, help="print the completion script"),
    ] = None,
) -> None:
    """Declare the options of the root command; their callbacks run them."""

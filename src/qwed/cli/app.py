"""The `qwed` command as typer knows it: all its commands, and what is said when it is called wrongly."""

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
    copying,
    demo,
    doctor,
    hook,
    keys,
    migrating,
    report,
    serve,
    verifying,
)
from qwed.cli.options import group
from qwed.cli.printing import say, sorry
from qwed.cli.usage import explained

PROGRAM = "qwed"
COMPLETE = "_QWED_COMPLETE"
_MODULES = (
    demo,
    serve,
    verifying,
    batch,
    hook,
    agents,
    a2a,
    approvals,
    report,
    audit,
    attestation,
    api_keys,
    keys,
    cache,
    migrating,
    copying,
    doctor,
)
"""In the order of `--help`."""
_COMPLETION_OPTIONS = ("--install-completion", "--show-completion")


class Shell(StrEnum):
    """The shells that can complete a command."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def build() -> typer.Typer:
    """The command with everything it can do."""
    app = group("Decides, before an AI agent acts, whether the action may happen, and proves what was decided.")
    app.callback()(_top)
    for module in _MODULES:
        module.add_to(app)
    return app


@functools.cache
def _command() -> Any:
    return get_command(build())


def every() -> Iterator[tuple[str, Any]]:
    """Every command that can be run, by what is typed for it; the first is the program itself."""
    whole = _command()
    waiting = [(PROGRAM, whole)]
    while waiting:
        path, command = waiting.pop(0)
        within = getattr(command, "commands", {})
        if not within or command is whole:
            yield path, command
        waiting[:0] = [(f"{path} {name}", each) for name, each in within.items()]


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    command = _command()
    if os.environ.get(COMPLETE):
        from typer.completion import completion_init  # type: ignore[attr-defined]  # it has no other door

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
        sorry(explained(error, _called(arguments)))
    return code if isinstance(code, int) else 0


def _called(arguments: Sequence[str]) -> str:
    """The command that these arguments are for, as far as they name one."""
    command, path = _command(), PROGRAM
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path = f"{path} {word}"
    return path


def _with_shell(arguments: list[str]) -> list[str]:
    """The arguments; the shell that somebody logs in to, where none is named for completion."""
    if arguments and arguments[-1] in _COMPLETION_OPTIONS:
        return [*arguments, os.path.basename(os.environ.get("SHELL", ""))]
    return arguments


def _tell_version(asked: bool) -> None:
    if asked:
        say(f"{PROGRAM} {qwed.__version__}")
        raise typer.Exit


def _show_completion(shell: Shell | None) -> None:
    if shell is not None:
        from typer.completion import get_completion_script  # type: ignore[attr-defined]  # it has no other door

        typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE, shell=shell.value))
        raise typer.Exit


def _install_completion(shell: Shell | None) -> None:
    if shell is not None:
        from typer.completion import install  # type: ignore[attr-defined]  # it has no other door

        name, path = install(shell=shell.value, prog_name=PROGRAM, complete_var=COMPLETE)
        say(f"{name} completes `{PROGRAM}` from its next start on: {path}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version")
    ] = False,
    install_completion: Annotated[
        Shell | None,
        typer.Option(
            metavar="SHELL", callback=_install_completion, is_eager=True, help="let bash, zsh or fish complete commands"
        ),
    ] = None,
    show_completion: Annotated[
        Shell | None,
        typer.Option(metavar="SHELL", callback=_show_completion, is_eager=True, help="print what would be installed"),
    ] = None,
) -> None:
    """The options of the command itself are all answered at once."""

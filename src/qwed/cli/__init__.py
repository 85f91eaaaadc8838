"""The `qwed` command."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 1 a negative result, 2 an error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["hook"] and "-h" not in words:
        return _hook(words[1:])
    _keep_standard_streams()
    # Imported here because `qwed hook` runs before every step of an agent and must start quickly.
    from qwed.cli.output import run_command

    return run_command(lambda: _app(words))


def _keep_standard_streams() -> None:
    """Open /dev/null for every standard stream that is closed, so that no later file or socket takes its descriptor.

    The replacement is opened in the wrong mode on purpose: reading or writing it still fails.
    """
    for number, wrong_mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, wrong_mode)


def _app(words: list[str]) -> int:
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError:
        # typer is an extra: the client works without it.
        from qwed.cli.output import fail

        fail("the command line is not installed: pip install 'qwed[cli]', or 'qwed[server]' to run a server")
    from qwed.cli import app

    return app.run(words)


def _hook(words: list[str]) -> int:
    """Run `qwed hook` without the wrapper of the other commands: agents treat every exit code but 2 as permission."""
    try:
        _keep_standard_streams()
        from qwed.cli import hook
    except BaseException:  # noqa: BLE001 - any exit code but 2 would permit the tool call
        with suppress(OSError):
            os.write(2, b"qwed: the hook cannot be loaded, so the tool call is denied: reinstall qwed\n")
        return 2
    return hook.main(words)

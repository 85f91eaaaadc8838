"""The `qwed` command."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 done or verified, 1 refused or something is wrong, 2 it could not be done."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["hook"] and "-h" not in given:
        return _hook(given[1:])
    _keep_standard_streams()
    # Imported here because `qwed hook` runs before every step of an agent, and must not wait for the others.
    from qwed.cli.printing import quietly

    return quietly(lambda: _app(given))


def _keep_standard_streams() -> None:
    """See to it that no file and no connection of ours takes the place of a stream that is closed.

    What stands there instead still fails whoever reads or writes it: nobody is to take it for heard.
    """
    for number, unfit in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, unfit)


def _app(given: list[str]) -> int:
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError:
        # The client alone needs neither typer nor what typer needs.
        from qwed.cli.printing import sorry

        sorry("the command needs more than the client: pip install 'qwed[cli]', or 'qwed[server]' to run a server")
    from qwed.cli import app

    return app.run(given)


def _hook(given: list[str]) -> int:
    """The hook alone says how it ends: to an agent every exit code but 2 is a yes."""
    try:
        _keep_standard_streams()
        from qwed.cli import hook
    except BaseException:  # noqa: BLE001 - as in the hook itself: whatever else it ends with would be a yes
        with suppress(OSError):
            os.write(2, b"qwed: the hook cannot be loaded, so the answer is no: see whether qwed is whole\n")
        return 2
    return hook.main(given)

"""`qwed keys`: list and rotate the signing keys of a stopped node."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.data_directory import exit_on_open_error
from qwed.cli.options import AsJson, DataDir, group
from qwed.cli.output import echo, fail, print_json

if TYPE_CHECKING:
    from qwed.ledger.keyring import Keyring
    from qwed.settings import Settings

_TIMEOUT_SECONDS = 60.0
_KeyChange = Callable[..., Coroutine[Any, None, Any]]


def add_to(app: typer.Typer) -> None:
    """Add the command and its verbs."""
    verbs = group("List or rotate the signing keys.")
    verbs.command("list", help="List the issuer and its signing keys.")(_list)
    verbs.command(
        "rotate",
        short_help="Rotate the signing key of a stopped server.",
        help="Rotate the signing key of a stopped server.",
    )(_rotate)
    app.add_typer(verbs, name="keys", short_help="List or rotate the signing keys.")


def _list(data_dir: DataDir = None, as_json: AsJson = False) -> int:
    from qwed.ledger.keyring import read_keyring

    with _exit_on_error():
        settings = _settings(data_dir)
        _show(read_keyring(settings.directory, settings.signing_key_file), as_json=as_json)
    return 0


def _rotate(
    data_dir: DataDir = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="reason, recorded in the log")
    ] = "rotated on the command line",
    as_json: AsJson = False,
) -> int:
    with _exit_on_error():
        settings = _settings(data_dir)
        with exit_on_open_error(settings.data_dir):
            keyring = _rotate_key(settings, reason)
        _show(keyring, as_json=as_json)
    return 0


@contextmanager
def _exit_on_error() -> Iterator[None]:
    """Exit with one line on an error."""
    try:
        yield
    except FileNotFoundError as error:
        fail(f"{error.filename} does not exist: a server creates its keys at its first start")
    except (OSError, ValueError) as error:
        fail(error)


def _settings(data_dir: Path | None) -> "Settings":
    """Return the server's settings; raise FileNotFoundError if there are no keys, so that a typo creates none."""
    from qwed.ledger.keyring import JWKS_FILE, KEY_FILE
    from qwed.settings import settings_from

    settings = settings_from(data_dir=data_dir)
    directory = settings.directory
    if not any((directory / name).exists() for name in (KEY_FILE, JWKS_FILE)):
        raise FileNotFoundError(2, "no keys", str(directory / KEY_FILE))
    return settings


def _rotate_key(settings: "Settings", reason: str) -> "Keyring":
    from qwed.cli.doctor.directory import is_locked
    from qwed.kernel.answer import Problem
    from qwed.kernel.operations.agent_operations import ReasonRequest
    from qwed.kernel.request_schema import parse
    from qwed.ledger.keyring import KEY_FILE, replace_lost_key
    from qwed.store.data_directory import LOCK_NAME

    directory = settings.directory
    if is_locked(directory / LOCK_NAME):
        fail(f"a server runs on {directory}: use POST /signing-key/rotate, or stop the server first")
    request = parse({"reason": reason}, ReasonRequest)
    if isinstance(request, Problem):
        fail(request.message)
    lost = settings.signing_key_file is None and not (directory / KEY_FILE).exists()
    if lost:
        replace_lost_key(directory)
    return _record_rotation(settings, request.reason, rotates=not lost)


def _record_rotation(settings: "Settings", reason: str, *, rotates: bool) -> "Keyring":
    """Rotate the key, or only record in the log that it was replaced."""
    from qwed.futures import run_in_thread
    from qwed.kernel.answer import Problem
    from qwed.kernel.audit.signing_keys import announce_key, rotate_key
    from qwed.kernel.audit_change import GATE, Actor
    from qwed.kernel.bootstrap import close_services, open_services

    opened = open_services(settings)
    services, actor = opened.services, Actor(GATE, opened.organisation_id, "owner")
    keyring = services.signer.keyring
    try:
        change: _KeyChange = rotate_key if rotates else partial(announce_key, keyring.current)
        result = run_in_thread(change(reason, actor, services), _TIMEOUT_SECONDS)
    finally:
        close_services(services)
    if isinstance(result, Problem):
        fail(result.message)
    return keyring


def _show(keyring: "Keyring", *, as_json: bool) -> None:
    keys = [(jwk["kid"], "retired" if number else "signs") for number, jwk in enumerate(keyring.public_jwks())]
    if as_json:
        print_json({"issuer": keyring.issuer, "keys": [{"kid": kid, "state": state} for kid, state in keys]})
        return
    echo(keyring.issuer)
    for kid, state in keys:
        echo(f"  {kid}  {state}")

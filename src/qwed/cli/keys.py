"""`qwed keys`: the keys of a node at rest, which it signs with."""

import fcntl
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.opening import opening
from qwed.cli.options import AsJson, DataDir, group
from qwed.cli.printing import print_json, say, sorry

if TYPE_CHECKING:
    from qwed.ledger.keyring import Keyring
    from qwed.settings import Settings

_PATIENCE = 60.0
_Walk = Callable[..., Coroutine[Any, None, Any]]


def add_to(app: typer.Typer) -> None:
    """Add the command and its verbs."""
    verbs = group("The signing keys.")
    verbs.command("list", help="List the signing keys: the issuer and every public key.")(_list)
    verbs.command(
        "rotate", short_help="Sign with another key from now on.", help="Rotate the signing key of a stopped server."
    )(_rotate)
    app.add_typer(verbs, name="keys", short_help="List or rotate the signing keys.")


def _list(data_dir: DataDir = None, as_json: AsJson = False) -> int:
    from qwed.ledger.keyring import read_keyring

    with _told():
        settings = _settings(data_dir)
        _show(read_keyring(settings.directory, settings.signing_key_file), as_json=as_json)
    return 0


def _rotate(
    data_dir: DataDir = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="why, for the log")] = "rotated at the command line",
    as_json: AsJson = False,
) -> int:
    with _told():
        settings = _settings(data_dir)
        with opening(settings.data_dir):
            keyring = _rotated(settings, reason)
        _show(keyring, as_json=as_json)
    return 0


@contextmanager
def _told() -> Iterator[None]:
    """2 with one sentence when it cannot be done."""
    try:
        yield
    except FileNotFoundError as error:
        sorry(f"{error.filename} is not there: a server makes its keys when it first starts")
    except (OSError, ValueError) as error:
        sorry(error)


def _settings(data_dir: Path | None) -> "Settings":
    """What the server is set to; a slip of the pen in the path must not make a new house there."""
    from qwed.ledger.keyring import JWKS_FILE, KEY_FILE
    from qwed.settings import settings_from

    settings = settings_from(data_dir=data_dir)
    directory = settings.directory
    if not any((directory / name).exists() for name in (KEY_FILE, JWKS_FILE)):
        raise FileNotFoundError(2, "no keys", str(directory / KEY_FILE))
    return settings


def _rotated(settings: "Settings", reason: str) -> "Keyring":
    from qwed.kernel.answer import Problem
    from qwed.kernel.bodies import read_fields
    from qwed.ledger.keyring import KEY_FILE, replace_lost_key

    directory = settings.directory
    if _in_use(directory):
        sorry(f"a server runs on {directory}: ask it with POST /signing-key/rotate, or stop it first")
    said = read_fields({"reason": reason}, ("reason",))
    if isinstance(said, Problem):
        sorry(said.message)
    lost = settings.signing_key_file is None and not (directory / KEY_FILE).exists()
    if lost:
        replace_lost_key(directory)
    return _logged(settings, said["reason"], rotates=not lost)


def _logged(settings: "Settings", reason: str, *, rotates: bool) -> "Keyring":
    """Rotate, or only say that it was done."""
    from qwed.kernel.answer import Problem
    from qwed.kernel.change import GATE, Actor
    from qwed.kernel.proving.signing_keys import announce_key, rotate_key
    from qwed.kernel.wiring import close_services, open_services
    from qwed.waiting import in_thread

    opened = open_services(settings)
    services, actor = opened.services, Actor(GATE, opened.organisation_id, "owner")
    keyring = services.signer.keyring
    try:
        walk: _Walk = rotate_key if rotates else partial(announce_key, keyring.current)
        done = in_thread(walk(reason, actor, services), _PATIENCE)
    finally:
        close_services(services)
    if isinstance(done, Problem):
        sorry(done.message)
    return keyring


def _in_use(directory: Path) -> bool:
    from qwed.store.place import LOCK_NAME

    handle = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _show(keyring: "Keyring", *, as_json: bool) -> None:
    keys = [(jwk["kid"], "retired" if number else "signs") for number, jwk in enumerate(keyring.public_jwks())]
    if as_json:
        print_json({"issuer": keyring.issuer, "keys": [{"kid": kid, "state": state} for kid, state in keys]})
        return
    say(keyring.issuer)
    for kid, state in keys:
        say(f"  {kid}  {state}")

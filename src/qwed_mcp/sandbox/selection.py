"""Selection of the sandbox: the configured one if it works here, and never another in its place."""

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

from qwed_mcp.sandbox.bubblewrap import Bubblewrap
from qwed_mcp.sandbox.filesystem import VisibleFiles, exposed_data_directory, find_visible_files
from qwed_mcp.sandbox.job import JobLimits, Sandbox, SandboxError, SandboxProvider, SandboxUnavailable
from qwed_mcp.sandbox.mount_namespace import closed_ancestor
from qwed_mcp.sandbox.resource_usage import has_children_files
from qwed_mcp.sandbox.sandbox_command import BubblewrapTools
from qwed_mcp.sandbox.seccomp import seccomp_filter
from qwed_mcp.sandbox.unconfined import Unconfined
from qwed_mcp.settings import NONE, McpSettings

TOOL_DIRECTORIES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Directories that are searched for tools; PATH is not used, because any user can set it."""
MIN_VERSION = (0, 8, 0)
JOB_UID = 61_100
"""User that root switches to for jobs. Neither systemd nor Debian assigns this range, so no other process runs as this
user; `nobody` would be shared with other services."""

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
_CONFINED_OUTPUT = f"{0:016x} {0:016x} 1 2\n"


def sandbox_from(settings: McpSettings) -> SandboxProvider:
    """Return a provider of the configured sandbox; a working sandbox is remembered, a failed probe is repeated."""
    if settings.sandbox == NONE:
        unconfined = Unconfined()
        return lambda: unconfined
    return _ProbedSandbox()


class _ProbedSandbox:
    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Sandbox | SandboxUnavailable:
        with self._lock:
            if self._sandbox is not None:
                return self._sandbox
            sandbox = probe_bubblewrap()
            if not isinstance(sandbox, SandboxUnavailable):
                self._sandbox = sandbox
            return sandbox


def probe_bubblewrap() -> Sandbox | SandboxUnavailable:
    """Return bubblewrap after a probe job has run confined, or the reason it is unavailable."""
    files = find_visible_files()
    tools = _find_tools(files)
    if isinstance(tools, SandboxUnavailable):
        return tools
    try:
        sandbox = Bubblewrap(tools, files)
    except SandboxError as error:
        return SandboxUnavailable(f"{_closed_directory_reason(files)} ({error})")
    problem = _probe_error(sandbox)
    if problem is None:
        return sandbox
    sandbox.close()
    return _unavailable_with_advice(problem)


def _probe_error(sandbox: Sandbox) -> str | None:
    try:
        outcome = sandbox.start(_PROBE, JobLimits(seconds=20)).wait()
    except SandboxError as error:
        return str(error)
    output = (outcome.stderr or outcome.stdout or "the job printed nothing").strip()
    return None if outcome.stdout == _CONFINED_OUTPUT else output.rpartition("\n")[2][:200]


def _closed_directory_reason(files: VisibleFiles) -> str:
    closed = next(filter(None, map(closed_ancestor, files.paths)), None)
    return (
        f"the interpreter or its packages are in `{closed}`, which is closed to the ordinary user that jobs run as: "
        f"install them where every user can read, start the server as an ordinary user, {_OR_NONE}"
    )


def _unavailable_with_advice(complaint: str) -> SandboxUnavailable:
    for signs, remedy in _ADVICE:
        if any(sign in complaint for sign in signs):
            return SandboxUnavailable(f"{remedy}, {_OR_NONE} (`{complaint}`)")
    return SandboxUnavailable(f"bubblewrap does not work here: `{complaint}`; fix that, {_OR_NONE}")


def _find_tools(files: VisibleFiles) -> BubblewrapTools | SandboxUnavailable:
    program = seccomp_filter()
    if sys.platform != "linux" or program is None or not has_children_files():
        return SandboxUnavailable(
            f"there is no sandbox for this system (Linux on x86_64 or aarch64 has one): {_NOT_HERE}"
        )
    exposed = exposed_data_directory(files.paths)
    if exposed:
        return SandboxUnavailable(
            f"the data directory `{exposed[0]}` is in `{exposed[1]}`, which jobs see: move it elsewhere"
        )
    bwrap = find_tool("bwrap")
    if bwrap is None:
        return SandboxUnavailable(f"bubblewrap is not installed: {_INSTALL}")
    if bubblewrap_version(bwrap) < MIN_VERSION:
        return SandboxUnavailable(
            f"bubblewrap is older than {'.'.join(map(str, MIN_VERSION))}: install a newer one, {_OR_NONE}"
        )
    # Root never runs jobs, not even in namespaces: RLIMIT_NPROC does not apply to root.
    return BubblewrapTools(bwrap, program, None if os.geteuid() else JOB_UID)


def find_tool(name: str) -> str | None:
    """Return the path of a tool that only root or this user can have installed, or None."""
    for directory in TOOL_DIRECTORIES:
        tool = Path(directory, name)
        if tool.is_file():
            status = tool.stat()
            if status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return str(tool.resolve())
    return None


def bubblewrap_version(bwrap: str) -> tuple[int, ...]:
    """Return the version that bubblewrap reports, or an empty tuple."""
    command = [bwrap, "--version"]
    result = subprocess.run(command, capture_output=True, text=True, env={}, timeout=20, check=False)  # noqa: S603 - an argv
    match = _VERSION.search(result.stdout)
    return tuple(map(int, match.groups())) if match else ()

"""This machine: Python, what is installed, what runs unasked, what workers need, the variables that are set."""

import ctypes
import os
import platform
import re
import resource
import shutil
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import metadata

import qwed
from qwed.cli.doctor.finding import Finding, broken, fine, warning
from qwed.settings import (
    CLIENT_VARIABLES,
    Settings,
    SettingsError,
    settings_from,
    unknown_variables,
    variable_of,
)

_OLDEST = (3, 11)
_EXTRAS = {
    "server": "to run `qwed serve`",
    "engines": "to verify without a server",
    "legal": "for deadlines with holidays, and citations",
    "citations": "to find citations in running text",
    "finance": "for payment messages against schemas of your own",
    "ucp": "for checkouts with a `ucp` envelope",
}
_BUILT_ON = {"server": "engines", "citations": "legal"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([a-z0-9]+)['\"]")
_PR_GET_CHILD_SUBREAPER = 37
_SECRETIVE = ("LLM", "WITNESS", "KEY", "TOKEN")
"""Variables whose value may hold a secret, so that a bad one is named and not shown."""
_PREFIXES = {"QWED_API_KEY": "qwed_live_", "QWED_AGENT_TOKEN": "qwed_agent_", "QWED_AGENT_ID": "agent_"}


def look_at_python() -> Iterator[Finding]:
    """The interpreter, and qwed in it."""
    version = platform.python_version()
    if sys.version_info < _OLDEST:
        yield broken("python", f"{version} is too old", "install Python 3.11 or newer")
    else:
        yield fine("python", f"{version} on {platform.system()}, qwed {qwed.__version__}")


def look_at_extras() -> Iterator[Finding]:
    """What `pip install 'qwed[...]'` would add."""
    try:
        required = metadata.requires("qwed") or []
    except metadata.PackageNotFoundError:
        yield warning("extras", "qwed runs from its source and is not installed", "run `pip install -e .` in its clone")
        return
    for extra, purpose in _EXTRAS.items():
        found = {name: _version_of(name) for name in _names(required, extra)}
        if not found:
            continue
        missing = [name for name, version in found.items() if version is None]
        if missing:
            listed = f"not installed: {', '.join(missing)}"
            yield warning(f"extra {extra}", listed, f"run `pip install 'qwed[{extra}]'` {purpose}")
        else:
            yield fine(f"extra {extra}", ", ".join(f"{name} {version}" for name, version in found.items()))


def _names(required: list[str], extra: str) -> list[str]:
    """The distributions of an extra; those that it shares with another are named with that one alone."""
    of: dict[str, list[str]] = {}
    for match in filter(None, map(_REQUIREMENT.match, required)):
        of.setdefault(match[2], []).append(match[1])
    beside = {"qwed", *of.get(_BUILT_ON.get(extra, ""), [])}
    return [name for name in of.get(extra, []) if name not in beside]


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def look_at_tools() -> Iterator[Finding]:
    """Programs that an engine uses where they are."""
    found = shutil.which("tesseract")
    if found:
        yield fine("tesseract", found)
    else:
        advice = "install tesseract where claims about text in images are to be verified"
        yield warning("tesseract", "not found: text in images stays INCONCLUSIVE", advice)


def look_at_hooks() -> Iterator[Finding]:
    """What runs in every interpreter without being asked for; a server does not start with an unknown hook."""
    from qwed.guards.startup_hooks import SETTING, verify_environment

    try:
        allowed = settings_from().startup_hooks_allow
    except SettingsError:
        allowed = frozenset()
    found = verify_environment(allow=allowed)
    for hook in found:
        accept = f", or accept it with {SETTING}={hook.sha256}" if hook.sha256 else ""
        yield broken("startup hooks", f"`{hook.path}` {hook.reason}: no server starts", f"remove it{accept}")
    if not found:
        yield fine("startup hooks", "none that nobody knows")


def look_at_workers() -> Iterator[Finding]:
    """What the operating system must offer to hold the workers of the engines in bounds."""
    lacking = [name for name, there in _abilities() if not there]
    if lacking:
        advice = "run the server on Linux 5.4 or newer, outside of a sandbox that forbids them"
        yield broken("workers", f"the system lacks {', '.join(lacking)}", advice)
        return
    cores = len(os.sched_getaffinity(0))
    yield fine("workers", f"{cores} processor{'s' if cores > 1 else ''}; limits and process handles are there")


def _abilities() -> Iterator[tuple[str, bool]]:
    yield "pidfd_open", _has_pidfd()
    yield "prctl", _has_prctl()
    yield "a limit of memory", hasattr(resource, "RLIMIT_AS")
    yield "/proc", os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _has_prctl() -> bool:
    try:
        answer = ctypes.c_int()
        return bool(ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def look_at_variables() -> Iterator[Finding]:
    """QWED_ variables: values that cannot be used, names that nobody reads, what clients would use."""
    try:
        settings_from()
    except SettingsError as error:
        yield broken("settings", _without_secret(str(error)), "change it, or unset it: docs/settings.md lists them all")
    known = sorted(CLIENT_VARIABLES | {variable_of(name) for name in Settings.__dataclass_fields__})
    for name in unknown_variables():
        near = get_close_matches(name, known, 1, 0.8)
        advice = f"did you mean {near[0]}?" if near else "unset it: docs/settings.md lists them all"
        yield warning("settings", f"{name} sets nothing", advice)
    yield from _client_variables()


def _without_secret(message: str) -> str:
    variable = message.partition(":")[0]
    return f"{variable} has a value that cannot be used" if any(word in variable for word in _SECRETIVE) else message


def _client_variables() -> Iterator[Finding]:
    given = [name for name in sorted(CLIENT_VARIABLES) if os.environ.get(name)]
    yield fine("variables", f"set are {', '.join(given)}" if given else "none is set for clients; the defaults apply")
    for name, prefix in _PREFIXES.items():
        value = os.environ.get(name, "")
        if value and not value.strip().startswith(prefix):
            yield warning("variables", f"{name} does not begin with `{prefix}`", "copy it again: it may be another one")
    if os.environ.get("QWED_AGENT_TOKEN") and not os.environ.get("QWED_AGENT_ID"):
        yield warning("variables", "QWED_AGENT_TOKEN is set and QWED_AGENT_ID is not", "set the id of the agent too")

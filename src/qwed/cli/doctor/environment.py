"""Checks of the machine: Python, installed extras, startup hooks, system features, variables."""

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
from qwed.cli.doctor.check_result import DoctorCheck, broken, fine, warning
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
    "finance": "to check payment messages against your own schemas",
    "ucp": "for checkouts with a `ucp` envelope",
}
_BUILT_ON = {"server": "engines", "citations": "legal"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([a-z0-9]+)['\"]")
_PR_GET_CHILD_SUBREAPER = 37
_SECRET_WORDS = ("LLM", "WITNESS", "KEY", "TOKEN")
"""Parts of variable names whose value may be secret; an invalid value is not printed."""
_PREFIXES = {"QWED_API_KEY": "qwed_live_", "QWED_AGENT_TOKEN": "qwed_agent_", "QWED_AGENT_ID": "agent_"}


def check_python() -> Iterator[DoctorCheck]:
    """Check the versions of Python and qwed."""
    version = platform.python_version()
    if sys.version_info < _OLDEST:
        yield broken("python", f"{version} is too old", "install Python 3.11 or newer")
    else:
        yield fine("python", f"{version} on {platform.system()}, qwed {qwed.__version__}")


def check_extras() -> Iterator[DoctorCheck]:
    """Check which extras are installed."""
    try:
        required = metadata.requires("qwed") or []
    except metadata.PackageNotFoundError:
        yield warning("extras", "qwed runs from source and is not installed", "run `pip install -e .` in the clone")
        return
    for extra, purpose in _EXTRAS.items():
        versions = {name: _version_of(name) for name in _distributions_of(required, extra)}
        if not versions:
            continue
        missing = [name for name, version in versions.items() if version is None]
        if missing:
            listed = f"not installed: {', '.join(missing)}"
            yield warning(f"extra {extra}", listed, f"run `pip install 'qwed[{extra}]'` {purpose}")
        else:
            yield fine(f"extra {extra}", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _distributions_of(required: list[str], extra: str) -> list[str]:
    """Return the packages of an extra, without those of the extra it is built on."""
    by_extra: dict[str, list[str]] = {}
    for match in filter(None, map(_REQUIREMENT.match, required)):
        by_extra.setdefault(match[2], []).append(match[1])
    excluded = {"qwed", *by_extra.get(_BUILT_ON.get(extra, ""), [])}
    return [name for name in by_extra.get(extra, []) if name not in excluded]


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def check_tools() -> Iterator[DoctorCheck]:
    """Check external programs that engines use."""
    path = shutil.which("tesseract")
    if path:
        yield fine("tesseract", path)
    else:
        advice = "install tesseract to verify claims about text in images"
        yield warning("tesseract", "not found: text in images stays INCONCLUSIVE", advice)


def check_startup_hooks() -> Iterator[DoctorCheck]:
    """Check for code that runs in every interpreter; a server does not start with an unknown hook."""
    from qwed.guards.startup_hooks import SETTING, verify_environment

    try:
        allowed = settings_from().startup_hooks_allow
    except SettingsError:
        allowed = frozenset()
    hooks = verify_environment(allow=allowed)
    for hook in hooks:
        accept = f", or accept it with {SETTING}={hook.sha256}" if hook.sha256 else ""
        yield broken("startup hooks", f"`{hook.path}` {hook.reason}: no server starts", f"remove it{accept}")
    if not hooks:
        yield fine("startup hooks", "no unknown hooks")


def check_workers() -> Iterator[DoctorCheck]:
    """Check the system features that limit engine processes."""
    missing = [name for name, present in _system_features() if not present]
    if missing:
        advice = "run the server on Linux 5.4 or newer, outside a sandbox that forbids them"
        yield broken("workers", f"the system lacks {', '.join(missing)}", advice)
        return
    cores = len(os.sched_getaffinity(0))
    yield fine(
        "workers", f"{cores} processor{'s' if cores > 1 else ''}; resource limits and process handles are available"
    )


def _system_features() -> Iterator[tuple[str, bool]]:
    yield "pidfd_open", _has_pidfd()
    yield "prctl", _has_prctl()
    yield "a memory limit", hasattr(resource, "RLIMIT_AS")
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


def check_variables() -> Iterator[DoctorCheck]:
    """Check QWED_ variables: invalid values, unknown names and client settings."""
    try:
        settings_from()
    except SettingsError as error:
        yield broken("settings", _without_secret(str(error)), "change or unset it: docs/settings.md lists all settings")
    settings = sorted(CLIENT_VARIABLES | {variable_of(name) for name in Settings.__dataclass_fields__})
    for name in unknown_variables():
        matches = get_close_matches(name, settings, 1, 0.8)
        advice = f"did you mean {matches[0]}?" if matches else "unset it: docs/settings.md lists all settings"
        yield warning("settings", f"{name} is not a known setting", advice)
    yield from _check_client_variables()


def _without_secret(message: str) -> str:
    variable = message.partition(":")[0]
    return f"{variable} has an invalid value" if any(word in variable for word in _SECRET_WORDS) else message


def _check_client_variables() -> Iterator[DoctorCheck]:
    names = [name for name in sorted(CLIENT_VARIABLES) if os.environ.get(name)]
    yield fine("variables", f"set: {', '.join(names)}" if names else "no client variables are set; the defaults apply")
    for name, prefix in _PREFIXES.items():
        value = os.environ.get(name, "")
        if value and not value.strip().startswith(prefix):
            yield warning(
                "variables", f"{name} does not begin with `{prefix}`", "copy it again: it may be another credential"
            )
    if os.environ.get("QWED_AGENT_TOKEN") and not os.environ.get("QWED_AGENT_ID"):
        yield warning("variables", "QWED_AGENT_TOKEN is set, but QWED_AGENT_ID is not", "set QWED_AGENT_ID too")

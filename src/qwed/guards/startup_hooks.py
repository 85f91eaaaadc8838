"""Startup hook guard: find code that Python runs before the first line of this program (specification 9.7, environment
integrity).

Checked are the `.pth` files of every site directory, `sitecustomize` and `usercustomize`, modules that shadow the
standard library, and the environment variables that load code. Hooks of common tools are recognised by their content,
never by their file name; any other hook is accepted by the SHA-256 of its content. A line that only adds a path is
harmless unless the path is world-writable: such a path comes last, so it cannot replace a module, and Python ignores a
path that does not exist. Not checked: the modules of installed packages and their compiled caches, because write access
to them is full control anyway.
"""

import hashlib
import importlib
import io
import os
import site
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder

from qwed.guards import _startup_allowlist as allowlist

MAX_BYTES = 1 << 20
SETTING = "QWED_STARTUP_HOOKS_ALLOW"
_SITE_NAMES = frozenset({"site-packages", "dist-packages"})
_CUSTOMIZERS = ("sitecustomize", "usercustomize")
_LIBRARY_VARIABLES = ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES")
_PATH_VARIABLES = {
    "PYTHONHOME": "replaces the standard library",
    "PYTHONPLATLIBDIR": "replaces the standard library",
    "PYTHONPYCACHEPREFIX": "is where compiled modules are taken from",
}
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


@dataclass(frozen=True, slots=True)
class HookFinding:
    """Unknown startup hook: its path, the reason why it matters, and the hash that an administrator may allow."""

    path: str
    reason: str
    sha256: str
    """Empty if the content cannot be read, so that there is nothing to allow."""


def verify_environment(
    *,
    site_directories: Sequence[str] | None = None,
    search_path: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    allow: frozenset[str] = frozenset(),
) -> tuple[HookFinding, ...]:
    """Return every unknown startup hook; without arguments, those of this process."""
    importlib.invalidate_caches()
    searched = sys.path if search_path is None else search_path
    path = [entry for entry in searched if entry]
    directories = _site_directories() if site_directories is None else site_directories
    findings = (
        *(finding for directory in directories for finding in _pth_findings(directory, path)),
        *(finding for name in _CUSTOMIZERS for finding in _customizer_findings(name, path)),
        *(
            finding
            for directory in _directories_before_stdlib(searched)
            for finding in _replacement_findings(directory)
        ),
        *_variable_findings(os.environ if environ is None else environ),
    )
    accepted = {entry.strip().lower() for entry in allow}
    return tuple(finding for finding in dict.fromkeys(findings) if finding.sha256 not in accepted or not finding.sha256)


def require_clean_environment(settings_allow: frozenset[str] = frozenset()) -> None:
    """Raise RuntimeError if there is an unknown startup hook, naming each file and how to allow it."""
    findings = verify_environment(allow=settings_allow)
    if findings:
        raise RuntimeError("the environment is compromised: " + "; ".join(map(_format_finding, findings)))


class StartupHookGuard:
    """Startup hook check under the name that the specification gives it."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allow = frozenset(allow)

    def verify(self) -> tuple[HookFinding, ...]:
        """Return the unknown hooks of this process."""
        return verify_environment(allow=self._allow)


def _format_finding(finding: HookFinding) -> str:
    advice = f"remove it, or accept it with {SETTING}={finding.sha256}" if finding.sha256 else "remove it"
    return f"`{finding.path}` {finding.reason} ({advice})"


def _site_directories() -> list[str]:
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    on_path = (entry for entry in sys.path if os.path.basename(entry) in _SITE_NAMES)
    return list(dict.fromkeys((*site.getsitepackages(), *own, *on_path)))


def _pth_findings(directory: str, path: Sequence[str]) -> Iterator[HookFinding]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        # Python passes over a site directory it cannot list, too.
        return
    for name in names:
        if name.endswith(".pth"):
            yield from _pth_file_findings(directory, os.path.join(directory, name), path)


def _pth_file_findings(directory: str, file: str, path: Sequence[str]) -> Iterator[HookFinding]:
    if not os.path.isfile(file):
        return
    content = _read(file)
    if content is None:
        yield HookFinding(file, f"cannot be read, or is larger than {MAX_BYTES} bytes", "")
        return
    digest = hashlib.sha256(content).hexdigest()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield HookFinding(file, "is not text", digest)
        return
    # Python reads these files with universal newlines, and only those end a line here.
    for line in io.StringIO(text, newline=None):
        reason = _line_problem(directory, line.rstrip(), path)
        if reason:
            yield HookFinding(file, reason, digest)
            return


def _line_problem(directory: str, line: str, path: Sequence[str]) -> str:
    if not line.strip() or line.startswith("#"):
        return ""
    if line.startswith(("import ", "import\t")):
        return "" if _is_known_line(line, path) else f"runs code at every start: `{line[:200]}`"
    target = os.path.abspath(os.path.join(directory, line))
    return f"adds `{target[:200]}`, where anyone may put a module" if _is_world_writable(target) else ""


def _is_known_line(line: str, path: Sequence[str]) -> bool:
    if allowlist.is_known_source(line):
        return True
    module = allowlist.module_installed_by(line)
    if not module:
        return False
    content = _source_of(module, path)
    return content is not None and allowlist.is_plain_finder(content)


def _source_of(module: str, path: Sequence[str]) -> bytes | None:
    file = _origin(module, path)
    return _read(file) if file and file.endswith(".py") else None


def _origin(module: str, path: Sequence[str]) -> str | None:
    spec = PathFinder.find_spec(module, list(path))
    return spec.origin if spec is not None else None


def _is_world_writable(target: str) -> bool:
    """Return True if any user can write modules there; a missing path counts as its nearest existing parent."""
    while not os.path.exists(target):
        target = os.path.dirname(target)
    return bool(os.stat(target).st_mode & stat.S_IWOTH)


def _customizer_findings(name: str, path: Sequence[str]) -> Iterator[HookFinding]:
    loaded = (
        getattr(sys.modules.get(name), "__file__", None)
        if list(path) == [entry for entry in sys.path if entry]
        else None
    )
    for file in dict.fromkeys(entry for entry in (_origin(name, path), loaded) if entry):
        content = _read(file)
        if content is None:
            yield HookFinding(file, f"cannot be read, or is larger than {MAX_BYTES} bytes", "")
        elif not (file.endswith(".py") and allowlist.is_known_source(content)):
            yield HookFinding(file, f"runs at every start as `{name}`", hashlib.sha256(content).hexdigest())


def _variable_findings(environ: Mapping[str, str]) -> Iterator[HookFinding]:
    startup = environ.get("PYTHONSTARTUP")
    if startup:
        yield HookFinding(startup, "runs in interactive interpreters (PYTHONSTARTUP)", _digest_of(startup))
    for variable, reason in _PATH_VARIABLES.items():
        if path := environ.get(variable):
            yield HookFinding(path, f"{reason} ({variable})", _sha256_of(path))
    yield from _warning_findings(environ.get("PYTHONWARNINGS", ""))
    for variable in _LIBRARY_VARIABLES:
        for library in environ.get(variable, "").replace(":", " ").split():
            yield HookFinding(library, f"is loaded into every process ({variable})", _digest_of(library))


def _warning_findings(filters: str) -> Iterator[HookFinding]:
    """Yield the modules that are imported because a warning filter names a category in them."""
    for warning_filter in filters.split(","):
        module = [*warning_filter.split(":"), "", ""][2].strip().rpartition(".")[0]
        if module:
            yield HookFinding(module, "is imported at every start (PYTHONWARNINGS)", _sha256_of(module))


def _directories_before_stdlib(path: Sequence[str]) -> Sequence[str]:
    """Return the directories searched before the standard library: that of the program or the current one, and
    PYTHONPATH."""
    directories = [os.path.abspath(entry) for entry in path]
    return directories[: directories.index(_STANDARD_LIBRARY)] if _STANDARD_LIBRARY in directories else []


def _replacement_findings(directory: str) -> Iterator[HookFinding]:
    try:
        names = sorted({name.partition(".")[0] for name in os.listdir(directory)} & sys.stdlib_module_names)
    except OSError:
        return
    if _is_world_writable(directory):
        reason = "is searched before the standard library, and anyone may put a module there"
        yield HookFinding(directory, reason, _sha256_of(directory))
    for name in names:
        file = _origin(name, [directory])
        if file:
            yield HookFinding(file, f"replaces `{name}` of the standard library", _digest_of(file))


def _sha256_of(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def _digest_of(file: str) -> str:
    """Return the hash of the file's content, or of its name if the content cannot be read."""
    content = _read(file)
    return _sha256_of(file) if content is None else hashlib.sha256(content).hexdigest()


def _read(file: str) -> bytes | None:
    try:
        with open(file, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    return content if len(content) <= MAX_BYTES else None

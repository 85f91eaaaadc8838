"""Spec 9.7, environment integrity: what runs inside this interpreter before our first line does.

Looked at are the `.pth` files of every site directory, `sitecustomize` and `usercustomize`, what stands before the
standard library on the path and could replace a module of it, and the variables that load code. Hooks of common tools
are known by what they say, never by the name of their file; any other is accepted by the SHA-256 of its content. A line
that only adds a path is harmless unless anyone on the machine may write there: such a path comes last, so it cannot
replace a module, and one that does not exist is ignored by Python.
Not looked at: the modules of installed packages and their compiled caches, which whoever may write them owns anyway.
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

from qwed.guards import _startup_known as known

MAX_BYTES = 1 << 20
SETTING = "QWED_STARTUP_HOOKS_ALLOW"
_SITE_NAMES = frozenset({"site-packages", "dist-packages"})
_CUSTOMIZERS = ("sitecustomize", "usercustomize")
_LIBRARY_VARIABLES = ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES")
_PLACE_VARIABLES = {
    "PYTHONHOME": "replaces the standard library",
    "PYTHONPLATLIBDIR": "replaces the standard library",
    "PYTHONPYCACHEPREFIX": "is where compiled modules are taken from",
}
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


@dataclass(frozen=True, slots=True)
class HookFinding:
    """A hook nobody vouched for: where it is, why it matters, and the hash an administrator may allow."""

    path: str
    reason: str
    sha256: str
    """Empty where the content could not be read, so there is nothing to allow."""


def verify_environment(
    *,
    site_directories: Sequence[str] | None = None,
    search_path: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    allow: frozenset[str] = frozenset(),
) -> tuple[HookFinding, ...]:
    """Every unknown startup hook; without arguments, those of this very process."""
    importlib.invalidate_caches()
    searched = sys.path if search_path is None else search_path
    path = [each for each in searched if each]
    directories = _site_directories() if site_directories is None else site_directories
    found = (
        *(finding for directory in directories for finding in _pth_findings(directory, path)),
        *(finding for name in _CUSTOMIZERS for finding in _customizer_findings(name, path)),
        *(finding for directory in _before_the_standard_library(searched) for finding in _replacing(directory)),
        *_variable_findings(os.environ if environ is None else environ),
    )
    accepted = {each.strip().lower() for each in allow}
    return tuple(finding for finding in dict.fromkeys(found) if finding.sha256 not in accepted or not finding.sha256)


def require_clean_environment(settings_allow: frozenset[str] = frozenset()) -> None:
    """Return if nothing unknown runs at start; RuntimeError naming each file and how to allow it otherwise."""
    findings = verify_environment(allow=settings_allow)
    if findings:
        raise RuntimeError("the environment is compromised: " + "; ".join(map(_sentence, findings)))


class StartupHookGuard:
    """The check under the name the specification gives it."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allow = frozenset(allow)

    def verify(self) -> tuple[HookFinding, ...]:
        """The unknown hooks of this process; empty if there are none."""
        return verify_environment(allow=self._allow)


def _sentence(finding: HookFinding) -> str:
    advice = f"remove it, or accept it with {SETTING}={finding.sha256}" if finding.sha256 else "remove it"
    return f"`{finding.path}` {finding.reason} ({advice})"


def _site_directories() -> list[str]:
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    on_path = (each for each in sys.path if os.path.basename(each) in _SITE_NAMES)
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
    return f"adds `{target[:200]}`, where anyone may put a module" if _anyone_may_write(target) else ""


def _is_known_line(line: str, path: Sequence[str]) -> bool:
    if known.is_known_source(line):
        return True
    module = known.module_installed_by(line)
    if not module:
        return False
    content = _source_of(module, path)
    return content is not None and known.is_plain_finder(content)


def _source_of(module: str, path: Sequence[str]) -> bytes | None:
    file = _origin(module, path)
    return _read(file) if file and file.endswith(".py") else None


def _origin(module: str, path: Sequence[str]) -> str | None:
    spec = PathFinder.find_spec(module, list(path))
    return spec.origin if spec is not None else None


def _anyone_may_write(target: str) -> bool:
    """Whether any user may create or change modules there; a path that is missing counts as what it would lie in."""
    while not os.path.exists(target):
        target = os.path.dirname(target)
    return bool(os.stat(target).st_mode & stat.S_IWOTH)


def _customizer_findings(name: str, path: Sequence[str]) -> Iterator[HookFinding]:
    loaded = (
        getattr(sys.modules.get(name), "__file__", None) if list(path) == [each for each in sys.path if each] else None
    )
    for file in dict.fromkeys(each for each in (_origin(name, path), loaded) if each):
        content = _read(file)
        if content is None:
            yield HookFinding(file, f"cannot be read, or is larger than {MAX_BYTES} bytes", "")
        elif not (file.endswith(".py") and known.is_known_source(content)):
            yield HookFinding(file, f"runs at every start as `{name}`", hashlib.sha256(content).hexdigest())


def _variable_findings(environ: Mapping[str, str]) -> Iterator[HookFinding]:
    startup = environ.get("PYTHONSTARTUP")
    if startup:
        yield HookFinding(startup, "runs in interactive interpreters (PYTHONSTARTUP)", _digest_of(startup))
    for variable, reason in _PLACE_VARIABLES.items():
        if place := environ.get(variable):
            yield HookFinding(place, f"{reason} ({variable})", _sha256_of(place))
    yield from _warning_findings(environ.get("PYTHONWARNINGS", ""))
    for variable in _LIBRARY_VARIABLES:
        for library in environ.get(variable, "").replace(":", " ").split():
            yield HookFinding(library, f"is loaded into every process ({variable})", _digest_of(library))


def _warning_findings(filters: str) -> Iterator[HookFinding]:
    """The modules that are imported for a filter of warnings: its category is looked up where it is from."""
    for each in filters.split(","):
        module = [*each.split(":"), "", ""][2].strip().rpartition(".")[0]
        if module:
            yield HookFinding(module, "is imported at every start (PYTHONWARNINGS)", _sha256_of(module))


def _before_the_standard_library(path: Sequence[str]) -> Sequence[str]:
    """What is searched first: the directory of the program or the current one, and PYTHONPATH."""
    places = [os.path.abspath(each) for each in path]
    return places[: places.index(_STANDARD_LIBRARY)] if _STANDARD_LIBRARY in places else []


def _replacing(directory: str) -> Iterator[HookFinding]:
    try:
        names = sorted({name.partition(".")[0] for name in os.listdir(directory)} & sys.stdlib_module_names)
    except OSError:
        return
    if _anyone_may_write(directory):
        reason = "is searched before the standard library, and anyone may put a module there"
        yield HookFinding(directory, reason, _sha256_of(directory))
    for name in names:
        file = _origin(name, [directory])
        if file:
            yield HookFinding(file, f"replaces `{name}` of the standard library", _digest_of(file))


def _sha256_of(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def _digest_of(file: str) -> str:
    """The hash of the file's content, or of its name where the content is not ours to read."""
    content = _read(file)
    return _sha256_of(file) if content is None else hashlib.sha256(content).hexdigest()


def _read(file: str) -> bytes | None:
    try:
        with open(file, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    return content if len(content) <= MAX_BYTES else None

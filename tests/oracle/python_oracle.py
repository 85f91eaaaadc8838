"""Comparison of what CodeGuard predicted with what a program did."""

import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tests.oracle.predictions import Prediction, predict_python
from tests.oracle.python_execution import PythonObservation, execute, packages
from tests.oracle.recording import Record
from tests.oracle.tables import names

_LIBRARY = tuple(
    dict.fromkeys(
        (
            *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            *(sys.base_prefix + "/lib", "/usr/lib", "/usr/share/zoneinfo", "/usr/local/lib", "/usr/share/locale"),
            *map(str, packages()),
        )
    )
)
_HARMLESS_PATHS = (
    "program.py",
    "/oracle/",
    "<",
    "/dev/tty",
    ".pdbrc",
    "/home/dev/.pdbrc",
    "/dev/null",
    "/dev/urandom",
    "/dev/random",
    "/etc/localtime",
    "/proc/self/maps",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/sys/",
)
_CACHES = ("/home/dev/.cache", "/home/dev/.config", "/home/dev/project/.hypothesis")
"""Directories in which libraries keep what they compute again, the failing examples of hypothesis included."""
_HARMLESS_EVENTS = {
    ("sqlite3.connect", ":memory:"),
    ("subprocess.Popen", "file"),
    ("subprocess.Popen", "uname"),
    ("subprocess.Popen", "fc-list"),
}
"""A database in memory; programs by which `platform` and `matplotlib` look at the machine."""
_KINDS = {
    **dict.fromkeys(
        names("os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty subprocess.Popen pty.spawn os.startfile"),
        "process",
    ),
    **dict.fromkeys(
        names(
            "socket.connect socket.bind socket.sendto socket.sendmsg socket.getaddrinfo socket.gethostbyname "
            "socket.gethostbyaddr "
            "urllib.Request webbrowser.open"
        ),
        "network",
    ),
    **dict.fromkeys(
        names(
            "os.remove os.rename os.mkdir os.rmdir os.chmod os.chown os.link os.symlink os.truncate os.utime "
            "os.setxattr "
            "os.removexattr shutil.rmtree shutil.copyfile shutil.move tempfile.mkstemp tempfile.mkdtemp"
        ),
        "write",
    ),
    **dict.fromkeys(
        names("os.kill os.killpg signal.pthread_kill syslog.openlog syslog.syslog resource.setrlimit os.chdir"),
        "admin",
    ),
    **dict.fromkeys(names("exec code.__new__ marshal.loads marshal.load pickle.find_class"), "dynamic"),
    **dict.fromkeys(names("ctypes.dlopen ctypes.dlsym ctypes.string_at ctypes.cdata ctypes.call_function"), "native"),
    **dict.fromkeys(names("os.listdir os.scandir sqlite3.connect"), "read"),
}
_WRITING_FLAGS = 0x1 | 0x2 | 0x40 | 0x200
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC."""


class PythonRun(NamedTuple):
    """Outcome of one program."""

    text: str
    predicted: Prediction
    observation: PythonObservation
    observed: tuple[str, ...]

    @property
    def is_predicted_harmless(self) -> bool:
        """Return True if CodeGuard verified the program."""
        return self.predicted.is_harmless

    @property
    def is_idle(self) -> bool:
        """Return True if the program ended well and only computed."""
        return self.observation.status == 0 and not self.observed

    @property
    def is_failure(self) -> bool:
        """Return True if a verified program did more than compute."""
        return self.predicted.is_harmless and bool(self.observed)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of what was observed."""
        return frozenset(item.partition(" ")[0] for item in self.observed)

    @property
    def group(self) -> tuple[str, ...]:
        """First module the program names and kinds of effect."""
        words = self.text.replace("from ", "import ").split("import ")
        module = words[1].split()[0].strip(",;") if len(words) > 1 else ""
        return (module, *sorted(self.kinds))

    def row(self) -> dict[str, object]:
        """Return input, prediction and observation for a report."""
        return {"input": self.text, "predicted": self.predicted.risk.word, "observed": list(self.observed[:6])}

    def record(self) -> Record:
        """Return the input and everything that was observed, to be judged again later."""
        return {"input": self.text, "observation": msgspec.to_builtins(self.observation)}


def observed_effects(observation: PythonObservation) -> tuple[str, ...]:
    """Return what a program did beyond computing and importing."""
    effects = [effect for name, arguments in observation.events for effect in _effects(name, arguments)]
    effects += [f"write {path}" for _, path in observation.changes if not path.startswith(_CACHES)]
    effects += [f"secret {name}" for name in observation.canaries]
    if observation.ended_sandbox:
        effects.append("admin ended the sandbox")
    return tuple(dict.fromkeys(effects))


def _with_error(predicted: Prediction, effects: tuple[str, ...]) -> tuple[str, ...]:
    return (predicted.error, *effects) if predicted.error else effects


def _effects(name: str, arguments: Sequence[Any]) -> Iterator[str]:
    path = arguments[0] if arguments and isinstance(arguments[0], str) else ""
    if (name, path) in _HARMLESS_EVENTS or path.startswith(_CACHES):
        return
    if name == "open":
        yield from _open_effects(path, arguments)
    elif name in _KINDS and not _is_harmless(name, path, arguments):
        yield f"{_KINDS[name]} {name} {arguments[0] if arguments else ''}"[:120]


def _is_harmless(name: str, path: str, arguments: Sequence[Any]) -> bool:
    # urllib3 asks on import whether IPv6 is there.
    asks_for_ipv6 = name == "socket.bind" and "laddr=('::', 0" in str(arguments[:1])
    return asks_for_ipv6 or (_KINDS[name] == "read" and path.startswith(_LIBRARY))


def _open_effects(path: str, arguments: Sequence[Any]) -> Iterator[str]:
    flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else 0
    if not isinstance(arguments[0], str) or path.startswith(_HARMLESS_PATHS):
        return
    if flags & _WRITING_FLAGS & ~0x80000:
        yield f"write open {path}"
    elif not path.startswith(_LIBRARY):
        yield f"read open {path}"


def run(texts: Sequence[str]) -> list[PythonRun]:
    """Predict and run each program."""
    predictions = [predict_python(text) for text in texts]
    return [
        PythonRun(text, predicted, observation, _with_error(predicted, observed_effects(observation)))
        for text, predicted, observation in zip(texts, predictions, execute(texts), strict=True)
    ]


def rejudge(records: Sequence[Record]) -> list[PythonRun]:
    """Judge recorded programs again."""
    return [_rejudge(record) for record in records]


def _rejudge(record: Record) -> PythonRun:
    predicted = predict_python(record["input"])
    observation = msgspec.convert(record["observation"], PythonObservation)
    return PythonRun(record["input"], predicted, observation, _with_error(predicted, observed_effects(observation)))


def shrink(failure: PythonRun, rounds: int = 8) -> PythonRun:
    """Return the shortest program that fails in the same way, by leaving out one run of lines at a time."""
    best = failure
    for _ in range(rounds):
        candidates = [text for text in _shorter(best.text) if predict_python(text).is_harmless]
        failing = [row for row in run(candidates[:60]) if row.is_failure and row.kinds & failure.kinds]
        if not failing:
            return best
        best = min(failing, key=lambda row: len(row.text))
    return best


def _shorter(text: str) -> Iterable[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    for size in sorted({1, 2, 3, len(lines) // 2} - {0}, reverse=True):
        for start in range(len(lines) - size + 1):
            if len(lines) > size:
                yield "\n".join(lines[:start] + lines[start + size :]) + "\n"

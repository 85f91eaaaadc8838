"""Sandbox escape attempts, the canaries on the host that they look for, and detection of success."""

import contextlib
import ctypes
import glob
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import qwed
from qwed_mcp.sandbox import JobLimits, JobOutcome, Sandbox, SandboxJob
from qwed_mcp.sandbox.filesystem import find_visible_files
from qwed_mcp.sandbox.resource_usage import process_tree
from qwed_mcp.sandbox.seccomp import refused_call_number
from qwed_mcp.sandbox.selection import JOB_UID
from tests.support.case_tables import DATA

ROOT = Path(__file__).parents[2]
SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class EscapeAttempt:
    """Program that prints what it reaches, or acts on it."""

    kind: str
    name: str
    quick: bool
    """True if it is part of every test run."""
    sign: str
    """Sign of success: `told` a canary, `said` so, `called` a socket, `killed`, `changed`; or `held` to a limit."""
    outside: str
    """Success without a sandbox: `yes`, as `root`, or `no` with the reason why it is not tried."""
    seconds: float
    code: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"

    @property
    def tried_outside(self) -> bool:
        """Return True if this test process can show that the attempt works without a sandbox."""
        return self.outside == "yes" or (self.outside == "root" and os.geteuid() == 0)


def attempts() -> list[EscapeAttempt]:
    """Return every attempt under tests/data/escapes: `=== name | sign | outside | seconds=N`, then the program."""
    return [attempts_read for file in sorted((DATA / "escapes").glob("*.txt")) for attempts_read in _read(file)]


def _read(file: Path) -> Iterator[EscapeAttempt]:
    for part in file.read_text().split("=== ")[1:]:
        head, _, code = part.partition("\n")
        name, sign, outside, *more = head.split(" | ")
        seconds = float(more[0].removeprefix("seconds=")) if more else SECONDS
        yield EscapeAttempt(file.stem, name.removeprefix("* "), name.startswith("* "), sign, outside, seconds, code)


_PRELUDE = """
import os, re, sys
at = {at}
def seek(data):
    print(*re.findall(rb"canary-[a-z]+-[0-9a-f]{{16}}", data))
def reached():
    print("REA" + "CHED", flush=True)
def call(name, *arguments):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {numbers}
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer = libc.syscall(ctypes.c_long(numbers.get(name, name)), *given)
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
"""
_MORE_NUMBERS = {
    "x86_64": {"pidfd_open": 434, "clone": 56, "clone3": 435, "ioctl": 16, "socket": 41, "connect": 42, "tgkill": 234},
    "aarch64": {
        "pidfd_open": 434,
        "clone": 220,
        "clone3": 435,
        "ioctl": 29,
        "socket": 198,
        "connect": 203,
        "tgkill": 131,
    },
}[os.uname().machine]

_VICTIM = """
import ctypes, os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
    ctypes.CDLL(None).prctl(4, 1)
memory = ctypes.create_string_buffer(os.environ["MEMORY"].encode())
print(ctypes.addressof(memory), os.open(sys.argv[2], os.O_RDONLY), flush=True)
sys.stdin.read()
"""
_NEIGHBOUR = """
import os, socket, sys
note = {token!r}
open("note-{mark}", "w").write(note)
open("/dev/shm/note-{mark}", "w").write(note)
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0qwed-neighbour-{mark}")
listener.listen()
os.set_inheritable(listener.fileno(), True)
code = '''
import os, socket, sys
listener = socket.socket(fileno=int(sys.argv[1]))
while True:
    listener.accept()[0].send(os.environ["NOTE"].encode())
'''
command = [sys.executable, "-c", code, str(listener.fileno()), "waiting_neighbour-{mark}"]
os.execve(sys.executable, command, dict(os.environ, NOTE=note))
"""


class CanaryHost:
    """Host with canaries: secrets in files, memory, environments and another job; sockets; a process."""

    def __init__(self, place: Path) -> None:
        self._mark = secrets.token_hex(8)
        self._place = place
        self._tokens = {what: f"canary-{what}-{secrets.token_hex(8)}" for what in _WHAT}
        self._stack = contextlib.ExitStack()
        self._memory = ctypes.create_string_buffer(self._tokens["here"].encode())
        self._plant()
        self._listen()
        self._victim: subprocess.Popen[str] | None = None
        self.restore()

    def _plant(self) -> None:
        self._place.chmod(0o777)
        self._home = Path.home() / f".qwed-canary-{self._mark}"
        self._stack.callback(self._home.unlink)
        for path, what in ((self._file, "file"), (self._home, "home"), (self.data / "owner.key", "data")):
            path.parent.mkdir(exist_ok=True)
            path.write_text(self._tokens[what])
            path.chmod(0o644)
        self._left = f"qwed_left_{self._mark}"
        inherited = os.open(self._file, os.O_RDONLY)
        os.set_inheritable(inherited, True)
        self._stack.callback(os.close, inherited)
        os.environ["QWED_CANARY"] = self._tokens["environment"]
        self._stack.callback(os.environ.pop, "QWED_CANARY")
        self._core_pattern = _CORE_PATTERN.read_text()

    @property
    def data(self) -> Path:
        """Data directory with a key."""
        return self._place / "data"

    @property
    def _file(self) -> Path:
        return self._place / f"secret-{self._mark}"

    @property
    def _writable(self) -> Path:
        return self._place / "writable"

    def _listen(self) -> None:
        path = self._place / "socket"
        self._ears = [
            self._ear(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            self._ear(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            self._ear(socket.AF_UNIX, socket.SOCK_STREAM, str(path)),
            self._ear(socket.AF_UNIX, socket.SOCK_STREAM, f"\0qwed-canary-{self._mark}"),
        ]
        path.chmod(0o777)

    def _ear(self, family: int, kind: int, address: Any) -> socket.socket:
        ear = self._stack.enter_context(socket.socket(family, kind))
        ear.bind(address)
        ear.setblocking(False)
        if kind == socket.SOCK_STREAM:
            ear.listen()
        return ear

    def restore(self) -> None:
        """Restore the state before a successful attempt."""
        self._writable.unlink(missing_ok=True)
        self._writable.write_text("untouched")
        self._writable.chmod(0o666)
        if self._victim is None or self._victim.poll() is not None:
            self._end_victim()
            self._victim = self._start_victim()

    def _start_victim(self) -> "subprocess.Popen[str]":
        """Start the victim as the user of the jobs if possible: then only the namespaces separate them."""
        environment = {"ENVIRONMENT": self._tokens["victim"], "MEMORY": self._tokens["memory"]}
        command = [
            str(find_visible_files().python),
            "-I",
            "-c",
            _VICTIM,
            str(JOB_UID),
            str(self._file),
            self._tokens["cmdline"],
        ]
        pipe = subprocess.PIPE
        started = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment, cwd=self._place
        )
        assert started.stdout
        self._address, self._descriptor = map(int, started.stdout.readline().split())
        return started

    def _end_victim(self) -> None:
        if self._victim is not None:
            self._victim.kill()
            self._victim.communicate()

    def program(self, attempt: EscapeAttempt) -> str:
        """Return the attempt with the locations of all canaries, but not their contents."""
        assert self._victim
        at = {
            "file": str(self._file),
            "name": self._file.name,
            "home": str(self._home),
            "data": str(self.data / "owner.key"),
            "writable": str(self._writable),
            "left": self._left,
            "handle": _handle(self._file),
            "victim": self._victim.pid,
            "address": self._address,
            "descriptor": self._descriptor,
            "parent": os.getpid(),
            "here": ctypes.addressof(self._memory),
            "tcp": self._ears[0].getsockname()[1],
            "udp": self._ears[1].getsockname()[1],
            "unix": str(self._place / "socket"),
            "abstract": f"qwed-canary-{self._mark}",
            "neighbour": f"qwed-neighbour-{self._mark}",
        }
        named = {*_CALL.findall(attempt.code)} - _MORE_NUMBERS.keys()
        numbers = _MORE_NUMBERS | {name: refused_call_number(name) for name in sorted(named)}
        return _PRELUDE.format(at=at, numbers=numbers) + attempt.code

    @contextlib.contextmanager
    def neighbour(self, sandbox: Sandbox) -> Iterator[SandboxJob]:
        """Run another job with a secret in the same kind of sandbox at the same time."""
        job = sandbox.start(_NEIGHBOUR.format(token=self._tokens["neighbour"], mark=self._mark), JobLimits(seconds=300))
        try:
            _until(lambda: _runs(f"waiting_neighbour-{self._mark}"))
            yield job
        finally:
            job.cancel()
            job.wait()
            Path(f"/dev/shm/note-{self._mark}").unlink(missing_ok=True)

    def reached(self, outcome: JobOutcome) -> set[str]:
        """Return the signs that an attempt succeeded."""
        output = outcome.stdout + outcome.stderr
        assert self._victim
        signs = {
            "told": any(token in output for token in (*self._tokens.values(), *_of_the_host())),
            "said": "REACHED" in output,
            "called": sum(_heard(ear) for ear in self._ears) > 0,
            "killed": _died(self._victim),
            "changed": self._changed(),
        }
        return {sign for sign, shown in signs.items() if shown}

    def _changed(self) -> bool:
        kept = self._writable.exists() and self._writable.read_text() == "untouched"
        places = [*sys.path, os.path.dirname(str(qwed.__file__)), os.path.dirname(os.__file__)]
        names = [f"{self._left}.pth", f"{self._left}.py", f"__pycache__/{self._left}.pyc"]
        left = any(os.path.exists(f"{place}/{name}") for place in places for name in names)
        return not kept or left or _CORE_PATTERN.read_text() != self._core_pattern

    def close(self) -> None:
        """Remove the canaries."""
        self._end_victim()
        self._stack.close()


_WHAT = ("file", "home", "data", "environment", "victim", "memory", "here", "cmdline", "neighbour")
_CALL = re.compile(r'call\("(\w+)"')
_CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")


def _of_the_host() -> Iterator[str]:
    """Yield host facts that a job may not see: accounts, the repository, the kernel command line."""
    for path in ("/etc/passwd", "/etc/shadow", ROOT / "Makefile", "/proc/cmdline"):
        with contextlib.suppress(PermissionError):
            yield Path(path).read_text().splitlines()[0]


@contextlib.contextmanager
def host() -> Iterator[CanaryHost]:
    """Yield a host for the duration of the attempts, below the shared /tmp."""
    with open_directory() as place:
        made = CanaryHost(place)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """Yield a directory that every user can read."""
    place = Path(tempfile.mkdtemp(prefix="qwed-open-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def namespaces_below(process: int) -> set[str]:
    """Return the pid namespaces, other than ours, of the descendants of a process."""
    return {namespaces for namespaces in map(_namespace, process_tree(process)) if namespaces} - {
        _namespace(os.getpid())
    }


def processes_in(namespaces: set[str]) -> list[int]:
    """Return the live processes in these namespaces, without zombies."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and _namespace(int(name)) in namespaces]
    return [process for process in pids if _state(process) not in "ZX"]


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _namespace(process: int) -> str:
    try:
        return os.readlink(f"/proc/{process}/ns/pid")
    except OSError:
        return ""


def _heard(ear: socket.socket) -> bool:
    try:
        if ear.type == socket.SOCK_DGRAM:
            ear.recv(100)
        else:
            ear.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _died(victim: "subprocess.Popen[str]") -> bool:
    return victim.poll() is not None


def _runs(mark: str) -> bool:
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in Path(file).read_bytes().split(b"\0"):
                return True
    return False


def _until(condition: Any) -> None:
    tick = threading.Event()
    for _ in range(6000):
        if condition():
            return
        tick.wait(0.01)
    raise AssertionError("it did not come to be")


def _handle(path: Path) -> tuple[int, str]:
    """Return the device and inode identity of a file."""
    size, mount = 128, ctypes.c_int()
    handle = ctypes.create_string_buffer(size.to_bytes(4, "little") + bytes(4 + size))
    ctypes.CDLL(None).name_to_handle_at(-100, str(path).encode(), handle, ctypes.byref(mount), 0)
    length = int.from_bytes(handle.raw[:4], "little")
    return int.from_bytes(handle.raw[4:8], "little"), handle.raw[8 : 8 + length].hex()

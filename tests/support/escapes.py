"""Attempts to escape from the sandbox, the canaries they look for on a real host, and what they reached."""

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
from qwed_mcp.sandbox import Job, Limits, Outcome, Sandbox
from qwed_mcp.sandbox.choice import UID
from qwed_mcp.sandbox.syscalls import number_of
from qwed_mcp.sandbox.usage import processes_below
from qwed_mcp.sandbox.view import view
from tests.support.tables import DATA

ROOT = Path(__file__).parents[2]
SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program that prints what it reaches, or does it."""

    kind: str
    name: str
    quick: bool
    """Whether it is part of every run of the tests."""
    sign: str
    """How it shows that it came through: `told` a canary, `said` so, `called` a socket, `killed`, `changed`; or it is
    to be `held` to a limit."""
    outside: str
    """Whether it comes through without a sandbox: `yes`, as `root`, or `no` with the reason why that is not tried."""
    seconds: float
    code: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"

    @property
    def tried_outside(self) -> bool:
        """Whether this test process can show that the attempt is a real one."""
        return self.outside == "yes" or (self.outside == "root" and os.geteuid() == 0)


def attempts() -> list[Attempt]:
    """Every attempt under tests/data/escapes: `=== name | sign | outside | seconds=N`, then the program."""
    return [found for file in sorted((DATA / "escapes").glob("*.txt")) for found in _read(file)]


def _read(file: Path) -> Iterator[Attempt]:
    for part in file.read_text().split("=== ")[1:]:
        head, _, code = part.partition("\n")
        name, sign, outside, *more = head.split(" | ")
        seconds = float(more[0].removeprefix("seconds=")) if more else SECONDS
        yield Attempt(file.stem, name.removeprefix("* "), name.startswith("* "), sign, outside, seconds, code)


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


class Host:
    """A host with canaries: secrets in files, in memory, in environments and in another job; sockets; a process."""

    def __init__(self, place: Path) -> None:
        self._mark = secrets.token_hex(8)
        self._place = place
        self._tokens = {what: f"canary-{what}-{secrets.token_hex(8)}" for what in _WHAT}
        self._stack = contextlib.ExitStack()
        self._memory = ctypes.create_string_buffer(self._tokens["here"].encode())
        self._plant()
        self._listen()
        self._victim: subprocess.Popen[str] | None = None
        self.mend()

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
        """A data directory with a key."""
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

    def mend(self) -> None:
        """As it was before an attempt came through."""
        self._writable.unlink(missing_ok=True)
        self._writable.write_text("untouched")
        self._writable.chmod(0o666)
        if self._victim is None or self._victim.poll() is not None:
            self._end_victim()
            self._victim = self._start_victim()

    def _start_victim(self) -> "subprocess.Popen[str]":
        """With the user of the jobs where that can be: then nothing but the namespaces keeps them apart."""
        environment = {"ENVIRONMENT": self._tokens["victim"], "MEMORY": self._tokens["memory"]}
        command = [str(view().python), "-I", "-c", _VICTIM, str(UID), str(self._file), self._tokens["cmdline"]]
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

    def program(self, attempt: Attempt) -> str:
        """The attempt, told where everything is and not what is in it."""
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
        numbers = _MORE_NUMBERS | {name: number_of(name) for name in sorted(named)}
        return _PRELUDE.format(at=at, numbers=numbers) + attempt.code

    @contextlib.contextmanager
    def neighbour(self, sandbox: Sandbox) -> Iterator[Job]:
        """Another job with a secret, in the same kind of sandbox at the same time."""
        job = sandbox.start(_NEIGHBOUR.format(token=self._tokens["neighbour"], mark=self._mark), Limits(seconds=300))
        try:
            _until(lambda: _runs(f"waiting_neighbour-{self._mark}"))
            yield job
        finally:
            job.cancel()
            job.wait()
            Path(f"/dev/shm/note-{self._mark}").unlink(missing_ok=True)

    def reached(self, outcome: Outcome) -> set[str]:
        """The signs that an attempt came through."""
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
        """Take the canaries away."""
        self._end_victim()
        self._stack.close()


_WHAT = ("file", "home", "data", "environment", "victim", "memory", "here", "cmdline", "neighbour")
_CALL = re.compile(r'call\("(\w+)"')
_CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")


def _of_the_host() -> Iterator[str]:
    """What is on every host and no business of a job: accounts, the repository, how the kernel was started."""
    for path in ("/etc/passwd", "/etc/shadow", ROOT / "Makefile", "/proc/cmdline"):
        with contextlib.suppress(PermissionError):
            yield Path(path).read_text().splitlines()[0]


@contextlib.contextmanager
def host() -> Iterator[Host]:
    """The host, for as long as the attempts take; below the /tmp that everybody sees."""
    with open_directory() as place:
        made = Host(place)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that every user can read."""
    place = Path(tempfile.mkdtemp(prefix="qwed-open-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def namespaces_below(process: int) -> set[str]:
    """The pid namespaces, other than ours, of the processes that descend from one."""
    return {found for found in map(_namespace, processes_below(process)) if found} - {_namespace(os.getpid())}


def processes_in(namespaces: set[str]) -> list[int]:
    """Whoever is alive in one of them; a process that is dead and not yet asked how it ended is not."""
    found = [int(name) for name in os.listdir("/proc") if name.isdigit() and _namespace(int(name)) in namespaces]
    return [process for process in found if _state(process) not in "ZX"]


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
    """What the kernel knows a file by."""
    size, mount = 128, ctypes.c_int()
    found = ctypes.create_string_buffer(size.to_bytes(4, "little") + bytes(4 + size))
    ctypes.CDLL(None).name_to_handle_at(-100, str(path).encode(), found, ctypes.byref(mount), 0)
    length = int.from_bytes(found.raw[:4], "little")
    return int.from_bytes(found.raw[4:8], "little"), found.raw[8 : 8 + length].hex()

"""Reader of strace's output: the deeds of each command, whatever it printed."""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

CALLS = (
    "execve,execveat,connect,sendto,sendmsg,unlink,unlinkat,rmdir,rename,renameat,renameat2,"
    "mkdir,mkdirat,mknod,mknodat,link,linkat,symlink,symlinkat,truncate,chmod,fchmodat,chown,lchown,fchownat,"
    "kill,tgkill,tkill,mount,umount2,sethostname,settimeofday,clock_settime,reboot,init_module,finit_module,ptrace,"
    "setxattr,lsetxattr,swapon,swapoff,setns,unshare,pivot_root,chroot,bpf,add_key,keyctl"
)
COMMAND = [
    *("strace", "-f", "--seccomp-bpf", "-qqq", "-s", "400", "-e", f"trace={CALLS}", "-e", "signal=none"),
]
_LINE = re.compile(rb"^(\d+) +(.*)$")
_RESUMED = re.compile(rb"^<\.\.\. \w+ resumed>(.*)$")
_CALL = re.compile(rb"^(\w+)\((.*)\) += (-?\d+|\?)(?: (E\w+))?")
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_MARKER = b'unlink("/marker/'
_REFUSED = frozenset({b"EROFS", b"EACCES", b"EPERM", b"EBUSY", b"ENOTEMPTY", b"EISDIR", b"ENOTDIR", b"EEXIST"})
_REMOVALS = frozenset({b"unlink", b"unlinkat", b"rmdir"})
_CHANGES = frozenset(
    (
        b"rename renameat renameat2 mkdir mkdirat mknod mknodat link linkat symlink symlinkat truncate chmod fchmodat "
        b"chown lchown fchownat setxattr lsetxattr"
    ).split()
)
_SIGNALS = frozenset({b"kill", b"tgkill", b"tkill"})
_EXECUTIONS = frozenset({b"execve", b"execveat"})
_CONNECTIONS = frozenset({b"connect", b"sendto", b"sendmsg"})


class Execution(NamedTuple):
    """Program that was started, and its arguments."""

    path: str
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(slots=True)
class Deeds:
    """System calls of one command that reach outside it."""

    executed: list[Execution] = field(default_factory=list)
    attempts: list[tuple[str, str]] = field(default_factory=list)
    """Refused changes, connections, lookups of names, signals, administration: the kind with its object, which for a
    lookup is the program."""


def read(lines: Iterable[bytes]) -> dict[int, Deeds]:
    """Return the deeds of each command by its index."""
    deeds: dict[int, Deeds] = {}
    programs: dict[bytes, str] = {}
    current: Deeds | None = None
    worker = b""
    for process, call in _whole_lines(lines):
        if call.startswith(_MARKER):
            number = call[len(_MARKER) :].partition(b'"')[0]
            worker, programs = process, {}
            current = deeds.setdefault(int(number), Deeds()) if number.isdigit() else None
        elif current is not None and process != worker:
            _add(current, programs, process, call)
    return deeds


def _whole_lines(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield process and call, with interrupted calls put together."""
    unfinished: dict[bytes, bytes] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        process, call = match.groups()
        resumed = _RESUMED.match(call)
        if resumed:
            yield process, unfinished.pop(process, b"") + resumed[1]
        elif call.endswith(b"<unfinished ...>"):
            unfinished[process] = call.removesuffix(b"<unfinished ...>")
        else:
            yield process, call


def _add(deeds: Deeds, programs: dict[bytes, str], process: bytes, text: bytes) -> None:
    match = _CALL.match(text)
    if match is None:
        return
    name, arguments, result, error = match.groups()
    if name in _EXECUTIONS:
        if result == b"0":
            execution = _execution(arguments)
            programs[process] = execution.name
            deeds.executed.append(execution)
    elif name in _CONNECTIONS:
        _add_connection(deeds, programs.get(process) or _latest(deeds), arguments)
    elif name in _SIGNALS:
        _add_signal(deeds, programs.get(process) or _latest(deeds), arguments)
    elif name in _REMOVALS or name in _CHANGES:
        if error in _REFUSED and not (error == b"EEXIST" and name.startswith(b"mkdir")):
            deeds.attempts.append(("delete" if name in _REMOVALS else "write", _first_string(arguments)))
    else:
        deeds.attempts.append(("admin", name.decode()))


def _latest(deeds: Deeds) -> str:
    """Return the program a thread most likely belongs to."""
    return deeds.executed[-1].name if deeds.executed else "bash"


def _add_connection(deeds: Deeds, program: str, arguments: bytes) -> None:
    change = _KERNEL_CHANGE.search(arguments)
    if change and not _KERNEL_PROBE.search(arguments):
        deeds.attempts.append(("admin", change[1].decode()))
    elif b"sa_family=AF_INET" in arguments:
        address = re.search(rb'sin6?_port=htons\((\d+)\).*?"([^"]*)"', arguments)
        is_lookup = address is not None and address[1] == b"53"
        target = b":".join(address.groups()[::-1]).decode() if address else "?"
        deeds.attempts.append(("lookup", program) if is_lookup else ("network", target))
    elif b"sa_family=AF_UNIX" in arguments:
        path = _first_string(arguments)
        if "nscd" not in path:
            deeds.attempts.append(("socket", path))


_KERNEL_CHANGE = re.compile(rb"nlmsg_type=(RTM_(?:NEW|DEL|SET)\w+)")


# A change of no interface, which is not to be created either: `ip link` asks so whether the kernel knows the request.
_KERNEL_PROBE = re.compile(
    rb"nlmsg_type=RTM_NEWLINK, nlmsg_flags=NLM_F_REQUEST\|NLM_F_ACK, [^{}]*\}, \{[^{}]*ifi_index=0, [^{}]*\}\]"
)


def _add_signal(deeds: Deeds, program: str, arguments: bytes) -> None:
    words = arguments.split(b", ")
    if words[-1] != b"0" and program not in ("timeout", "python3"):
        deeds.attempts.append(("signal", arguments.decode()))


def _execution(arguments: bytes) -> Execution:
    path = _first_string(arguments)
    start, end = arguments.find(b"["), arguments.rfind(b"]")
    words = tuple(_decode(match[1]) for match in _STRING.finditer(arguments[start : end + 1]))
    return Execution(path, words)


def _first_string(arguments: bytes) -> str:
    match = _STRING.search(arguments)
    return _decode(match[1]) if match else ""


def _decode(text: bytes) -> str:
    raw = codecs.escape_decode(text)[0]
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)

"""Seccomp filter of a job: system calls that computing does not need are refused.

Namespaces hide the host's files, network and processes. The filter removes parts of the kernel that a verification
program never uses and that exploits start with, and calls that reach past namespaces (AF_VSOCK, keyrings).
"""

import errno
import platform
import struct
from collections.abc import Iterable
from typing import NamedTuple

from qwed.model.data_files import read_rows


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


REFUSED_CALLS = {
    name: (_number(on_x86_64), _number(on_aarch64))
    for name, on_x86_64, on_aarch64 in read_rows(__file__, "refused_calls.txt", 3)
}
"""Numbers of the refused calls on x86_64 and on aarch64; None where the architecture has no such call."""

_CLONE3 = 435
_NEWEST_CALL = 462
"""Newest system call that was reviewed; newer calls are refused."""

_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _AND, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
# Offsets in struct seccomp_data; both machines are little-endian, so the low half of an argument comes first.
_NUMBER, _MACHINE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40

_AF_UNIX = 1
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* that clone takes
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_HUGE_PAGES = 0x40000  # MAP_HUGETLB: a limited resource of the host, reserved for other programs
_SHARED_ANONYMOUS = 0x21  # MAP_SHARED | MAP_ANONYMOUS: counts for no process once unmapped, and for no file
# Unlimited record and open-file-description locks on the host's files; leases; change notifications.
_FILE_LOCK_COMMANDS = (6, 7, 37, 38, 1024, 1026)
# SO_SNDBUF, SO_SNDBUFFORCE: memory accounting assumes the default buffer; four ways to attach a BPF program.
_REFUSED_SOCKET_OPTIONS = (7, 32, 26, 50, 51, 52)
_X32 = 0x40000000


class _Machine(NamedTuple):
    audit: int
    column: int
    clone: int
    fcntl: int
    ioctl: int
    mmap: int
    setsockopt: int
    sockets: tuple[int, int]


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 0, 56, 72, 16, 9, 54, (41, 53)),
    "aarch64": _Machine(0xC00000B7, 1, 220, 25, 29, 222, 208, (198, 199)),
}


def refused_call_number(name: str, machine: str = platform.machine()) -> int | None:
    """Return the number of a refused call, or None if this machine has no such call."""
    row = REFUSED_CALLS.get(name)
    return row and row[_MACHINES[machine].column]


def seccomp_filter(machine: str = platform.machine()) -> bytes | None:
    """Return the program for `bwrap --seccomp`, or None if the call numbers of this machine are not known."""
    numbers = _MACHINES.get(machine)
    if numbers is None:
        return None
    refused = [row[numbers.column] for row in REFUSED_CALLS.values()]
    return b"".join(
        [
            _instruction(_LOAD, _MACHINE),
            _instruction(_JUMP_EQUAL, numbers.audit, 1, 0),
            _instruction(_RETURN, _KILL_PROCESS),
            _instruction(_LOAD, _NUMBER),
            # The x32 ABI, in which the numbers mean other calls.
            *_return_if(_JUMP_ANY_BIT, _X32, _KILL_PROCESS),
            *_return_if(_JUMP_ABOVE, _NEWEST_CALL, _ERRNO | errno.ENOSYS),
            # The flags of clone3 are behind a pointer; on ENOSYS the C library uses clone, whose flags can be tested.
            *_return_if(_JUMP_EQUAL, _CLONE3, _ERRNO | errno.ENOSYS),
            *_refuse_all(call for call in refused if call is not None),
            *_test_argument(numbers.clone, _FIRST, *_return_if(_JUMP_ANY_BIT, _NEW_NAMESPACES, _ERRNO | errno.EPERM)),
            *_test_argument(numbers.ioctl, _SECOND, *_refuse_all(_TERMINAL_INJECTION)),
            *_test_argument(numbers.fcntl, _SECOND, *_refuse_all(_FILE_LOCK_COMMANDS)),
            *_test_argument(numbers.setsockopt, _THIRD, *_refuse_all(_REFUSED_SOCKET_OPTIONS)),
            *_test_argument(numbers.mmap, _FOURTH, *_MMAP_TESTS),
            *(step for number in numbers.sockets for step in _test_argument(number, _FIRST, *_ONLY_UNIX)),
            _instruction(_RETURN, _ALLOW),
        ]
    )


def _instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)


def _return_if(test: int, value: int, answer: int) -> tuple[bytes, bytes]:
    return _instruction(test, value, 0, 1), _instruction(_RETURN, answer)


def _refuse(number: int) -> tuple[bytes, bytes]:
    return _return_if(_JUMP_EQUAL, number, _ERRNO | errno.EPERM)


def _refuse_all(numbers: Iterable[int]) -> tuple[bytes, ...]:
    return tuple(step for number in numbers for step in _refuse(number))


def _test_argument(number: int, offset: int, *tests: bytes) -> list[bytes]:
    """Return the tests of one argument of a call; what they do not refuse is allowed."""
    body = [_instruction(_LOAD, offset), *tests, _instruction(_RETURN, _ALLOW)]
    return [_instruction(_JUMP_EQUAL, number, 0, len(body)), *body]


_ONLY_UNIX = (_instruction(_JUMP_EQUAL, _AF_UNIX, 1, 0), _instruction(_RETURN, _ERRNO | errno.EAFNOSUPPORT))
_MMAP_TESTS = (
    *_return_if(_JUMP_ANY_BIT, _HUGE_PAGES, _ERRNO | errno.EPERM),
    _instruction(_AND, _SHARED_ANONYMOUS),
    *_refuse(_SHARED_ANONYMOUS),
)

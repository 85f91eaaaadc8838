"""Seccomp filter of a job: system calls that computing does not need are refused.

Namespaces hide the host's files, network and processes. The filter removes parts of the kernel that a verification
program never uses and that exploits start with, and calls that reach past namespaces (AF_VSOCK, keyrings).
"""

import errno
import platform
import struct
from collections.abc import Iterable
from typing import NamedTuple

_COMMON_NUMBERS = {  # numbers from 424 on are the same everywhere
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "set_mempolicy_home_node": 450,
}

# name: x86_64, aarch64; None where the architecture has no such call.
_MACHINE_NUMBERS: dict[str, tuple[int, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "epoll_create": (213, None),  # its watches count for all processes of the user, outside too; poll is available
    "epoll_create1": (291, 20),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "finit_module": (313, 273),
    "flock": (73, 32),  # visible files are the host's own, and so are their locks
    "fsetxattr": (190, 7),
    "init_module": (175, 105),
    "inotify_init": (253, None),  # reveals the host's activity on visible files
    "inotify_init1": (294, 26),
    "ioperm": (173, None),
    "iopl": (172, None),
    "io_setup": (206, 0),  # its limit is shared by the whole host
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "lsetxattr": (189, 6),
    "mbind": (237, 235),
    "memfd_create": (319, 279),  # memory that counts for no file system and no process
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "set_mempolicy": (238, 237),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setxattr": (188, 5),  # access control lists are memory that the file system does not count
    "settimeofday": (164, 170),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),  # not counted while it is not attached
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sync": (162, 81),  # makes the host flush all its caches
    "syncfs": (306, 267),
    "_sysctl": (156, None),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}

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
    row = _MACHINE_NUMBERS.get(name)
    return _COMMON_NUMBERS.get(name) if row is None else row[_MACHINES[machine].column]


def seccomp_filter(machine: str = platform.machine()) -> bytes | None:
    """Return the program for `bwrap --seccomp`, or None if the call numbers of this machine are not known."""
    numbers = _MACHINES.get(machine)
    if numbers is None:
        return None
    refused = [*_COMMON_NUMBERS.values(), *(row[numbers.column] for row in _MACHINE_NUMBERS.values())]
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

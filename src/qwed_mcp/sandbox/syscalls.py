"""Which system calls a job is refused, as a program for the kernel: what is not needed to compute is not there.

Namespaces take away the host's files, network and processes; this takes away the parts of the kernel that a program of
a verification never uses and that breakouts begin with, and what reaches past namespaces (AF_VSOCK, keyrings).
"""

import errno
import platform
import struct
from collections.abc import Iterable
from typing import NamedTuple

_BOTH = {  # numbers from 424 on are the same everywhere
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
_EACH: dict[str, tuple[int, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "epoll_create": (213, None),  # what it watches is counted for all processes of a user, outside too; poll is there
    "epoll_create1": (291, 20),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "finit_module": (313, 273),
    "flock": (73, 32),  # the files that are shown are the host's own, and so are their locks
    "fsetxattr": (190, 7),
    "init_module": (175, 105),
    "inotify_init": (253, None),  # tells what the host does with the files that are shown
    "inotify_init1": (294, 26),
    "ioperm": (173, None),
    "iopl": (172, None),
    "io_setup": (206, 0),  # its limit is one for the whole host
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "lsetxattr": (189, 6),
    "mbind": (237, 235),
    "memfd_create": (319, 279),  # memory that no limit of a file system and no process counts
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
    "setxattr": (188, 5),  # a list of who may read a file is memory that its file system does not count
    "settimeofday": (164, 170),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),  # counted by nobody while it is not attached
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sync": (162, 81),  # has the host write out everything it holds
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
_NEWEST = 462
"""A call that is younger than this page is not there: nobody has judged it."""

_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _AND, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
# Where struct seccomp_data has them; both machines are little-endian, so the low half of an argument comes first.
_NUMBER, _MACHINE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40

_AF_UNIX = 1
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* that clone takes
_TYPING_FOR_ANOTHER = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_HUGE_PAGES = 0x40000  # MAP_HUGETLB: the host has so many of them, for whoever they were set aside
_NOBODYS = 0x21  # MAP_SHARED | MAP_ANONYMOUS: stays when it is no longer in any process, and is in no file
# Locks on the host's files, as many as one likes, by record and by description; leases; being told of changes.
_ON_FILES = (6, 7, 37, 38, 1024, 1026)
# SO_SNDBUF, SO_SNDBUFFORCE: the room of a socket is what is counted for it; programs for the kernel, in four kinds.
_ON_SOCKETS = (7, 32, 26, 50, 51, 52)
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


def number_of(name: str, machine: str = platform.machine()) -> int | None:
    """What a call that is refused is asked by."""
    row = _EACH.get(name)
    return _BOTH.get(name) if row is None else row[_MACHINES[machine].column]


def filter_of(machine: str = platform.machine()) -> bytes | None:
    """The program for `bwrap --seccomp`, or None where the numbers of this machine are not known."""
    found = _MACHINES.get(machine)
    if found is None:
        return None
    refused = [*_BOTH.values(), *(row[found.column] for row in _EACH.values())]
    return b"".join(
        [
            _step(_LOAD, _MACHINE),
            _step(_JUMP_EQUAL, found.audit, 1, 0),
            _step(_RETURN, _KILL_PROCESS),
            _step(_LOAD, _NUMBER),
            # Another way into the same kernel, in which every number means something else.
            *_when(_JUMP_ANY_BIT, _X32, _KILL_PROCESS),
            *_when(_JUMP_ABOVE, _NEWEST, _ERRNO | errno.ENOSYS),
            # Its flags are behind a pointer; without it the C library asks clone, whose flags can be read.
            *_when(_JUMP_EQUAL, _CLONE3, _ERRNO | errno.ENOSYS),
            *_refuse_each(number for number in refused if number is not None),
            *_decide(found.clone, _FIRST, *_when(_JUMP_ANY_BIT, _NEW_NAMESPACES, _ERRNO | errno.EPERM)),
            *_decide(found.ioctl, _SECOND, *_refuse_each(_TYPING_FOR_ANOTHER)),
            *_decide(found.fcntl, _SECOND, *_refuse_each(_ON_FILES)),
            *_decide(found.setsockopt, _THIRD, *_refuse_each(_ON_SOCKETS)),
            *_decide(found.mmap, _FOURTH, *_COUNTED),
            *(step for number in found.sockets for step in _decide(number, _FIRST, *_ONLY_UNIX)),
            _step(_RETURN, _ALLOW),
        ]
    )


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)


def _when(test: int, value: int, answer: int) -> tuple[bytes, bytes]:
    return _step(test, value, 0, 1), _step(_RETURN, answer)


def _refuse(number: int) -> tuple[bytes, bytes]:
    return _when(_JUMP_EQUAL, number, _ERRNO | errno.EPERM)


def _refuse_each(numbers: Iterable[int]) -> tuple[bytes, ...]:
    return tuple(step for number in numbers for step in _refuse(number))


def _decide(number: int, place: int, *tests: bytes) -> list[bytes]:
    """The tests of one call's argument; what they do not refuse is allowed."""
    decided = [_step(_LOAD, place), *tests, _step(_RETURN, _ALLOW)]
    return [_step(_JUMP_EQUAL, number, 0, len(decided)), *decided]


_ONLY_UNIX = (_step(_JUMP_EQUAL, _AF_UNIX, 1, 0), _step(_RETURN, _ERRNO | errno.EAFNOSUPPORT))
_COUNTED = (
    *_when(_JUMP_ANY_BIT, _HUGE_PAGES, _ERRNO | errno.EPERM),
    _step(_AND, _NOBODYS),
    *_refuse(_NOBODYS),
)

"""Seccomp filter, run by a BPF interpreter for both machines."""

import errno
import struct

import pytest

from qwed_mcp.sandbox.seccomp import REFUSED_CALLS, refused_call_number, seccomp_filter

ALLOW, KILL = 0x7FFF0000, 0x80000000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# read, write, openat, execve, futex, mmap, wait4, and what threads and event loops need
ORDINARY = {
    "x86_64": (0, 1, 257, 59, 202, 9, 61, 56, 20, 230, 7, 288, 334),
    "aarch64": (63, 64, 56, 221, 98, 222, 260, 220, 66, 115, 73, 242, 293),
}
SOCKETS = {"x86_64": (41, 53), "aarch64": (198, 199)}
CLONE = {"x86_64": 56, "aarch64": 220}
IOCTL = {"x86_64": 16, "aarch64": 29}

each_machine = pytest.mark.parametrize("machine", AUDIT)


def refused(code: int) -> int:
    return 0x00050000 | code


def answer(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Return the filter's result: an interpreter of the classic BPF instructions that it uses."""
    padded = [*arguments, *([0] * (6 - len(arguments)))]
    data = struct.pack("<IIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *padded)
    program = seccomp_filter(machine)
    assert program is not None
    steps = [*struct.iter_unpack("<HBBI", program)]
    index, accumulator = 0, 0
    while True:
        code, then, otherwise, value = steps[index]
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
            index += 1
        elif code == 0x54:
            accumulator &= value
            index += 1
        elif code == 0x06:
            return int(value)
        else:
            true = {0x15: accumulator == value, 0x25: accumulator > value, 0x45: bool(accumulator & value)}[code]
            index += 1 + (then if true else otherwise)


@each_machine
def test_what_every_program_needs_is_allowed(machine: str) -> None:
    assert {answer(machine, number) for number in ORDINARY[machine]} == {ALLOW}


@each_machine
def test_every_call_of_the_table_is_refused(machine: str) -> None:
    numbers = [refused_call_number(name, machine) for name in REFUSED_CALLS]
    defined = [number for number in numbers if number is not None]
    assert len(defined) == len({*defined}) > 60
    assert {answer(machine, number) for number in defined} == {refused(errno.EPERM)}


@each_machine
def test_sockets_are_of_this_host_only(machine: str) -> None:
    for number in SOCKETS[machine]:
        assert answer(machine, number, 1, 1, 0) == ALLOW
        assert {answer(machine, number, family, 1, 0) for family in (0, 2, 10, 16, 17, 38, 40, 1 << 31)} == {
            refused(errno.EAFNOSUPPORT)
        }


@each_machine
def test_a_child_is_allowed_and_a_namespace_is_not(machine: str) -> None:
    clone = CLONE[machine]
    assert answer(machine, clone, 17) == answer(machine, clone, 0x3D0F00) == ALLOW
    new = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
    assert {answer(machine, clone, flag | 17) for flag in new} == {refused(errno.EPERM)}
    assert answer(machine, 435) == refused(errno.ENOSYS)


@each_machine
def test_typing_for_another_is_refused_whatever_the_upper_half_says(machine: str) -> None:
    assert answer(machine, IOCTL[machine], 0, 0x5401) == ALLOW
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 0xFFFFFFFF << 32):
        assert answer(machine, IOCTL[machine], 0, request) == refused(errno.EPERM)


@each_machine
def test_another_machine_and_another_numbering_end_the_process(machine: str) -> None:
    other = next(audit for name, audit in AUDIT.items() if name != machine)
    assert answer(machine, 0, audit=other) == answer(machine, 0, audit=0x40000003) == KILL
    assert answer(machine, 0x40000000 + 39) == KILL


@each_machine
def test_a_call_nobody_has_judged_is_not_there(machine: str) -> None:
    assert answer(machine, 463) == answer(machine, 1000) == refused(errno.ENOSYS)


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert seccomp_filter("riscv64") is None

"""Engine that misbehaves as the query asks: every forbidden behaviour, and a few allowed ones."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from qwed.engines.protocol import EngineRequest
from qwed.model import Effect, EffectKind, Status, Verdict

NAME = "misbehaving"
_leaked: list[bytes] = []


def _hang(_: EngineRequest) -> dict[str, Any]:
    while True:
        signal.pause()


def _burn(_: EngineRequest) -> dict[str, Any]:
    while True:
        pass


def _write_pid_and_hang(request: EngineRequest) -> dict[str, Any]:
    with open(request.parameters["fifo"], "w") as fifo:
        fifo.write(str(os.getpid()))
    return _hang(request)


def _sleep(request: EngineRequest) -> dict[str, Any]:
    time.sleep(request.parameters["seconds"])
    return {}


def _write_pid(request: EngineRequest) -> dict[str, Any]:
    with open(request.parameters["fifo"], "w") as fifo:
        fifo.write(str(os.getpid()))
    return {"pid": os.getpid()}


def _burn_ignoring_signals(_: EngineRequest) -> dict[str, Any]:
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    while True:
        pass


def _exhaust_memory(_: EngineRequest) -> dict[str, Any]:
    while True:
        _leaked.append(b"x" * (16 << 20))


def _exhaust_native_memory(_: EngineRequest) -> dict[str, Any]:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    while (block := libc.malloc(16 << 20)) is not None:
        ctypes.memset(block, 1, 16 << 20)
    os.abort()


def _grow(request: EngineRequest) -> dict[str, Any]:
    _leaked.append(b"x" * int(request.parameters["bytes"]))
    return {"pid": os.getpid()}


def _write_everywhere(_: EngineRequest) -> dict[str, Any]:
    for descriptor in range(64):
        try:
            os.write(descriptor, b"\xff\x00garbage{}" * 10)
        except OSError:
            continue
    return {}


def _claim_a_huge_frame(_: EngineRequest) -> dict[str, Any]:
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\x7f\xff\xff\xff" + b"x" * 1000)
        except OSError:
            continue
    return _hang(_)


def _answer_twice(request: EngineRequest) -> dict[str, Any]:
    if os.fork() == 0:
        return {"who": "child"}
    return {"who": "parent"}


def _leave_a_child(_: EngineRequest) -> dict[str, Any]:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.write(write_end, b".")
        _hang(_)
    os.read(read_end, 1)
    os.abort()


def _daemonise(_: EngineRequest) -> dict[str, Any]:
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        grandchild = os.fork()
        if grandchild == 0:
            _hang(_)
        os.write(write_end, b"%d" % grandchild)
        os._exit(0)
    return {"pid": int(os.read(read_end, 20)), "worker": os.getpid()}


def _descriptors(_: EngineRequest) -> dict[str, Any]:
    listed = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            listed[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return listed


def _print(_: EngineRequest) -> dict[str, Any]:
    print("to stdout", flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    return {"read": sys.stdin.read()}


def _write_a_file(request: EngineRequest) -> dict[str, Any]:
    try:
        with open(request.parameters["path"], "w") as file:
            file.write("x")
    except OSError as error:
        return {"refused": error.strerror}
    return {}


def _open_many(_: EngineRequest) -> dict[str, Any]:
    opened: list[int] = []
    try:
        while len(opened) < 1000:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        return {"refused": error.strerror}
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return {}


def _limits(_: EngineRequest) -> dict[str, Any]:
    with open("/proc/self/limits") as limits, open("/proc/self/oom_score_adj") as score:
        return {"limits": limits.read(), "oom": score.read().strip()}


class _UnexpectedError(Exception):
    """Exception type that no engine declares."""


def _raise(request: EngineRequest) -> dict[str, Any]:
    raise _UnexpectedError("a secret in the text")


def _leave(_: EngineRequest) -> dict[str, Any]:
    sys.exit(3)


def _leave_at_once(_: EngineRequest) -> dict[str, Any]:
    os._exit(0)


def _abort(_: EngineRequest) -> dict[str, Any]:
    os.abort()


def _segfault(_: EngineRequest) -> dict[str, Any]:
    return {"read": ctypes.string_at(0)}


def _recurse(request: EngineRequest) -> dict[str, Any]:
    return _recurse(request)


BEHAVIOURS: dict[str, Callable[[EngineRequest], dict[str, Any]]] = {
    "abort": _abort,
    "answer twice": _answer_twice,
    "answer with a set": lambda _: {"set": {object()}},
    "answer with too much": lambda _: {"text": "x" * (5 << 20)},
    "answer with much": lambda _: {"text": "x" * (3 << 20)},
    "answer with half a pair": lambda _: {"text": "\ud800"},
    "burn": _burn,
    "burn deaf": _burn_ignoring_signals,
    "claim a huge frame": _claim_a_huge_frame,
    "daemonise": _daemonise,
    "descriptors": _descriptors,
    "eat": _exhaust_memory,
    "eat natively": _exhaust_native_memory,
    "echo": lambda request: {"echo": dict(request.parameters), "code": request.code},
    "environment": lambda _: dict(os.environ),
    "grow": _grow,
    "hang": _hang,
    "hash": lambda _: {"hash": hash("a word"), "path": sys.path, "directory": os.getcwd()},
    "leave": _leave,
    "leave a child": _leave_a_child,
    "leave at once": _leave_at_once,
    "limits": _limits,
    "nap": _sleep,
    "open many": _open_many,
    "pid": lambda _: {"pid": os.getpid()},
    "policy": lambda request: {"tables": request.policy.allowed_tables, "rows": request.policy.max_rows},
    "print": _print,
    "raise": _raise,
    "recurse": _recurse,
    "segfault": _segfault,
    "tell": _write_pid,
    "tell and hang": _write_pid_and_hang,
    "write a file": _write_a_file,
    "write everywhere": _write_everywhere,
}


def verify(request: EngineRequest) -> Verdict:
    """Run the behaviour that the query names, and return VERIFIED if it returns."""
    if request.query == "answer with nothing":
        return None  # type: ignore[return-value]
    if request.query == "answer for another":
        return Verdict(status=Status.VERIFIED, engine="math")
    result = BEHAVIOURS[request.query](request)
    return Verdict(
        status=Status.VERIFIED, engine=NAME, effects=(Effect(EffectKind.READ, "x"),), message="done", result=result
    )

"""Main loop of a worker process: isolate, apply limits, answer requests."""

import ctypes
import math
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from qwed.engines._pool.frames import MAX_ANSWER, MAX_REQUEST, pack, receive
from qwed.engines._pool.messages import HELLO, WorkerReply, WorkerRequest, decode_requests, encode
from qwed.engines.protocol import EngineRequest
from qwed.model import Verdict

Verify = Callable[[EngineRequest], Verdict]

REQUESTS_PER_WORKER = 1_000
OPEN_FILES = 32
BATCH_SECONDS = 0.02
"""Seconds after which no further request of a batch is started: another owner may be waiting."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> None:
    """Set a process attribute, as prctl(2)."""
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def become_worker(channel: socket.socket, zygote: int, memory: int) -> None:
    """Close everything but `channel`, apply the limits, and send the hello message."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != zygote:
        os._exit(0)
    _close_other_descriptors(channel.fileno())
    _prefer_for_oom_kill()
    _limit(memory)
    me = os.getpid()
    handle = os.pidfd_open(me)
    socket.send_fds(channel, [HELLO.pack(me)], [handle])
    os.close(handle)


def _close_other_descriptors(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    for listed in os.listdir("/proc/self/fd"):
        if int(listed) not in {0, 1, 2, descriptor}:
            # The listing includes its own descriptor, which is already closed.
            with suppress(OSError):
                os.close(int(listed))


def _prefer_for_oom_kill() -> None:
    """Make the kernel kill this worker before the server when memory runs out."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")


def _limit(memory: int) -> None:
    # RLIMIT_NPROC is not set: it counts every thread of the user, and a solver needs a thread for its timer.
    limits = {
        resource.RLIMIT_AS: _mapped() + memory,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: OPEN_FILES,
    }
    for limit, value in limits.items():
        _, ceiling = resource.getrlimit(limit)
        if ceiling != resource.RLIM_INFINITY:
            value = min(value, ceiling)
        resource.setrlimit(limit, (value, value))


def _mapped() -> int:
    with open("/proc/self/statm", encoding="ascii") as sizes:
        return int(sizes.read().split()[0]) * resource.getpagesize()


def work(channel: socket.socket, engines: Mapping[str, Verify], memory: int) -> None:
    """Answer requests until the pool closes the channel; report an engine's exception and end."""
    me = os.getpid()
    full = _resident() + memory // 2
    number = served = 0
    try:
        while (payload := receive(channel, MAX_REQUEST)) is not None:
            until = math.inf
            for ask in decode_requests(payload):
                number = ask.number
                now = time.monotonic()
                if now > until:
                    _send_reply(channel, WorkerReply(number=number, declined=True))
                    continue
                until = min(until, now + BATCH_SECONDS)
                verdict = _answer(ask, engines)
                if os.getpid() != me:
                    return
                served += 1
                retire = served >= REQUESTS_PER_WORKER or _resident() > full
                # Reply at once, not per batch: the pool must know which request took too long.
                _send_reply(channel, WorkerReply(number=number, verdict=verdict, retire=retire))
    finally:
        raised = sys.exc_info()[0]
        if raised is not None and os.getpid() == me:
            _send_reply(channel, WorkerReply(number=number, error=raised.__name__[:80]))


def _answer(ask: WorkerRequest, engines: Mapping[str, Verify]) -> Verdict:
    _limit_cpu(ask.seconds)
    verdict: Any = engines[ask.engine](ask.request)
    if not isinstance(verdict, Verdict):
        raise TypeError("an engine answers with a Verdict")
    return verdict


def _limit_cpu(seconds: float) -> None:
    """Set a CPU limit as a backstop for the pool's deadline; twice the time, because a solver may use several cores."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + 2 * seconds) + 2
    _, ceiling = resource.getrlimit(resource.RLIMIT_CPU)
    if ceiling == resource.RLIM_INFINITY or soft < ceiling:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, ceiling))


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _send_reply(channel: socket.socket, reply: WorkerReply) -> None:
    channel.sendall(pack(encode(reply), MAX_ANSWER))

"""The pool's end of its processes: the zygote, and each worker the zygote forked."""

import itertools
import math
import os
import select
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress

from qwed.engines._pool.frames import MAX_ANSWER, MAX_REQUEST, FrameError, Frames, pack
from qwed.engines._pool.messages import FORK, HELLO, UNREADABLE, Orders, Reply, decode_reply, together
from qwed.engines._pool.queues import Job
from qwed.engines.table import EngineRow

PRELOAD_SECONDS = 120.0
FORK_SECONDS = 20.0
ENDING_SECONDS = 5.0
PATIENT_SECONDS = 0.04
"""Twice the moment after which a worker begins nothing more of what it was given together."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from qwed.engines._pool.zygote import main; main(sys.argv[1])"
)
_PIECE = 1 << 16


class Lost(Exception):
    """The process is gone, or says what no worker of ours would say."""


def _environment() -> dict[str, str]:
    """Nothing of ours but PATH; a fixed hash seed makes set order, and so every answer, the same in every run."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}


class Zygote:
    """The process that has engines loaded and forks workers, which have them too; it loads first what `load` names."""

    def __init__(self, rows: tuple[EngineRow, ...], memory_mb: int, now: float, load: Collection[str] = ()) -> None:
        self.ready = False
        """Whether it listens: not while it loads an engine."""
        self.loaded: frozenset[str] = frozenset()
        self.loading = frozenset(load)
        self.deadline = now + PRELOAD_SECONDS
        self._names = [row.name for row in rows]
        self.control, theirs = socket.socketpair()
        self.control.setblocking(False)
        path = [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
        orders = Orders(path=path, rows=rows, load=tuple(load), memory_mb=memory_mb, control=theirs.fileno())
        with theirs:
            try:
                self._process = _start(orders)
            except OSError:
                self.control.close()
                raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def listen(self) -> None:
        """Note that it has loaded what it was told to; Lost if the process has ended."""
        try:
            word = self.control.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            raise Lost from None
        if not word:
            raise Lost
        self.ready, self.deadline = True, math.inf
        self.loaded, self.loading = self.loaded | self.loading, frozenset()

    def load(self, engine: str, now: float) -> None:
        """Have it load one more engine, for the workers that it forks from then on; OSError if it cannot be told."""
        self.control.send(bytes([self._names.index(engine)]))
        self.ready, self.deadline = False, now + PRELOAD_SECONDS
        self.loading = frozenset({engine})

    def fork(self) -> socket.socket:
        """The pool's end of the socket a new worker will serve; OSError if it cannot be asked for."""
        mine, theirs = socket.socketpair()
        mine.setblocking(False)
        with theirs:
            try:
                socket.send_fds(self.control, [FORK], [theirs.fileno()])
            except OSError:
                mine.close()
                raise
        return mine

    def end(self, patience: float = ENDING_SECONDS) -> None:
        """Hang up, so that it ends its workers and itself; after `patience` kill it."""
        self.control.close()
        if not self.ready:
            # It loads, and does not listen.
            self._process.terminate()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start(orders: Orders) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter and our own program
        [sys.executable, "-P", "-s", "-c", _BOOT, orders.written()],
        env=_environment(),
        cwd="/",
        pass_fds=[orders.control],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


class Worker:
    """One forked process: starting until it has introduced itself, then idle or busy with what it was given."""

    def __init__(self, channel: socket.socket, now: float) -> None:
        self.channel = channel
        self.stale = False
        """Whether it is to be replaced when it has answered, because the zygote has loaded more since."""
        self.pid = 0
        self.handle = -1
        """A descriptor of the process itself: a process id could come to mean another one."""
        self.jobs: deque[Job] = deque()
        """What it has not answered, in the order in which it does: it works on the first one."""
        self.claim = 0
        """Under which number it has asked for permission to begin, where it must."""
        self.begun = False
        """Whether it may have seen what it was given."""
        self.impatient = math.inf
        """When what waits behind the first of its jobs is given to others."""
        self._late = now + FORK_SECONDS
        self._taken_back: set[Job] = set()
        self._unsent = memoryview(b"")
        self._answers = Frames(MAX_ANSWER)

    @property
    def idle(self) -> bool:
        """Whether it can be given a job."""
        return self.pid != 0 and not self.jobs

    @property
    def sending(self) -> bool:
        """Whether part of the request is still to be sent."""
        return len(self._unsent) > 0

    @property
    def deadline(self) -> float:
        """When it must have said something."""
        if self.pid == 0:
            return self._late
        return self.jobs[0].deadline if self.jobs else math.inf

    def meet(self) -> None:
        """Hear its introduction; Lost if it is none."""
        try:
            hello, handles, _, _ = socket.recv_fds(self.channel, HELLO.size, 1, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            raise Lost from None
        if handles:
            self.handle = handles[0]
        if len(hello) != HELLO.size or not handles:
            raise Lost
        (self.pid,) = HELLO.unpack(hello)

    def give(self, job: Job) -> None:
        """Make `job` its own, behind what it was given and has not begun."""
        self.jobs.append(job)
        self.begun = False

    def begin(self, now: float) -> None:
        """Have what it was given sent with `send`."""
        self._unsent = memoryview(pack(together(job.payload for job in self.jobs), MAX_REQUEST))
        self.impatient = now + PATIENT_SECONDS if len(self.jobs) > 1 else math.inf

    def take_back(self, first: int) -> list[Job]:
        """Its jobs from the `first` on, which are no longer its own: what it says of these is not told."""
        self.impatient = math.inf
        waiting = [job for job in itertools.islice(self.jobs, first, None) if job not in self._taken_back]
        self._taken_back.update(waiting)
        return waiting

    def done(self) -> Job | None:
        """The job it worked on, of which it is rid; None where that was taken back."""
        job = self.jobs.popleft()
        if job not in self._taken_back:
            return job
        self._taken_back.remove(job)
        return None

    def rest(self) -> None:
        """Keep nothing of what it was given."""
        self.jobs.clear()
        self.claim = 0
        self._taken_back.clear()
        self.impatient = math.inf
        self._unsent = memoryview(b"")
        self._answers = Frames(MAX_ANSWER)

    def send(self) -> None:
        """Send as much of the request as fits now; Lost if the process has ended."""
        try:
            self._unsent = self._unsent[self.channel.send(self._unsent) :]
            self.begun = True
        except BlockingIOError:
            return
        except OSError:
            raise Lost from None

    def hear(self) -> Iterator[Reply]:
        """The replies that have come, each to the first of its jobs, which must be `done` before the next one.

        Lost behind them, if the process has ended or said anything else.
        """
        try:
            piece = self.channel.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            raise Lost from None
        if not piece:
            raise Lost
        answers = self._answers
        try:
            for reply in map(decode_reply, answers.feed(piece)):
                if not self.jobs or reply.number != self.jobs[0].number:
                    raise Lost
                yield reply
        except (FrameError, *UNREADABLE):
            raise Lost from None
        if not self.jobs and not answers.empty:
            raise Lost

    def kill(self) -> None:
        """End the process now; the zygote collects it."""
        if self.handle >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def wait_gone(self, seconds: float) -> None:
        """Wait until a killed process has ended."""
        if self.handle >= 0:
            poll = select.poll()
            poll.register(self.handle, select.POLLIN)
            poll.poll(seconds * 1000)

    def close(self) -> None:
        """Let go of its descriptors; an idle process ends by itself when it sees that."""
        self.channel.close()
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

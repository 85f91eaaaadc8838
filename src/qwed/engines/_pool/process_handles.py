"""Handles of the pool's processes: the zygote and the workers forked from it."""

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

from qwed.engines._pool.frames import MAX_ANSWER, MAX_REQUEST, FrameError, FrameReader, pack
from qwed.engines._pool.messages import (
    DECODE_ERRORS,
    FORK,
    HELLO,
    WorkerReply,
    ZygoteArguments,
    decode_reply,
    join_requests,
)
from qwed.engines._pool.queues import EngineJob
from qwed.engines.registry import EngineRow

PRELOAD_SECONDS = 120.0
FORK_SECONDS = 20.0
ENDING_SECONDS = 5.0
BATCH_SECONDS = 0.04
"""Twice the time after which a worker starts no further request of a batch."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from qwed.engines._pool.zygote import main; main(sys.argv[1])"
)
_PIECE = 1 << 16


class WorkerLostError(Exception):
    """The process has ended or violated the protocol."""


def _environment() -> dict[str, str]:
    """Return an environment with only PATH of ours; a fixed hash seed makes answers reproducible."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}


class Zygote:
    """Process that has engines loaded and forks workers with them."""

    def __init__(self, rows: tuple[EngineRow, ...], memory_mb: int, now: float, load: Collection[str] = ()) -> None:
        self.ready = False
        """False while it loads an engine."""
        self.loaded: frozenset[str] = frozenset()
        self.loading = frozenset(load)
        self.deadline = now + PRELOAD_SECONDS
        self._names = [row.name for row in rows]
        self.control, theirs = socket.socketpair()
        self.control.setblocking(False)
        path = [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
        orders = ZygoteArguments(path=path, rows=rows, load=tuple(load), memory_mb=memory_mb, control=theirs.fileno())
        with theirs:
            try:
                self._process = _start(orders)
            except OSError:
                self.control.close()
                raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def listen(self) -> None:
        """Record that loading has finished; raise WorkerLostError if the process has ended."""
        try:
            data = self.control.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            raise WorkerLostError from None
        if not data:
            raise WorkerLostError
        self.ready, self.deadline = True, math.inf
        self.loaded, self.loading = self.loaded | self.loading, frozenset()

    def load(self, engine: str, now: float) -> None:
        """Load one more engine for future workers; raise OSError if it cannot be reached."""
        self.control.send(bytes([self._names.index(engine)]))
        self.ready, self.deadline = False, now + PRELOAD_SECONDS
        self.loading = frozenset({engine})

    def fork(self) -> socket.socket:
        """Request a worker and return our end of its socket; raise OSError if the zygote cannot be reached."""
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
        """Close the control socket, which ends the zygote and its workers; kill it after `patience` seconds."""
        self.control.close()
        if not self.ready:
            # It is loading and does not read the control socket.
            self._process.terminate()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start(orders: ZygoteArguments) -> subprocess.Popen[bytes]:
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
    """One forked process: starting until its hello message, then idle or busy."""

    def __init__(self, channel: socket.socket, now: float) -> None:
        self.channel = channel
        self.stale = False
        """True if it must be replaced after its reply, because the zygote has loaded more engines since."""
        self.pid = 0
        self.handle = -1
        """pidfd of the process; a process id could be reused."""
        self.jobs: deque[EngineJob] = deque()
        """Unanswered jobs in order; it works on the first."""
        self.claim = 0
        """Claim number at the concurrency limiter, if there is one."""
        self.begun = False
        """True if it may have received its jobs."""
        self.batch_deadline = math.inf
        """Time at which the jobs behind the first are given to other workers."""
        self._late = now + FORK_SECONDS
        self._taken_back: set[EngineJob] = set()
        self._unsent = memoryview(b"")
        self._answers = FrameReader(MAX_ANSWER)

    @property
    def idle(self) -> bool:
        """True if it can take a job."""
        return self.pid != 0 and not self.jobs

    @property
    def sending(self) -> bool:
        """True if part of the request is still unsent."""
        return len(self._unsent) > 0

    @property
    def deadline(self) -> float:
        """Time by which it must send something."""
        if self.pid == 0:
            return self._late
        return self.jobs[0].deadline if self.jobs else math.inf

    def receive_hello(self) -> None:
        """Receive its hello message; raise WorkerLostError if it is invalid."""
        try:
            hello, handles, _, _ = socket.recv_fds(self.channel, HELLO.size, 1, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            raise WorkerLostError from None
        if handles:
            self.handle = handles[0]
        if len(hello) != HELLO.size or not handles:
            raise WorkerLostError
        (self.pid,) = HELLO.unpack(hello)

    def give(self, job: EngineJob) -> None:
        """Append `job` to its batch."""
        self.jobs.append(job)
        self.begun = False

    def begin(self, now: float) -> None:
        """Prepare the batch for `send`."""
        self._unsent = memoryview(pack(join_requests(job.payload for job in self.jobs), MAX_REQUEST))
        self.batch_deadline = now + BATCH_SECONDS if len(self.jobs) > 1 else math.inf

    def take_back(self, first: int) -> list[EngineJob]:
        """Take back its jobs from index `first` on; replies for them are dropped."""
        self.batch_deadline = math.inf
        waiting = [job for job in itertools.islice(self.jobs, first, None) if job not in self._taken_back]
        self._taken_back.update(waiting)
        return waiting

    def done(self) -> EngineJob | None:
        """Remove and return the job it worked on, or None if that job was taken back."""
        job = self.jobs.popleft()
        if job not in self._taken_back:
            return job
        self._taken_back.remove(job)
        return None

    def rest(self) -> None:
        """Reset to idle."""
        self.jobs.clear()
        self.claim = 0
        self._taken_back.clear()
        self.batch_deadline = math.inf
        self._unsent = memoryview(b"")
        self._answers = FrameReader(MAX_ANSWER)

    def send(self) -> None:
        """Send as much as fits; raise WorkerLostError if the process has ended."""
        try:
            self._unsent = self._unsent[self.channel.send(self._unsent) :]
            self.begun = True
        except BlockingIOError:
            return
        except OSError:
            raise WorkerLostError from None

    def hear(self) -> Iterator[WorkerReply]:
        """Yield received replies, each for the first of its jobs; call `done` before the next one.

        Raise WorkerLostError after them if the process has ended or violated the protocol.
        """
        try:
            piece = self.channel.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            raise WorkerLostError from None
        if not piece:
            raise WorkerLostError
        answers = self._answers
        try:
            for reply in map(decode_reply, answers.feed(piece)):
                if not self.jobs or reply.number != self.jobs[0].number:
                    raise WorkerLostError
                yield reply
        except (FrameError, *DECODE_ERRORS):
            raise WorkerLostError from None
        if not self.jobs and not answers.empty:
            raise WorkerLostError

    def kill(self) -> None:
        """Kill the process; the zygote reaps it."""
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
        """Close its descriptors; an idle process then ends by itself."""
        self.channel.close()
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

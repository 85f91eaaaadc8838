"""Fork server of the engine workers: imports each engine once, on request, and forks a worker for each socket it
receives.

It runs as a separate program with an empty environment, so it shares nothing with the server but sockets. It ends when
the pool does and kills all its descendants.
"""

import gc
import importlib
import os
import select
import signal
import socket
from contextlib import suppress
from functools import partial
from typing import NoReturn

from qwed.engines._pool.messages import FORK, READY, ZygoteArguments, error_verdict
from qwed.engines._pool.worker_main import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, Verify, become_worker, prctl, work
from qwed.engines.protocol import EngineRequest
from qwed.engines.registry import EngineRow
from qwed.model import Verdict

_UNLOADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


def main(line: str) -> None:
    """Serve the pool until the control socket closes or SIGTERM arrives."""
    orders = ZygoteArguments.read(line)
    _reset_inherited_state()
    control = socket.socket(fileno=orders.control)
    wakeup = _wakeup_on_signals()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # A signal in addition to the closed socket: a process forked by the pool's owner may keep that socket open.
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    fork_server = _ForkServer(orders.rows, orders.memory_mb)
    fork_server.load(*orders.load)
    signals: list[int] = []
    # From here on there are workers to end, and their bookkeeping must not be interrupted by a handler.
    signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))
    try:
        control.sendall(READY)
        _serve_pool(control, wakeup, fork_server, signals)
    except OSError:
        # The pool is gone.
        return
    finally:
        # Skip interpreter shutdown: libraries loaded for the workers print errors there.
        fork_server.exit()


def _reset_inherited_state() -> None:
    """Unblock signals and open closed standard descriptors that the parent may have left."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    while (spare := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(spare)


def _wakeup_on_signals() -> socket.socket:
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    reader.setblocking(False)
    # The wakeup descriptor stays open as long as the process.
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    return reader


def _load(row: EngineRow) -> Verify:
    """Return the engine's `verify`, or a function that reports that it could not be loaded."""
    try:
        verify: Verify = importlib.import_module(row.module).verify
        for request in row.warm:
            verify(request)
    except _UNLOADABLE as why:
        message = f"the engine `{row.name}` could not be loaded, install `qwed[{row.extra}]`"
        return partial(_constant_verdict, error_verdict(row.name, message, type(why).__name__))
    return verify


def _constant_verdict(verdict: Verdict, _request: EngineRequest) -> Verdict:
    return verdict


def _serve_pool(control: socket.socket, wakeup: socket.socket, fork_server: "_ForkServer", signals: list[int]) -> None:
    """Handle fork and load requests until the pool is gone or a signal asks to end."""
    # `select.select` would reject descriptors above 1023, and the control socket keeps its number from the pool.
    poll = select.poll()
    for end in (control, wakeup):
        poll.register(end, select.POLLIN)
    while not signals:
        ready = {descriptor for descriptor, _events in poll.poll()}
        if wakeup.fileno() in ready:
            wakeup.recv(4096)
            fork_server.reap()
        if control.fileno() in ready:
            order, descriptors, _, _ = socket.recv_fds(control, 1, 1, socket.MSG_CMSG_CLOEXEC)
            if not order:
                return
            for descriptor in descriptors:
                fork_server.fork(socket.socket(fileno=descriptor))
            if order != FORK:
                _load_more(control, fork_server, order[0])


def _load_more(control: socket.socket, fork_server: "_ForkServer", number: int) -> None:
    """Load the engine of that row. No worker is forked meanwhile, so SIGTERM may end the process at once."""
    previous_handler = signal.signal(signal.SIGTERM, lambda *_: fork_server.exit())
    fork_server.load(fork_server.rows[number].name)
    signal.signal(signal.SIGTERM, previous_handler)
    control.sendall(READY)


class _ForkServer:
    """Loaded engines and the workers forked with them, by process id."""

    def __init__(self, rows: tuple[EngineRow, ...], memory_mb: int) -> None:
        self.rows = rows
        self._engines: dict[str, Verify] = {}
        self._memory = memory_mb << 20
        self._workers: set[int] = set()

    def load(self, *names: str) -> None:
        """Load these engines for future workers."""
        # Loaded modules stay for ever; garbage collection would take an eighth of the loading time.
        gc.disable()
        self._engines |= {row.name: _load(row) for row in self.rows if row.name in names}
        gc.collect()
        gc.freeze()
        gc.enable()

    def fork(self, channel: socket.socket) -> None:
        """Start a worker on `channel`; on failure the pool sees the channel close."""
        zygote = os.getpid()
        with channel:
            try:
                child = os.fork()
            except OSError:
                return
            if child == 0:
                try:
                    become_worker(channel, zygote, self._memory)
                    work(channel, self._engines, self._memory)
                finally:
                    # An exception in a worker must not unwind into the zygote's loop.
                    os._exit(0)
            self._workers.add(child)

    def reap(self) -> None:
        """Reap dead children and kill orphans of dead workers."""
        while (dead := _next_dead()) is not None:
            self._workers.discard(dead)
        for stray in _children() - self._workers:
            _kill(stray)

    def end(self) -> None:
        """Kill and reap every descendant."""
        while left := self._workers | _children():
            for child in left:
                _kill(child)
            dead, _ = os.waitpid(-1, 0)
            self._workers.discard(dead)

    def exit(self) -> NoReturn:
        """Kill every descendant and exit."""
        self.end()
        os._exit(0)


def _next_dead() -> int | None:
    try:
        pid, _ = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return pid or None


def _children() -> set[int]:
    """Return every child, adopted orphans included, or none if the kernel does not list them."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", encoding="ascii") as listed:
            return {int(pid) for pid in listed.read().split()}
    except OSError:
        return set()


def _kill(pid: int) -> None:
    # An unreaped child of this process, so its id cannot have been reused.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

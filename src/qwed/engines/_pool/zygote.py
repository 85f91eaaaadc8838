"""The zygote: imports each engine once, when it is told to, and forks a worker for each socket the pool hands it.

It runs as its own program with an empty environment, so neither the pool's process nor the workers share anything
but sockets. It ends when the pool does, and takes every process below it along.
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

from qwed.engines._pool.child import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, Verify, become_worker, prctl, work
from qwed.engines._pool.messages import FORK, READY, Orders, broken
from qwed.engines.protocol import EngineRequest
from qwed.engines.table import EngineRow
from qwed.words import Verdict

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
    """Serve the pool until it closes its end of the control socket or this process is told to end."""
    orders = Orders.read(line)
    _settle_in()
    control = socket.socket(fileno=orders.control)
    bell = _ring_on_signals()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # By signal as well as by the closed socket: a process the pool's owner forked may hold that socket open.
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    nursery = _Nursery(orders.rows, orders.memory_mb)
    nursery.load(*orders.load)
    told: list[int] = []
    # No longer at once: from here on there are workers to end, and what keeps count of them is not to be interrupted.
    signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    try:
        control.sendall(READY)
        _serve_pool(control, bell, nursery, told)
    except OSError:
        # The pool is gone; there is nobody to tell.
        return
    finally:
        # Without taking the interpreter apart: libraries that were loaded for the workers complain about it at length.
        nursery.leave()


def _settle_in() -> None:
    """Undo what an unusual owner may have passed on: blocked signals, and standard descriptors that are closed."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    while (spare := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(spare)


def _ring_on_signals() -> socket.socket:
    bell, hammer = socket.socketpair()
    hammer.setblocking(False)
    bell.setblocking(False)
    # The wakeup descriptor stays open as long as the process.
    signal.set_wakeup_fd(hammer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    return bell


def _load(row: EngineRow) -> Verify:
    """The engine's `verify`, or one that says it could not be loaded: the other engines still serve."""
    try:
        verify: Verify = importlib.import_module(row.module).verify
        for request in row.warm:
            verify(request)
    except _UNLOADABLE as why:
        message = f"the engine `{row.name}` could not be loaded, install `qwed[{row.extra}]`"
        return partial(_always, broken(row.name, message, type(why).__name__))
    return verify


def _always(verdict: Verdict, _request: EngineRequest) -> Verdict:
    return verdict


def _serve_pool(control: socket.socket, bell: socket.socket, nursery: "_Nursery", told: list[int]) -> None:
    """Until the pool is gone or we are told to end, which rings the bell like any signal."""
    # Not `select.select`, which takes no descriptor above 1023: the control socket has the number it had in the pool.
    poll = select.poll()
    for end in (control, bell):
        poll.register(end, select.POLLIN)
    while not told:
        ready = {descriptor for descriptor, _events in poll.poll()}
        if bell.fileno() in ready:
            bell.recv(4096)
            nursery.reap()
        if control.fileno() in ready:
            order, descriptors, _, _ = socket.recv_fds(control, 1, 1, socket.MSG_CMSG_CLOEXEC)
            if not order:
                return
            for descriptor in descriptors:
                nursery.fork(socket.socket(fileno=descriptor))
            if order != FORK:
                _load_more(control, nursery, order[0])


def _load_more(control: socket.socket, nursery: "_Nursery", number: int) -> None:
    """Load the engine of that row. Nobody counts workers meanwhile, so being told to end need not wait for it."""
    noting = signal.signal(signal.SIGTERM, lambda *_: nursery.leave())
    nursery.load(nursery.rows[number].name)
    signal.signal(signal.SIGTERM, noting)
    control.sendall(READY)


class _Nursery:
    """What is loaded here, and the workers that were forked with it, by process id."""

    def __init__(self, rows: tuple[EngineRow, ...], memory_mb: int) -> None:
        self.rows = rows
        self._engines: dict[str, Verify] = {}
        self._memory = memory_mb << 20
        self._workers: set[int] = set()

    def load(self, *names: str) -> None:
        """Load these engines, for whoever is forked from now on."""
        # What is loaded stays; looking for garbage in it meanwhile takes an eighth of the time.
        gc.disable()
        self._engines |= {row.name: _load(row) for row in self.rows if row.name in names}
        gc.collect()
        gc.freeze()
        gc.enable()

    def fork(self, channel: socket.socket) -> None:
        """Start a worker on `channel`; if that is impossible the pool sees the channel close."""
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
                    # Nothing that happens in a worker may unwind into the zygote's own loop.
                    os._exit(0)
            self._workers.add(child)

    def reap(self) -> None:
        """Collect the dead, and end whatever a dead worker left running."""
        while (dead := _next_dead()) is not None:
            self._workers.discard(dead)
        for stray in _children() - self._workers:
            _kill(stray)

    def end(self) -> None:
        """Kill and collect every process below this one."""
        while left := self._workers | _children():
            for child in left:
                _kill(child)
            dead, _ = os.waitpid(-1, 0)
            self._workers.discard(dead)

    def leave(self) -> NoReturn:
        """End everything, this process too."""
        self.end()
        os._exit(0)


def _next_dead() -> int | None:
    try:
        pid, _ = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return pid or None


def _children() -> set[int]:
    """Every child, adopted orphans of workers included; none where the kernel does not list them."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", encoding="ascii") as listed:
            return {int(pid) for pid in listed.read().split()}
    except OSError:
        return set()


def _kill(pid: int) -> None:
    # Only ever an unreaped child of this process, so the number cannot mean another one.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

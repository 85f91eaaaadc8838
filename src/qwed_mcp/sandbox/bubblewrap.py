"""The sandbox: namespaces of every kind under an ordinary user, made by bubblewrap and watched from outside."""

import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

from qwed_mcp.sandbox.command import Given, Tools, command
from qwed_mcp.sandbox.handing import first_to_go, heard, holding, pipe, readable, starting
from qwed_mcp.sandbox.outcome import Failed, Job, Limits
from qwed_mcp.sandbox.stage import closed_above, open_in_this_thread
from qwed_mcp.sandbox.supervision import Supervised
from qwed_mcp.sandbox.usage import files_of, memory_of, sockets_of
from qwed_mcp.sandbox.view import View
from qwed_mcp.settings import BUBBLEWRAP

DEATH_SECONDS = 15.0
_SHORT = 1 << 12


class Bubblewrap:
    """Each job in namespaces of its own."""

    name = BUBBLEWRAP

    def __init__(self, tools: Tools, view: View) -> None:
        self._tools, self._view = tools, view
        # bubblewrap dies with the *thread* that started it: one thread starts all jobs, and lives as long as they do.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="qwed sandbox starter")
        if tools.uid is not None and any(map(closed_above, view.shown)):
            with starting():
                self._starter.submit(open_in_this_thread, view.shown).result()

    def close(self) -> None:
        """No job any more, and an end of those that run."""
        self._starter.shutdown()

    def start(self, code: str, limits: Limits) -> Job:
        """Run `code` with nothing of the host in reach; Failed where bubblewrap does not come that far."""
        with starting(), ExitStack() as ours, ExitStack() as theirs:
            status, their_status = pipe(ours, theirs)
            said, their_said = pipe(ours, theirs)
            their_go, go = pipe(theirs, ours)
            given = Given(
                program=holding(theirs, code.encode(errors="surrogatepass")),
                filter=holding(theirs, self._tools.filter),
                status=their_status,
                go=their_go,
                said=their_said,
            )
            main = self._starter.submit(self._open, command(self._tools, self._view, limits, given), given).result()
            theirs.close()
            with ExitStack() as held:
                reins = _reins(main, status, go, said)
                reins.starter = self._starter
                held.callback(reins.close)
                held.callback(reins.end)
                job = Supervised(main, reins, limits, self.name)
                held.pop_all()
                return job

    def _open(self, arguments: list[str], given: Given) -> subprocess.Popen[bytes]:
        uid = self._tools.uid
        dropped: dict[str, Any] = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        return subprocess.Popen(  # noqa: S603 - an argv, no shell
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=given,
            # A job can read the environment of bubblewrap, which is its first process.
            env={},
            cwd="/",
            **dropped,
        )


class _Namespace:
    """Killing the first process of a pid namespace kills all of it; the descriptor cannot come to mean another one."""

    def __init__(self, main: subprocess.Popen[bytes], first: int, status: int) -> None:
        self._main, self.first = main, first
        self._files: int | None = None
        self.starter: ThreadPoolExecutor | None = None
        """Kept, because the job would end with it."""
        with ExitStack() as stack:
            self._handle = os.pidfd_open(first)
            stack.callback(os.close, self._handle)
            # bubblewrap writes to it once more at the end, and would die of a pipe that nobody reads.
            stack.callback(os.close, os.dup(status))
            self._stack = stack.pop_all()

    def watch_files(self) -> None:
        """From now on, what the job writes counts as its memory; of one that is over already nothing is left."""
        try:
            self._files = os.open(f"/proc/{self.first}/root/tmp", os.O_PATH | os.O_DIRECTORY)
        except OSError:
            if not readable(self._handle, DEATH_SECONDS):
                raise
        else:
            self._stack.callback(os.close, self._files)

    def memory(self, limit: int) -> int:
        """Bytes of all processes, of the files they made and of what they sent each other."""
        kept = sockets_of(self.first) + (0 if self._files is None else files_of(self._files))
        return kept + memory_of(self.first, limit - kept)

    def end(self) -> None:
        """Kill them all; the first is gone only when the last is."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        if not readable(self._handle, DEATH_SECONDS):
            raise Failed("a job could not be ended: its processes outlived their kill")
        try:
            self._main.wait(DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed("a job could not be ended: bubblewrap outlived it") from None
        # In a container whose first process we are, it has become our child; elsewhere it is not ours to wait for.
        with suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOHANG)

    def close(self) -> None:
        """Close what was open to do so."""
        self._stack.close()


def _reins(main: subprocess.Popen[bytes], status: int, go: int, said: int) -> _Namespace:
    """What holds the job, once the launcher has said that the limits are on and the program begins."""
    namespace = None
    try:
        # The first process waits for our word, so that the number is still its own when we ask for the descriptor.
        namespace = _Namespace(main, json.loads(heard(status, b"\n"))["child-pid"], status)
        first_to_go(namespace.first)
        os.write(go, b"1")
        if heard(said, b"1"):
            namespace.watch_files()
            return namespace
    except (OSError, ValueError) as surprise:
        raise Failed(f"bubblewrap did not start the job: {_complaint(main, namespace) or surprise}") from surprise
    raise Failed(f"bubblewrap did not start the job: {_complaint(main, namespace) or 'it ended or did not answer'}")


def _complaint(main: subprocess.Popen[bytes], namespace: _Namespace | None) -> str:
    """The last line of what it said that says something, after it has been ended."""
    main.kill()
    main.wait()
    if namespace is not None:
        namespace.end()
        namespace.close()
    with ExitStack() as stack:
        _, err = (stack.enter_context(stream) for stream in (main.stdout, main.stderr) if stream)
        os.set_blocking(err.fileno(), False)
        lines = map(str.strip, (err.read(_SHORT) or b"").decode(errors="replace").splitlines())
    # Two of its processes may complain at once, and one of them end before it has said more than its name.
    return next((line for line in reversed([*lines]) if line not in ("", "bwrap:")), "")

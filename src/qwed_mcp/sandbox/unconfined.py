"""No sandbox: an ordinary process, for administrators who have set `QWED_MCP_SANDBOX=none` knowingly."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, suppress

from qwed_mcp.sandbox.command import launcher, rlimits, search_path
from qwed_mcp.sandbox.handing import first_to_go, heard, holding, pipe, starting
from qwed_mcp.sandbox.outcome import Failed, Job, Limits
from qwed_mcp.sandbox.supervision import Supervised
from qwed_mcp.sandbox.usage import memory_of, processes_below
from qwed_mcp.sandbox.view import View, view
from qwed_mcp.settings import NONE

_DEATH_SECONDS = 15.0


class Unconfined:
    """Limits for each process, an empty environment, caps and kills; the host's files and network are in reach."""

    name = NONE

    def __init__(self) -> None:
        self._view: View = view()

    def start(self, code: str, limits: Limits) -> Job:
        """Run `code` as the user that the server is."""
        with starting(), ExitStack() as failed, ExitStack() as ours, ExitStack() as theirs:
            place = tempfile.mkdtemp(prefix="qwed-job-")
            failed.callback(_remove_empty, place)
            said, their_said = pipe(ours, theirs)
            program = holding(theirs, code.encode(errors="surrogatepass"))
            group = _Group(self._open(place, program, their_said, limits), place)
            theirs.close()
            with ExitStack() as held:
                held.callback(group.close)
                held.callback(group.end)
                # A short program may be over already.
                with suppress(OSError):
                    first_to_go(group.main.pid)
                if not heard(said, b"1"):
                    raise Failed("the job did not start: Python ended or did not answer")
                job = Supervised(group.main, group, limits, self.name)
                held.pop_all()
                failed.pop_all()
                return job

    def _open(self, place: str, program: int, said: int, limits: Limits) -> subprocess.Popen[bytes]:
        arguments = launcher(self._view, said, f"/proc/self/fd/{program}", rlimits(limits))
        return subprocess.Popen(  # noqa: S603 - an argv, no shell
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(program, said),
            env={"PATH": str(self._view.python.parent), "PYTHONPATH": search_path(self._view)},
            cwd=place,
            start_new_session=True,
        )


def _remove_empty(place: str) -> None:
    """Without a descriptor, of which there may be none left."""
    with suppress(OSError):
        os.rmdir(place)


class _Group:
    """The processes that did not leave: a program that wants to can, and nothing here would find it."""

    def __init__(self, main: subprocess.Popen[bytes], place: str) -> None:
        self.main, self._place = main, place

    def memory(self, limit: int) -> int:
        """Bytes of the main process and its descendants."""
        return memory_of(self.main.pid, limit)

    def end(self) -> None:
        """Kill the group, and the descendants in other groups."""
        below = [*processes_below(self.main.pid)][1:]
        with suppress(ProcessLookupError):
            os.killpg(self.main.pid, signal.SIGKILL)
        for process in below:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            self.main.wait(_DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed("a job could not be ended: it outlived its kill") from None

    def close(self) -> None:
        """Remove its directory, and close its output where nobody reads it."""
        for stream in (self.main.stdout, self.main.stderr):
            if stream is not None:
                stream.close()
        shutil.rmtree(self._place, ignore_errors=True)

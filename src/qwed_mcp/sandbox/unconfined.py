"""No sandbox: an ordinary process, for administrators who set `QWED_MCP_SANDBOX=none`."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, suppress

from qwed_mcp.sandbox.descriptors import convert_start_errors, memory_file, open_pipe, raise_oom_score, read_until
from qwed_mcp.sandbox.filesystem import VisibleFiles, find_visible_files
from qwed_mcp.sandbox.job import JobLimits, SandboxError, SandboxJob
from qwed_mcp.sandbox.resource_usage import process_tree, tree_memory
from qwed_mcp.sandbox.sandbox_command import launcher_command, rlimits, search_path
from qwed_mcp.sandbox.supervisor import SupervisedJob
from qwed_mcp.settings import NONE

_KILL_SECONDS = 15.0


class Unconfined:
    """Runs jobs with limits per process and an empty environment, but with access to the host's files and network."""

    name = NONE

    def __init__(self) -> None:
        self._visible: VisibleFiles = find_visible_files()

    def start(self, code: str, limits: JobLimits) -> SandboxJob:
        """Run `code` as the user of the server."""
        with convert_start_errors(), ExitStack() as failed, ExitStack() as ours, ExitStack() as theirs:
            directory = tempfile.mkdtemp(prefix="qwed-job-")
            failed.callback(_remove_empty_directory, directory)
            ready, their_ready = open_pipe(ours, theirs)
            program = memory_file(theirs, code.encode(errors="surrogatepass"))
            group = _ProcessGroup(self._spawn(directory, program, their_ready, limits), directory)
            theirs.close()
            with ExitStack() as cleanup:
                cleanup.callback(group.close)
                cleanup.callback(group.end)
                # A short program may be over already.
                with suppress(OSError):
                    raise_oom_score(group.main.pid)
                if not read_until(ready, b"1"):
                    raise SandboxError("the job did not start: Python ended or did not answer")
                job = SupervisedJob(group.main, group, limits, self.name)
                cleanup.pop_all()
                failed.pop_all()
                return job

    def _spawn(self, directory: str, program: int, ready: int, limits: JobLimits) -> subprocess.Popen[bytes]:
        arguments = launcher_command(self._visible, ready, f"/proc/self/fd/{program}", rlimits(limits))
        return subprocess.Popen(  # noqa: S603 - an argv, no shell
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(program, ready),
            env={"PATH": str(self._visible.python.parent), "PYTHONPATH": search_path(self._visible)},
            cwd=directory,
            start_new_session=True,
        )


def _remove_empty_directory(directory: str) -> None:
    """Remove the directory without opening a descriptor, since none may be left."""
    with suppress(OSError):
        os.rmdir(directory)


class _ProcessGroup:
    """Processes of a job, except those that deliberately left their group and parents."""

    def __init__(self, main: subprocess.Popen[bytes], directory: str) -> None:
        self.main, self._directory = main, directory

    def memory(self, limit: int) -> int:
        """Return the bytes of the main process and its descendants."""
        return tree_memory(self.main.pid, limit)

    def end(self) -> None:
        """Kill the group, and the descendants in other groups."""
        below = [*process_tree(self.main.pid)][1:]
        with suppress(ProcessLookupError):
            os.killpg(self.main.pid, signal.SIGKILL)
        for process in below:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            self.main.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            raise SandboxError("a job could not be ended: it outlived its kill") from None

    def close(self) -> None:
        """Close the output streams and remove the job's directory."""
        for stream in (self.main.stdout, self.main.stderr):
            if stream is not None:
                stream.close()
        shutil.rmtree(self._directory, ignore_errors=True)

"""Sandbox made of Linux namespaces by bubblewrap, run as an ordinary user and supervised from outside."""

import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

from qwed_mcp.sandbox.descriptors import (
    convert_start_errors,
    memory_file,
    open_pipe,
    raise_oom_score,
    read_until,
    wait_readable,
)
from qwed_mcp.sandbox.filesystem import VisibleFiles
from qwed_mcp.sandbox.job import JobLimits, SandboxError, SandboxJob
from qwed_mcp.sandbox.mount_namespace import closed_ancestor, expose_in_this_thread
from qwed_mcp.sandbox.resource_usage import socket_buffers, tmpfs_usage, tree_memory
from qwed_mcp.sandbox.sandbox_command import BubblewrapTools, PassedDescriptors, bubblewrap_command
from qwed_mcp.sandbox.supervisor import SupervisedJob
from qwed_mcp.settings import BUBBLEWRAP

KILL_SECONDS = 15.0
_MAX_ERROR_BYTES = 1 << 12


class Bubblewrap:
    """Sandbox that runs each job in its own namespaces."""

    name = BUBBLEWRAP

    def __init__(self, tools: BubblewrapTools, files: VisibleFiles) -> None:
        self._tools, self._files = tools, files
        # bubblewrap dies with the *thread* that started it, so one thread starts all jobs and outlives them.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="qwed sandbox starter")
        if tools.uid is not None and any(map(closed_ancestor, files.paths)):
            with convert_start_errors():
                self._starter.submit(expose_in_this_thread, files.paths).result()

    def close(self) -> None:
        """Accept no more jobs and end those that run."""
        self._starter.shutdown()

    def start(self, code: str, limits: JobLimits) -> SandboxJob:
        """Run `code` without access to the host; raise SandboxError if bubblewrap fails to start it."""
        with convert_start_errors(), ExitStack() as ours, ExitStack() as theirs:
            status, their_status = open_pipe(ours, theirs)
            ready, their_ready = open_pipe(ours, theirs)
            their_go, go = open_pipe(theirs, ours)
            descriptors = PassedDescriptors(
                program=memory_file(theirs, code.encode(errors="surrogatepass")),
                filter=memory_file(theirs, self._tools.filter),
                status=their_status,
                go=their_go,
                ready=their_ready,
            )
            main = self._starter.submit(
                self._spawn, bubblewrap_command(self._tools, self._files, limits, descriptors), descriptors
            ).result()
            theirs.close()
            with ExitStack() as cleanup:
                namespace = _open_namespace(main, status, go, ready)
                namespace.starter = self._starter
                cleanup.callback(namespace.close)
                cleanup.callback(namespace.end)
                job = SupervisedJob(main, namespace, limits, self.name)
                cleanup.pop_all()
                return job

    def _spawn(self, arguments: list[str], descriptors: PassedDescriptors) -> subprocess.Popen[bytes]:
        uid = self._tools.uid
        dropped: dict[str, Any] = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        return subprocess.Popen(  # noqa: S603 - an argv, no shell
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=descriptors,
            # A job can read the environment of its first process, bubblewrap.
            env={},
            cwd="/",
            **dropped,
        )


class _Namespace:
    """Handle of a job's pid namespace.

    Killing the first process of the namespace kills all of it. A pidfd is used because it never refers to another
    process.
    """

    def __init__(self, main: subprocess.Popen[bytes], first: int, status: int) -> None:
        self._main, self.first = main, first
        self._files: int | None = None
        self.starter: ThreadPoolExecutor | None = None
        """Reference that keeps the starter thread alive, because the job would end with it."""
        with ExitStack() as stack:
            self._pidfd = os.pidfd_open(first)
            stack.callback(os.close, self._pidfd)
            # bubblewrap writes to it once more at the end, and would die of SIGPIPE without a reader.
            stack.callback(os.close, os.dup(status))
            self._stack = stack.pop_all()

    def watch_files(self) -> None:
        """Count files that the job writes as memory from now on; a job that has already ended has none."""
        try:
            self._files = os.open(f"/proc/{self.first}/root/tmp", os.O_PATH | os.O_DIRECTORY)
        except OSError:
            if not wait_readable(self._pidfd, KILL_SECONDS):
                raise
        else:
            self._stack.callback(os.close, self._files)

    def memory(self, limit: int) -> int:
        """Return the bytes of all processes, their files and their socket buffers."""
        outside_processes = socket_buffers(self.first) + (0 if self._files is None else tmpfs_usage(self._files))
        return outside_processes + tree_memory(self.first, limit - outside_processes)

    def end(self) -> None:
        """Kill all processes; the first is gone only when the last is."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        if not wait_readable(self._pidfd, KILL_SECONDS):
            raise SandboxError("a job could not be ended: its processes outlived their kill")
        try:
            self._main.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            raise SandboxError("a job could not be ended: bubblewrap outlived it") from None
        # If this process is pid 1 of a container, the orphan has become its child and must be reaped.
        with suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)

    def close(self) -> None:
        """Close the open descriptors."""
        self._stack.close()


def _open_namespace(main: subprocess.Popen[bytes], status: int, go: int, ready: int) -> _Namespace:
    """Return the namespace once the launcher has applied the limits and the program begins."""
    namespace = None
    try:
        # The first process blocks until `go`, so its pid cannot be reused before the pidfd is opened.
        namespace = _Namespace(main, json.loads(read_until(status, b"\n"))["child-pid"], status)
        raise_oom_score(namespace.first)
        os.write(go, b"1")
        if read_until(ready, b"1"):
            namespace.watch_files()
            return namespace
    except (OSError, ValueError) as error:
        raise SandboxError(
            f"bubblewrap did not start the job: {_stop_and_read_error(main, namespace) or error}"
        ) from error
    raise SandboxError(
        f"bubblewrap did not start the job: {_stop_and_read_error(main, namespace) or 'it ended or did not answer'}"
    )


def _stop_and_read_error(main: subprocess.Popen[bytes], namespace: _Namespace | None) -> str:
    """Kill bubblewrap and return the last meaningful line of its stderr."""
    main.kill()
    main.wait()
    if namespace is not None:
        namespace.end()
        namespace.close()
    with ExitStack() as stack:
        _, err = (stack.enter_context(stream) for stream in (main.stdout, main.stderr) if stream)
        os.set_blocking(err.fileno(), False)
        lines = map(str.strip, (err.read(_MAX_ERROR_BYTES) or b"").decode(errors="replace").splitlines())
    # Two bubblewrap processes may write at once, and one may die after writing only its name.
    return next((line for line in reversed([*lines]) if line not in ("", "bwrap:")), "")

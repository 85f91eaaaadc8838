"""Unexpected failures around a job: it fails or ends, and no process is left or runs outside."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from qwed_mcp.sandbox import Bubblewrap, EndReason, JobLimits, Sandbox, SandboxError, sandbox_from
from qwed_mcp.sandbox.filesystem import find_visible_files
from qwed_mcp.sandbox.resource_usage import process_tree
from qwed_mcp.sandbox.sandbox_command import BubblewrapTools
from qwed_mcp.sandbox.seccomp import seccomp_filter
from qwed_mcp.sandbox.selection import JOB_UID, find_tool
from qwed_mcp.settings import McpSettings
from tests.support.sandbox_escapes import namespaces_below, open_directory, processes_in

SLEEP = "import time; time.sleep(1000)"
BECOME_ORDINARY = f"""
import os
from qwed_mcp.sandbox.mount_namespace import expose_in_this_thread
from qwed_mcp.sandbox.filesystem import find_visible_files
if os.getuid() == 0:
    expose_in_this_thread(find_visible_files().paths)
    os.setgroups([])
    os.setgid({JOB_UID + 100})
    os.setuid({JOB_UID + 100})
    import ctypes
    ctypes.CDLL(None).prctl(4, 1)
"""


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    chosen = sandbox_from(McpSettings())()
    assert isinstance(chosen, Bubblewrap)
    return chosen


def tools(bwrap: str, program: bytes | None = None) -> BubblewrapTools:
    return BubblewrapTools(bwrap, program or seccomp_filter() or b"", None if os.geteuid() else JOB_UID)


def until(condition: object) -> None:
    tick = threading.Event()
    for _ in range(6000):
        if condition():  # type: ignore[operator]
            return
        tick.wait(0.01)
    raise AssertionError("the condition did not become true")


def script(code: str) -> "subprocess.Popen[str]":
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, find_visible_files().package_directories)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [str(find_visible_files().python), "-S", "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def printed(code: str) -> str:
    out, err = script(code).communicate(timeout=120)
    assert err == ""
    return out


def test_a_bubblewrap_that_is_gone_runs_nothing(tmp_path: Path) -> None:
    left = tmp_path / "left"
    with pytest.raises(SandboxError, match="a job could not be started"):
        Bubblewrap(tools(str(tmp_path / "bwrap")), find_visible_files()).start(
            f"open({str(left)!r}, 'w')", JobLimits(seconds=5)
        )
    assert not left.exists()


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", "exec sleep 0", "echo >&2; echo -n 'bwrap: ' >&2"])
def test_a_bubblewrap_that_dies_at_once_is_a_failure(script: str) -> None:
    with open_directory() as place:
        bwrap = place / "bwrap"
        bwrap.write_text(f"#!/bin/sh\necho 'bwrap: no' >&2\n{script}\n")
        bwrap.chmod(0o755)
        with pytest.raises(SandboxError, match="bubblewrap did not start the job: bwrap: no"):
            Bubblewrap(tools(str(bwrap)), find_visible_files()).start("pass", JobLimits(seconds=5))


def test_a_filter_that_the_kernel_does_not_take_is_a_failure() -> None:
    bwrap = find_tool("bwrap")
    assert bwrap
    # Two bubblewrap processes fail at once, and each writes its name separately.
    with pytest.raises(
        SandboxError, match=r"bubblewrap did not start the job: (bwrap: ){0,2}Unable to set up system call"
    ):
        Bubblewrap(tools(bwrap, b"nonsense" * 3), find_visible_files()).start("pass", JobLimits(seconds=5))


def test_whatever_process_of_a_job_is_killed_the_rest_dies_and_it_is_no_success(sandbox: Sandbox) -> None:
    others = started()
    for index in range(3):
        job = sandbox.start(SLEEP, JobLimits(seconds=60))
        own, chain = namespaces_below(os.getpid()), [process for process in started() if process not in others]
        assert len(chain) == 3
        os.kill(chain[index], signal.SIGKILL)
        outcome = job.wait()
        assert (outcome.ended, outcome.return_code) == (EndReason.EXITED, 137)
        assert processes_in(own) == []


def started() -> list[int]:
    """Return the processes started here: bubblewrap, the first process of the job, the program."""
    return sorted(process for process in process_tree(os.getpid()) if process != os.getpid())


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_where_there_are_no_descriptors_the_job_has_failed_and_nothing_stays(kind: str, tmp_path: Path) -> None:
    code = f"""
import os, resource, tempfile
from qwed_mcp.sandbox import SandboxError, JobLimits, sandbox_from
from qwed_mcp.settings import McpSettings
tempfile.tempdir = {str(tmp_path)!r}
sandbox = sandbox_from(McpSettings(sandbox={kind!r}))()
sandbox.start("pass", JobLimits(seconds=60)).wait()
before = len(os.listdir("/proc/self/fd"))
told = set()
for most in range(before - 1, before + 24):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, 4096))
    try:
        told.add(sandbox.start("print(7)", JobLimits(seconds=60)).wait().stdout)
    except SandboxError:
        told.add("failed")
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
print(sorted(told), len(os.listdir("/proc/self/fd")) - before)
"""
    assert printed(code) == "['7\\n', 'failed'] 0\n"
    assert os.listdir(tmp_path) == []


def test_an_ordinary_user_with_many_processes_has_a_sandbox_with_the_same_limits() -> None:
    code = """
import threading
from qwed_mcp.sandbox import JobLimits, sandbox_from
from qwed_mcp.settings import McpSettings
import os
over = threading.Event()
for _ in range(300):
    threading.Thread(target=over.wait).start()
job = '''
import os, time
count = 1
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
        count += 1
except BlockingIOError:
    print(count, os.getuid())
'''
print(os.getuid() != 0, sandbox_from(McpSettings())().start(job, JobLimits(seconds=60)).wait().stdout)
over.set()
"""
    assert printed(BECOME_ORDINARY + code) == "True 16 65534\n\n"


def test_a_job_dies_with_the_server() -> None:
    code = """
from qwed_mcp.sandbox import JobLimits, sandbox_from
from qwed_mcp.settings import McpSettings
busy = "import os\\nos.fork() or os.setsid()\\nwhile True: pass"
jobs = [sandbox_from(McpSettings())().start(busy, JobLimits(seconds=600)) for _ in range(2)]
print("started", flush=True)
jobs[0].wait()
"""
    server = script(code)
    assert server.stdout
    assert server.stdout.readline() == "started\n"
    own = namespaces_below(server.pid)
    until(lambda: len(processes_in(own)) == 6)
    server.kill()
    server.communicate()
    until(lambda: processes_in(own) == [])


def test_a_server_that_ends_does_not_wait_for_its_jobs() -> None:
    code = """
from qwed_mcp.sandbox import JobLimits, sandbox_from
from qwed_mcp.settings import McpSettings
sandbox_from(McpSettings())().start("import time; time.sleep(1000)", JobLimits(seconds=600))
"""
    assert printed(code) == ""


def test_where_we_are_the_first_process_of_a_container_no_dead_process_stays() -> None:
    code = """
import ctypes, os
from qwed_mcp.sandbox import JobLimits, sandbox_from
from qwed_mcp.settings import McpSettings
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
sandbox = sandbox_from(McpSettings())()
for code in ("pass", "import os; os.fork() or os.setsid()", "1 / 0"):
    sandbox.start(code, JobLimits(seconds=60)).wait()
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""
    assert printed(code) == "no child\n"


def test_the_command_lines_of_a_job_hold_nothing_of_its_program(sandbox: Sandbox) -> None:
    job = sandbox.start("secret = 'qwed-in-the-program'\n" + SLEEP, JobLimits(seconds=60))
    command_lines = b"".join(Path(f"/proc/{process}/cmdline").read_bytes() for process in started())
    job.cancel()
    job.wait()
    assert b"--unshare-all" in command_lines
    assert b"qwed-in-the-program" not in command_lines


def test_this_python_is_the_one_inside(sandbox: Sandbox) -> None:
    outcome = sandbox.start("import sys; print(sys.version)", JobLimits(seconds=60)).wait()
    assert outcome.stdout == sys.version + "\n"

"""Outcome of jobs, in the sandbox and without one."""

import os
import threading

import pytest

from qwed_mcp.sandbox import EndReason, JobLimits, JobOutcome, Sandbox, SandboxUnavailable, sandbox_from
from qwed_mcp.settings import BUBBLEWRAP, NONE, McpSettings

KINDS = (BUBBLEWRAP, NONE)
CAP = 100_000
NO_UTF8 = "(unicode error) 'utf-8' codec can't decode byte 0xed in position 0: invalid continuation byte"


@pytest.fixture(scope="module", params=KINDS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return chosen(request.param)


@pytest.fixture(scope="module")
def bubblewrap() -> Sandbox:
    return chosen(BUBBLEWRAP)


def chosen(kind: str) -> Sandbox:
    sandbox = sandbox_from(McpSettings(sandbox=kind))()
    assert not isinstance(sandbox, SandboxUnavailable), sandbox
    return sandbox


def run(sandbox: Sandbox, code: str, **limits: float) -> JobOutcome:
    return sandbox.start(code, JobLimits(**{"seconds": 60, **limits})).wait()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "printed", "returned"),
    [
        ("print(6 * 7)", "42\n", 0),
        ("print('é', __name__)", "é __main__\n", 0),
        ("", "", 0),
        ("print('before'); exit(3)", "before\n", 3),
        ("import sys; print(sys.argv[1:], sys.stdin.read())", "[] \n", 0),
        ("import os; print(sorted(os.environ))", "['PATH', 'PYTHONPATH']\n", 0),
        ("import os; os.kill(os.getpid(), 9)", "", 137),
        ("import os, sys; os.write(1, b'\\xff')", "�", 0),
    ],
)
def test_a_program_runs_as_if_python_had_been_started_with_it(
    sandbox: Sandbox, code: str, printed: str, returned: int
) -> None:
    assert run(sandbox, code) == JobOutcome(printed, "", returned, EndReason.EXITED, sandbox.name)


def test_of_the_environment_two_variables_are_there_and_no_secret(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_secret")
    monkeypatch.setenv("PYTHONSTARTUP", "qwed_live_secret")
    code = "import os; print(*sorted(os.environ)); print(open('/proc/self/environ').read())"
    outcome = run(sandbox, code)
    assert outcome.stdout.splitlines()[0] == "PATH PYTHONPATH"
    assert "qwed_live_secret" not in outcome.stdout


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def", "SyntaxError: invalid syntax"),
        ("import sys; sys.exit('enough')", "enough"),
        ("x = '\ud800'", f"SyntaxError: {NO_UTF8}"),
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ],
)
def test_an_error_is_told_as_python_tells_it(sandbox: Sandbox, code: str, last: str) -> None:
    outcome = run(sandbox, code)
    assert (outcome.ended, outcome.return_code) == (EndReason.EXITED, 1)
    assert outcome.stderr.splitlines()[-1] == last


def test_a_traceback_begins_in_the_program(bubblewrap: Sandbox) -> None:
    lines = run(bubblewrap, "def f():\n    1 / 0\nf()").stderr.splitlines()
    assert [line for line in lines if "File" in line] == [
        '  File "/program.py", line 3, in <module>',
        '  File "/program.py", line 2, in f',
    ]


def test_output_up_to_the_cap_is_kept(sandbox: Sandbox) -> None:
    outcome = run(sandbox, f"import sys; print('x' * {CAP}, end=''); sys.stderr.write('y' * {CAP})", output_bytes=CAP)
    assert (len(outcome.stdout), len(outcome.stderr), outcome.ended) == (CAP, CAP, EndReason.EXITED)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_byte_more_than_the_cap_ends_the_job(sandbox: Sandbox, stream: str) -> None:
    code = f"import sys, time; sys.{stream}.write('x' * {CAP + 1}); sys.{stream}.flush(); time.sleep(1000)"
    outcome = run(sandbox, code, output_bytes=CAP)
    assert (len(getattr(outcome, stream)), outcome.ended, outcome.return_code) == (CAP, EndReason.OUTPUT_CAP, None)


def test_one_byte_too_much_at_the_very_end_counts_too(sandbox: Sandbox) -> None:
    assert run(sandbox, f"print('x' * {CAP})", output_bytes=CAP).ended is EndReason.OUTPUT_CAP


def test_what_was_printed_before_the_time_was_over_is_kept(sandbox: Sandbox) -> None:
    outcome = run(sandbox, "import time; print('begun', flush=True); time.sleep(1000)", seconds=0.5)
    assert outcome == JobOutcome("begun\n", "", None, EndReason.TIMED_OUT, sandbox.name)


def test_a_job_is_cancelled_from_another_thread(sandbox: Sandbox) -> None:
    job = sandbox.start("import time; time.sleep(1000)", JobLimits(seconds=60))
    threading.Thread(target=job.cancel).start()
    assert job.wait().ended is EndReason.CANCELLED
    job.cancel()
    assert job.wait().ended is EndReason.CANCELLED


def test_a_job_outlives_the_thread_that_started_it(sandbox: Sandbox) -> None:
    jobs = []
    code = "import time; time.sleep(0.2); print('done')"
    starter = threading.Thread(target=lambda: jobs.append(sandbox.start(code, JobLimits(seconds=60))))
    starter.start()
    starter.join()
    assert jobs[0].wait().stdout == "done\n"


def test_jobs_that_run_at_once_see_only_themselves(bubblewrap: Sandbox) -> None:
    code = """
import os, time
open("/tmp/{0}", "w")
time.sleep(0.2)
print([len([name for name in os.listdir(place) if name.isdigit()]) for place in ("/proc", "/tmp")])
"""
    jobs = [bubblewrap.start(code.format(number), JobLimits(seconds=60)) for number in range(4)]
    assert [job.wait().stdout for job in jobs] == ["[2, 1]\n"] * 4


def test_a_job_that_is_over_before_anybody_looks_has_run(bubblewrap: Sandbox) -> None:
    for code in range(12):
        assert run(bubblewrap, f"__import__('os')._exit({code})").return_code == code


def test_nothing_is_left_for_the_next_job(bubblewrap: Sandbox) -> None:
    code = "import os; print(os.path.exists('/tmp/left')); open('/tmp/left', 'w').write('x')"
    assert [run(bubblewrap, code).stdout for _ in range(2)] == ["False\n", "False\n"]


def test_a_job_has_three_descriptors_and_the_first_is_empty(bubblewrap: Sandbox) -> None:
    code = "import os; print([n for n in range(200) if os.path.exists(f'/proc/self/fd/{n}')], os.read(0, 9))"
    assert run(bubblewrap, code).stdout == "[0, 1, 2] b''\n"


def test_the_limits_hold_for_each_process(bubblewrap: Sandbox) -> None:
    code = """
import resource
names = ("DATA", "NPROC", "NOFILE", "FSIZE", "CPU", "CORE")
print([resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1] for name in names])
"""
    outcome = run(bubblewrap, code, seconds=7, memory_mb=256, processes=4, open_files=32, disk_mb=8)
    assert outcome.stdout == f"[{256 << 20}, 5, 32, {8 << 20}, 8, 0]\n"


def test_as_many_processes_as_allowed_and_no_more(bubblewrap: Sandbox) -> None:
    code = """
import os, time
count = 1
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
        count += 1
except BlockingIOError:
    print(count)
"""
    assert run(bubblewrap, code, processes=6).stdout == "6\n"


def test_the_files_of_a_job_have_a_limit(bubblewrap: Sandbox) -> None:
    code = "f = [open(f'/tmp/{n}', 'wb').write(bytes(1 << 20)) for n in range(20)]"
    outcome = run(bubblewrap, code, disk_mb=8)
    assert outcome.stderr.splitlines()[-1] == "OSError: [Errno 28] No space left on device"


def test_names_without_content_are_memory_too(bubblewrap: Sandbox) -> None:
    code = "import itertools, os\nfor number in itertools.count():\n    os.symlink('x', f'/tmp/{number}')"
    assert run(bubblewrap, code, memory_mb=48).ended is EndReason.MEMORY


def test_everything_but_its_own_files_is_read_only(bubblewrap: Sandbox) -> None:
    code = """
mounts = [line.split() for line in open("/proc/self/mountinfo")]
print(sorted(at for _, _, _, _, at, options, *_ in mounts if "ro" not in options.split(",")))
print({option for _, _, _, _, at, options, *_ in mounts for option in ("nosuid",) if option not in options.split(",")})
"""
    devices = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom"]
    assert run(bubblewrap, code).stdout == f"{[*devices, '/tmp']}\nset()\n"


def test_memory_that_processes_share_counts_once(bubblewrap: Sandbox) -> None:
    code = """
import gc, os, time
kept = bytes(range(256)) * (200 << 12)
gc.freeze()
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        time.sleep(0.5)
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
"""
    assert run(bubblewrap, code).stdout == "[0, 0, 0, 0, 0, 0]\n"


def test_memory_of_all_processes_together_has_a_limit(sandbox: Sandbox) -> None:
    code = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        kept = bytes(range(256)) * (80 << 12)
        time.sleep(1000)
time.sleep(1000)
"""
    assert run(sandbox, code, memory_mb=200).ended is EndReason.MEMORY


def test_what_qwed_is_made_of_is_there_within_the_limits(bubblewrap: Sandbox) -> None:
    code = """
import qwed, qwed_new, qwed_sdk, duckdb, sqlglot, sympy, z3
x = z3.Int("x")
solver = z3.Solver()
solver.add(x * x == 49, x > 0)
print(solver.check(), sympy.diff(sympy.Symbol("x") ** 3))
print(duckdb.sql("select sum(i) from range(100000) t(i)").fetchall())
from qwed_new.guards.code_guard import CodeGuard
print(CodeGuard().verify_safety("import os; os.system('x')")["verified"])
"""
    outcome = run(bubblewrap, code)
    assert (outcome.stdout, outcome.stderr) == ("sat 3*x**2\n[(4999950000,)]\nFalse\n", "")


def test_threads_children_and_another_python_work(bubblewrap: Sandbox) -> None:
    code = """
import asyncio, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pool
from zoneinfo import ZoneInfo
with ThreadPoolExecutor(4) as threads:
    print([*threads.map(abs, [-1, -2])])
with Pool(2) as pool:
    print(pool.map(abs, [-3, -4]))
print(subprocess.run([sys.executable, "-c", "import sympy; print(6)"], capture_output=True, text=True).stdout.strip())
print(asyncio.run(asyncio.sleep(0, 7)), ZoneInfo("Europe/Berlin"))
"""
    assert run(bubblewrap, code).stdout == "[1, 2]\n[3, 4]\n6\n7 Europe/Berlin\n"


def test_the_host_keeps_no_descriptor_of_a_job_that_is_over(sandbox: Sandbox) -> None:
    run(sandbox, "pass")
    before = sorted(os.listdir("/proc/self/fd"))
    for code in ("pass", "import os; os.kill(os.getpid(), 9)"):
        run(sandbox, code)
    assert sorted(os.listdir("/proc/self/fd")) == before

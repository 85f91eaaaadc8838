"""A server that is killed cannot end its jobs: they end with it all the same."""

import os
import subprocess
import sys

from tests.support.below import children, dead

_SERVER = """
import os
from qwed_mcp.sandbox import Limits, sandbox_from
from qwed_mcp.settings import McpSettings

found = sandbox_from(McpSettings())()
code = "import os\\nos.fork()\\nos.setsid()\\nprint(os.getpid(), flush=True)\\nwhile True:\\n    pass"
jobs = [found.start(code, Limits(seconds=300)) for _ in range(2)]
print(*(job._reins.first for job in jobs), flush=True)
jobs[0].wait()
"""


def test_the_jobs_of_a_server_that_is_killed_die_with_it() -> None:
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        firsts = [*map(int, server.stdout.readline().split())]
        assert len(firsts) == 2
        below = {process for first in firsts for process in (first, *children(first))}
        assert len(below) > 2
        handles = [os.pidfd_open(process) for process in below]
        server.kill()
        dead(handles)

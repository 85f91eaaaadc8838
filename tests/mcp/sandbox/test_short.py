"""Programs that end before they are inspected."""

import os
import subprocess
import sys

from qwed_mcp.sandbox.bubblewrap import _Namespace


def test_a_job_that_is_over_before_its_files_are_watched_is_over_and_not_broken() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as main:
        os.waitid(os.P_PID, main.pid, os.WEXITED | os.WNOWAIT)
        read, write = os.pipe()
        namespace = _Namespace(main, main.pid, read)
        namespace.watch_files()
        assert namespace.memory(1 << 20) == 0
        namespace.end()
        namespace.close()
        for end in (read, write):
            os.close(end)

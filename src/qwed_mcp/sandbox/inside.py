"""What runs first in a job: it takes on the limits, says that it has, and becomes the program.

It is run by its path and imported by nobody: inside there is no other code of ours yet, and the program has not begun.
"""

import os
import resource
import runpy
import site
import sys
import time
from types import TracebackType

_ENVIRONMENT = {"PATH", "PYTHONPATH"}
_PROCESSORS = 4
"""Libraries start a thread for each processor they see, and the limit on processes counts threads."""


def main() -> None:
    """`inside.py FD PROGRAM PATH RLIMIT_X=N ...`: the program, as if Python had been started with it."""
    said, program, path, *limits = sys.argv[1:]
    for name, _, value in (limit.partition("=") for limit in limits):
        resource.setrlimit(getattr(resource, name), (int(value), int(value)))
    for name in {*os.environ} - _ENVIRONMENT:
        del os.environ[name]
    os.sched_setaffinity(0, _few(os.sched_getaffinity(0)))
    sys.path += path.split(os.pathsep)
    sys.argv[:] = [program]
    # `exit` and `quit`, which programs use and which come with the start that is left out because it is slow.
    site.setquit()
    sys.excepthook = _told
    os.write(int(said), b"1")
    os.close(int(said))
    runpy.run_path(program, run_name="__main__")


def _few(processors: set[int]) -> set[int]:
    """Some of them, and not those that every other job has."""
    ordered = sorted(processors)
    first = time.monotonic_ns() % len(ordered)
    return {*(ordered[first:] + ordered[:first])[:_PROCESSORS]}


def _told(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """A traceback as the program would have without us: it begins where the program does."""
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
        rest = rest.tb_next
    sys.__excepthook__(kind, value.with_traceback(rest), rest)


if __name__ == "__main__":
    main()

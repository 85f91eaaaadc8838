"""First program of a job: apply the limits, report that they are on, and run the code.

It is run by its path and never imported, because no other code of ours is available inside the sandbox yet.
"""

import os
import resource
import runpy
import site
import sys
import time
from types import TracebackType

_KEPT_VARIABLES = {"PATH", "PYTHONPATH"}
_MAX_PROCESSORS = 4
"""Processor limit, because libraries start a thread per processor and RLIMIT_NPROC counts threads."""


def main() -> None:
    """Run the program as if Python had been started with it: `launcher.py FD PROGRAM PATH RLIMIT_X=N ...`."""
    ready, program, path, *limits = sys.argv[1:]
    for name, _, value in (limit.partition("=") for limit in limits):
        resource.setrlimit(getattr(resource, name), (int(value), int(value)))
    for name in {*os.environ} - _KEPT_VARIABLES:
        del os.environ[name]
    os.sched_setaffinity(0, _choose_processors(os.sched_getaffinity(0)))
    sys.path += path.split(os.pathsep)
    sys.argv[:] = [program]
    # `exit` and `quit`: programs use them, and `-S` skips the slow site import that would define them.
    site.setquit()
    sys.excepthook = _print_traceback
    os.write(int(ready), b"1")
    os.close(int(ready))
    runpy.run_path(program, run_name="__main__")


def _choose_processors(processors: set[int]) -> set[int]:
    """Choose a few processors, starting at a time-dependent one so that jobs spread out."""
    ordered = sorted(processors)
    first = time.monotonic_ns() % len(ordered)
    return {*(ordered[first:] + ordered[:first])[:_MAX_PROCESSORS]}


def _print_traceback(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback without the frames of the launcher."""
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
        rest = rest.tb_next
    sys.__excepthook__(kind, value.with_traceback(rest), rest)


if __name__ == "__main__":
    main()

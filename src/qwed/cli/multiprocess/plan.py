"""Configuration of a supervisor: number of workers, worker command and environment."""

import logging
import os
import socket
import sys
from collections.abc import Callable
from math import ceil

from qwed.api.server.log_format import configure
from qwed.cli.multiprocess.supervisor import Supervisor, WorkerLayout
from qwed.settings import Settings, variable_of

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from qwed.cli.multiprocess.worker import main; main(sys.argv[1])"
)
_FORWARDED_SETTINGS = ("host", "port", "data_dir", "database_url", "redis_url", "workers")
"""Settings that the command line can set; they reach the workers as environment variables."""


def supervise(settings: Settings, reserved: socket.socket, on_ready: Callable[[str | None], None]) -> int:
    """Run the configured number of workers until stopped and return the exit code."""
    configure(settings.log_level)
    if not settings.redis_url and settings.rate_limit_per_key:
        message = "no Redis is configured: each worker counts rate limits in its own memory"
        logging.getLogger("qwed").warning(message, extra={"workers": settings.workers})
    engines = settings.engine_workers or max(2, os.cpu_count() or 2)
    host, port = reserved.getsockname()[:2]
    layout = WorkerLayout(host, port, engines, engines_per_worker(engines, settings.workers))
    command = (sys.executable, "-P", "-c", _BOOT)
    return Supervisor(settings.workers, layout, command, _environment(settings), on_ready).run()


def engines_per_worker(engines: int, workers: int) -> int:
    """Return the engine processes per worker: twice its share of the limit, because load is uneven."""
    return max(2, min(engines, 2 * ceil(engines / workers)))


def _environment(settings: Settings) -> dict[str, str]:
    forwarded = {variable_of(name): str(getattr(settings, name)) for name in _FORWARDED_SETTINGS}
    # A secret read from a file is passed on by value.
    files = {f"{name}_FILE" for name in forwarded}
    return {name: value for name, value in os.environ.items() if name not in files} | forwarded

"""What a supervisor is told: how many workers, of which program, with which settings."""

import logging
import os
import socket
import sys
from collections.abc import Callable
from math import ceil

from qwed.api.logs import configure
from qwed.cli.serving.supervisor import Place, Supervisor
from qwed.settings import Settings, variable_of

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from qwed.cli.serving.worker import main; main(sys.argv[1])"
)
_GIVEN = ("host", "port", "data_dir", "database_url", "redis_url", "workers")
"""What may have been named on the command line: the workers read it where they read every other setting."""


def supervise(settings: Settings, reserved: socket.socket, greet: Callable[[str | None], None]) -> int:
    """Run as many workers as are set, until told to stop: the exit code."""
    configure(settings.log_level)
    if not settings.redis_url and settings.rate_limit_per_key:
        message = "no Redis is configured: each worker counts rate limits in its own memory"
        logging.getLogger("qwed").warning(message, extra={"workers": settings.workers})
    engines = settings.engine_workers or max(2, os.cpu_count() or 2)
    host, port = reserved.getsockname()[:2]
    place = Place(host, port, engines, engines_each(engines, settings.workers))
    command = (sys.executable, "-P", "-c", _BOOT)
    return Supervisor(settings.workers, place, command, _environment(settings), greet).run()


def engines_each(engines: int, workers: int) -> int:
    """Engine workers of one worker: twice its share of those that may work at once, because load is never even."""
    return max(2, min(engines, 2 * ceil(engines / workers)))


def _environment(settings: Settings) -> dict[str, str]:
    given = {variable_of(name): str(getattr(settings, name)) for name in _GIVEN}
    # A secret that came from a file is handed on as it was read.
    files = {f"{name}_FILE" for name in given}
    return {name: value for name, value in os.environ.items() if name not in files} | given

"""Structured logs: one JSON object per line, secrets masked."""

import json
import logging
import sys
from functools import partial
from typing import Any

from qwed.guards.secrets import mask
from qwed.model.clock import rfc3339

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """Formatter for time, level, logger, event and the `extra` fields; secrets are masked in all of them."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= {name: str(value) for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({name: mask(value) for name, value in line.items()})


def _number(worker: int, record: logging.LogRecord) -> bool:
    record.worker = worker
    return True


def configure(level: str, worker: int | None = None) -> None:
    """Send all logs of the process to standard error as JSON, with the worker number if there is one."""
    handler = logging.StreamHandler(sys.stderr)
    if worker is not None:
        handler.addFilter(partial(_number, worker))
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())

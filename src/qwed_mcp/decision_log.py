"""Decision log: one line of JSON on stderr for each call, without the code or its output."""

import hashlib
import json
import sys
import time
from contextlib import suppress
from typing import Any

from qwed.model.clock import rfc3339
from qwed_mcp.security.gateway import Decision, sanitize


def log_decision(caller: str, tool: str, decision: Decision, **more: Any) -> None:
    """Log a decision."""
    log(
        "decision",
        caller=caller,
        tool=sanitize(tool),
        status=decision.status,
        code=decision.get("error_code"),
        verification_id=decision.verification_id,
        code_sha256=_digest(decision.normalized_arguments.get("code")),
        **more,
    )


def log(event: str, **members: Any) -> None:
    """Write one line; a closed stderr is ignored."""
    present = {name: value for name, value in members.items() if value is not None}
    line = json.dumps({"time": rfc3339(time.time()), "event": event, **present})
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _digest(code: object) -> str | None:
    return hashlib.sha256(code.encode()).hexdigest() if isinstance(code, str) else None

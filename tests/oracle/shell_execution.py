"""Execution of shell commands in the sandbox, many in one start."""

import json
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from tests.oracle import project, sandbox, trace

SECONDS = 1.0
_SANDBOXES = 4
_SHARED_AT = 40
"""Sandboxes at a time: most of the time is spent waiting for commands that do not end."""
_WORKER = Path(__file__).with_name("shell_worker.py")
_BASH_ITSELF = 1


@dataclass(slots=True)
class ShellObservation:
    """Effects of one command."""

    status: int | None = None
    """Exit status; None if it was ended or the sandbox with it."""
    changes: list[tuple[str, str]] = field(default_factory=list)
    canaries: list[str] = field(default_factory=list)
    """Secrets the output shows."""
    opened: list[str] = field(default_factory=list)
    """Files with a secret that were read."""
    deeds: trace.Deeds = field(default_factory=trace.Deeds)
    ended_sandbox: bool = False


def execute(commands: Sequence[str], stand_ins: Iterable[str], *, traced: bool = True) -> list[ShellObservation]:
    """Run the commands, each in a fresh project, and return an observation for each."""
    names = sorted({name for name in stand_ins if project.is_stand_in(name)})
    size = -(-len(commands) // _SANDBOXES) if len(commands) >= _SHARED_AT else max(len(commands), 1)
    parts = [commands[start : start + size] for start in range(0, len(commands), size)]
    with ThreadPoolExecutor(_SANDBOXES) as pool:
        return [row for rows in pool.map(partial(_execute, stand_ins=names, traced=traced), parts) for row in rows]


def _execute(commands: Sequence[str], stand_ins: Sequence[str], traced: bool) -> list[ShellObservation]:
    observations: list[ShellObservation] = []
    while len(observations) < len(commands):
        rest = commands[len(observations) :]
        part = _run_batch(rest, stand_ins, traced)
        if len(part) < len(rest):
            part.append(ShellObservation(ended_sandbox=True))
        observations += part[: len(rest)]
    return observations


def _run_batch(commands: Sequence[str], stand_ins: Sequence[str], traced: bool) -> list[ShellObservation]:
    """Return observations of the commands up to the one that ended the sandbox."""
    with sandbox.scratch_file() as jobs, sandbox.scratch_file() as output, sandbox.scratch_file() as log:
        _write_jobs(jobs, commands)
        process = sandbox.start(
            _job(stand_ins, log.fileno() if traced else None), jobs, output.fileno(), [log.fileno()]
        )
        # A command that hangs is ended by the worker; this ends a worker that hangs.
        timer = threading.Timer(20 + len(commands) * (SECONDS + 1), process.kill)
        timer.start()
        _, problem = process.communicate()
        timer.cancel()
        output.seek(0)
        log.seek(0)
        reports = [json.loads(line) for line in output.read().splitlines() if line.endswith(b"}")]
        if not reports and problem:
            raise RuntimeError(problem.decode("utf-8", "replace"))
        deeds = trace.read(log)
    return [_observation(report, deeds.get(report["index"], trace.Deeds())) for report in reports]


def _write_jobs(file: IO[bytes], commands: Sequence[str]) -> None:
    setup = {
        "files": project.FILES,
        "script": project.SCRIPT,
        "database": project.DATABASE,
        "environment": project.ENVIRONMENT,
        "canaries": project.CANARIES,
        "secrets": project.SECRETS,
        "seconds": SECONDS,
    }
    rows: list[dict[str, Any]] = [setup, *({"index": i, "command": text} for i, text in enumerate(commands))]
    file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    file.seek(0)


def _job(stand_ins: Sequence[str], log: int | None) -> sandbox.SandboxJob:
    observer = [] if log is None else [*trace.COMMAND, "-o", f"/proc/self/fd/{log}"]
    return sandbox.SandboxJob(
        [*observer, sandbox.python(), "-ISB", "/worker.py"],
        {"/worker.py": _WORKER.read_bytes(), "/stand-ins/.program": project.STAND_IN, **project.system_files()},
        links={f"/stand-ins/{name}": ".program" for name in stand_ins},
    )


def _observation(report: dict[str, Any], deeds: trace.Deeds) -> ShellObservation:
    del deeds.executed[:_BASH_ITSELF]
    changes = [(kind, path) for kind, path in report["changes"]]
    return ShellObservation(report["status"], changes, report["canaries"], report["opened"], deeds)

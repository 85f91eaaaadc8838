"""Execution of Python programs in the sandbox, many in one start."""

import json
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle import project, sandbox

_HERE = Path(__file__).parent
_SANDBOXES = 2
_SECONDS = 3.0
_PRELOADED = (
    "json",
    "re",
    "string",
    "logging",
    "collections",
    "dataclasses",
    "typing",
    "functools",
    "operator",
    "math",
    "datetime",
)


@dataclass(slots=True)
class PythonObservation:
    """Effects of one program."""

    status: int | None = None
    events: list[tuple[str, list[Any]]] = field(default_factory=list)
    canaries: list[str] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    error: str = ""
    ended_sandbox: bool = False


def execute(programs: Sequence[str]) -> list[PythonObservation]:
    """Run the programs, each in a process of its own, and return an observation for each."""
    size = max(-(-len(programs) // _SANDBOXES), 20)
    parts = [programs[start : start + size] for start in range(0, len(programs), size)]
    with ThreadPoolExecutor(_SANDBOXES) as pool:
        return [row for rows in pool.map(_execute, parts) for row in rows]


def _execute(programs: Sequence[str]) -> list[PythonObservation]:
    observations: list[PythonObservation] = []
    while len(observations) < len(programs):
        rest = programs[len(observations) :]
        part = _run_batch(rest)
        if len(part) < len(rest):
            part.append(PythonObservation(ended_sandbox=True))
        observations += part
    return observations


def _run_batch(programs: Sequence[str]) -> list[PythonObservation]:
    rows = [{"index": number, "code": code} for number, code in enumerate(programs)]
    reports = _communicate(_setup(), rows)
    return [
        PythonObservation(
            row["status"],
            [(name, arguments) for name, arguments in row["events"]],
            row["canaries"],
            [(kind, path) for kind, path in row["changes"]],
            row["error"],
        )
        for row in reports
    ]


def inventory(names: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the callables of each module, imported in the sandbox, each with the names of its parameters."""
    reports = _communicate(_setup() | {"inventory": list(names), "preloaded": []}, [])
    listed: dict[str, dict[str, list[str]]] = reports[0] if reports else {}
    return listed


def packages() -> list[Path]:
    """Return the directories of installed packages that the user of the sandbox can reach."""
    return [Path(path) for path in sys.path if path.endswith("site-packages") and sandbox.is_readable(Path(path))]


def _setup() -> dict[str, Any]:
    return {
        "environment": project.ENVIRONMENT,
        "files": project.FILES,
        "canaries": project.CANARIES,
        "packages": [str(path) for path in packages()],
        "preloaded": _PRELOADED,
    }


def _communicate(setup: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    with sandbox.scratch_file() as jobs, sandbox.scratch_file() as output:
        jobs.write(b"".join(json.dumps(row).encode() + b"\n" for row in (setup, *rows)))
        jobs.seek(0)
        process = sandbox.start(_job(), jobs, output.fileno())
        timer = threading.Timer(60 + len(rows) * (_SECONDS + 0.2), process.kill)
        timer.start()
        _, problem = process.communicate()
        timer.cancel()
        output.seek(0)
        reports = [json.loads(line) for line in output.read().splitlines() if line.endswith(b"}")]
    if not reports and problem:
        raise RuntimeError(problem.decode("utf-8", "replace"))
    return reports


def _job() -> sandbox.SandboxJob:
    files = {f"/oracle/{name}": (_HERE / name).read_bytes() for name in ("python_worker.py", "shell_worker.py")}
    return sandbox.SandboxJob(
        [sandbox.python(), "-ISB", "/oracle/python_worker.py"], files | project.system_files(), visible=packages()
    )

"""Time that people wait for a program to start: the hook, the command line and the MCP proxy."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import interleaved
from benchmarks.report import Aim, Row, Say, absolute, at_most
from benchmarks.servers import Running, qwed_server

RUNS = 20
"""Runs of each program; the median of fewer depends on chance."""
HOOK = "`qwed hook`, a server at hand, ms"
CALCULATION = "`qwed verify`, no server, a calculation, ms"
IDENTITY = "`qwed verify`, no server, an identity, ms"
QUERY = "`qwed verify`, no server, a query, ms"
PROXY = "`qwed-mcp proxy`, answers `initialize`, ms"
_AIMS: dict[str, Aim] = {
    HOOK: at_most(100),
    CALCULATION: at_most(1500),
    IDENTITY: at_most(1500),
    QUERY: at_most(1500),
    PROXY: at_most(1000),
}
_SERVER = """
import json, sys
TOOL = {"name": "get_weather", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        version = message["params"]["protocolVersion"]
        server = {"name": "x", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif message.get("method") == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [TOOL]}}), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
"""
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def rows(_rounds: int, _say: Say) -> list[Row]:
    """Return the milliseconds from the start of each program to its answer, and those of the processor."""
    with contenders() as running:
        for run in running.values():
            run()  # the first run compiles modules
        seen = interleaved({name: _with_processor_time(run) for name, run in running.items()}, RUNS)
    return [
        *(absolute(name, [wall for wall, _ in values], _AIMS[name]) for name, values in seen.items()),
        *(absolute(f"{name}, of the processor", [used for _, used in values]) for name, values in seen.items()),
    ]


def _with_processor_time(run: Callable[[], float]) -> Callable[[], tuple[float, float]]:
    def timed() -> tuple[float, float]:
        before = _processor_seconds()
        wall = run()
        return wall, (_processor_seconds() - before) * 1000

    return timed


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def contenders() -> Iterator[dict[str, Callable[[], float]]]:
    """Yield functions that start a program and return its milliseconds."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "server.py").write_text(_SERVER)
        with qwed_server(home / "data") as server:
            yield {
                HOOK: _hook(home, server),
                CALCULATION: _verify(home, "verify", "2 + 2 = 4"),
                IDENTITY: _verify(home, "verify-math", "x^2 - 1 = (x - 1)(x + 1)"),
                QUERY: _verify(home, "verify-sql", "SELECT 1"),
                PROXY: lambda: _proxy(home),
            }


def _environment(home: Path, **more: str) -> dict[str, str]:
    # An installed package has its modules compiled.
    left_out = ("QWED_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "HOME": str(home), **more}


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _run(command: list[str], environment: dict[str, str], given: bytes = b"") -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, input=given, env=environment, capture_output=True)
    took = (time.perf_counter() - begun) * 1000
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` failed: {done.stderr.decode()}")
    return took


def _hook(home: Path, server: Running) -> Callable[[], float]:
    agent = server.register("hook")
    names = {"QWED_BASE_URL": server.base, "QWED_AGENT_ID": agent["agent_id"], "QWED_AGENT_TOKEN": agent["agent_token"]}
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/home/dev"}
    sessions = iter(range(10**6))

    def run() -> float:
        given = json.dumps({**event, "session_id": f"session-{next(sessions)}"}).encode()
        return _run([_program("qwed"), "hook"], _environment(home, **names), given)

    return run


def _verify(home: Path, *words: str) -> Callable[[], float]:
    return lambda: _run([_program("qwed"), *words], _environment(home))


def _proxy(home: Path) -> float:
    command = [_program("qwed-mcp"), "proxy", "--name", "bench", "--", sys.executable, str(home / "server.py")]
    begun = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(home)
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        took = (time.perf_counter() - begun) * 1000
        process.stdin.close()
        process.wait()
    if "result" not in answer:
        raise RuntimeError(f"the proxy did not start: {answer}")
    return took

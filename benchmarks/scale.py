"""Cost of a decision with more history, agents and connections, and memory use."""

import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks import traffic
from benchmarks.history import filled
from benchmarks.load import Load, drive, post
from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute, at_most
from benchmarks.servers import Running, echo_server, qwed_server

ACTIVITIES = (10, 10_000, 1_000_000)
AGENTS = (5, 1_000)
CONNECTIONS = (1, 32, 256)
IDLE_CONNECTIONS = 500
MANY_AGENTS = 10_000
GROWTH, WIDTH = "with more history and more agents", "with more connections"


def rows(rounds: int, say: Say) -> list[Row]:
    """Return ratios against the smallest size, then memory per connection and agent."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return [
            *_history(place, rounds, say),
            *_agents(place, rounds, say),
            *_connections(place, rounds, say),
            *_memory(place, say),
        ]


def _history(place: Path, rounds: int, say: Say) -> list[Row]:
    """Measure CPU time per decision; a longer log must not depend on the disk."""
    with ExitStack() as stack:
        costs: dict[str, Callable[[], float]] = {}
        for size in ACTIVITIES:
            say(f"  a log of {size:,} activities")
            data = filled(place / f"history{size}", size)
            server = stack.enter_context(qwed_server(data))
            costs[f"{size:,}"] = partial(_cpu_of, server, [server.register()])
        return _against_the_first(costs, rounds, "durable decision, CPU, {} activities / {}", say)


def _agents(place: Path, rounds: int, say: Say) -> list[Row]:
    say("  more agents")
    with qwed_server(place / "agents") as server:
        registered = _registered(server, AGENTS[-1])
        costs: dict[str, Callable[[], float]] = {
            f"{number:,}": partial(_cpu_of, server, registered[:number]) for number in AGENTS
        }
        return _against_the_first(costs, rounds, "durable decision, CPU, {} agents / {}", say)


def _against_the_first(costs: dict[str, Callable[[], float]], rounds: int, name: str, say: Say) -> list[Row]:
    for run in costs.values():
        run()
    seen = interleaved(costs, rounds, say)
    first, *others = seen
    limit = at_most(1.15)
    return [
        *(Row(name.format(each, first), ratio(seen[each], seen[first]), limit, chart=GROWTH) for each in others),
        absolute(name.partition(" / ")[0].format(first) + ", us", seen[first]),
    ]


def _cpu_of(server: Running, agents: list[dict[str, Any]]) -> float:
    """Return the CPU microseconds of all server processes per decision with a receipt."""
    before = server.cpu_seconds()
    traffic.decide(server.place, agents, {})
    return (server.cpu_seconds() - before) / traffic.REQUESTS * 1e6


def _connections(place: Path, rounds: int, say: Say) -> list[Row]:
    say("  more connections")
    with qwed_server(place / "connections") as server, echo_server() as echo:
        agent = server.register()
        loads: dict[str, Callable[[], Load]] = {}
        for number in CONNECTIONS:
            loads[f"echo {number}"] = partial(traffic.echo, echo, agent, connections=number)
            loads[f"{number}"] = partial(traffic.decide, server.place, [agent], {}, connections=number)
        for run in loads.values():
            run()
        seen = {name: [load.per_second for load in found] for name, found in interleaved(loads, rounds, say).items()}
    each = [(f"{number}", f"echo {number}") for number in CONNECTIONS]
    shares = [
        Row(
            f"durable decision, a receipt each, {ours} connections / bare echo",
            ratio(seen[ours], seen[echo]),
            chart=WIDTH,
        )
        for ours, echo in each
    ]
    return [*shares, *(absolute(f"the same, {ours} connections, requests/s", seen[ours]) for ours, _ in each)]


def _memory(place: Path, say: Say) -> list[Row]:
    say("  memory")
    with qwed_server(place / "memory") as server:
        agent = server.register()
        traffic.decide(server.place, [agent], {})
        before = server.resident_mb
        lines = [_idle(server.place) for _ in range(IDLE_CONNECTIONS)]
        after = server.resident_mb
        for line in lines:
            line.close()
        agents = _registered(server, MANY_AGENTS)
        registered = server.resident_mb
        traffic.decide(server.place, agents, {}, count=MANY_AGENTS, steps=1)
        asked = server.resident_mb
    return [
        absolute("memory of one open connection, KB", [(after - before) * 1024 / IDLE_CONNECTIONS]),
        absolute(f"memory of {MANY_AGENTS:,} agents after registration, MB", [registered - after]),
        absolute("the same, after one decision each, MB", [asked - after]),
    ]


def _idle(place: tuple[str, int]) -> socket.socket:
    """Open a connection that has served one request."""
    line = socket.create_connection(place)
    line.sendall(b"GET /health HTTP/1.1\r\nHost: bench\r\n\r\n")
    line.recv(4096)
    return line


def _registered(server: Running, number: int) -> list[dict[str, Any]]:
    """Register agents over a few connections."""
    import msgspec

    found: list[dict[str, Any]] = []
    owner = {"X-API-Key": server.owner_key}

    def registrations(connection: int) -> Iterator[bytes]:
        for index in count():
            body = {"name": f"bench {connection} {index}", "principal_id": "bench", "type": "autonomous"}
            yield post("/agents/register", msgspec.json.encode(body), owner)

    streams = [registrations(connection) for connection in range(traffic.CONNECTIONS)]
    drive(
        *server.place,
        streams,
        count=number,
        expect=b"agent_token",
        keep=lambda answer: found.append(msgspec.json.decode(answer)),
    )
    return found

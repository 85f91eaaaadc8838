"""Durable decisions over HTTP compared with bare echo on the same server, from a second process on loopback.

The same agents run on each store: SQLite, and PostgreSQL with one and with two workers, with default `fsync` and
`synchronous_commit`. All servers run at once and are called in turn, so that they see the same conditions.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import traffic
from benchmarks.load import Load
from benchmarks.measure import figure, interleaved, ratio
from benchmarks.report import Aim, Row, Say, absolute, at_least, at_most
from benchmarks.servers import Running, echo_server, qwed_server
from tests.support.postgres_server import Postgres

ECHO, SQLITE, ONE, TWO = "bare echo", "SQLite", "PostgreSQL, 1 worker", "PostgreSQL, 2 workers"
RECEIPT, JWT, NEW = "a receipt each", "an ES256 JWT each", "new SQL each time"
AIMS: dict[str, Aim] = {RECEIPT: at_least(0.35), JWT: at_least(0.22), NEW: at_least(0.09)}
"""Targets for the embedded store."""
CHART = "durable decisions over HTTP / bare echo"


class Contender(NamedTuple):
    """One store with one kind of request."""

    store: str
    way: str

    @property
    def name(self) -> str:
        return f"durable decision, {self.store}, {self.way}"


def rows(rounds: int, say: Say) -> list[Row]:
    """Return requests a second as a share of the echo's, and tail latencies."""
    with _rig() as (loads, servers):
        for run in loads.values():
            run()  # warm up caches and connections
        say("  warm")
        idle = absolute(
            "idle server on SQLite, resident MB, without engine workers", [servers[SQLITE].resident_mb], at_most(120)
        )
        seen = interleaved(loads, rounds, say)
    return [*_shares(seen), *_tails(seen), *_rates(seen), idle]


@contextmanager
def _rig() -> Iterator[tuple[dict[str, Callable[[], Load]], dict[str, Running]]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        echo = stack.enter_context(echo_server())
        postgres = stack.enter_context(Postgres(in_memory=False))
        servers = {SQLITE: stack.enter_context(qwed_server(Path(folder) / "sqlite"))}
        for name, workers in ((ONE, 1), (TWO, 2)):
            arguments = ["--database", postgres.database(), "--workers", str(workers)]
            servers[name] = stack.enter_context(qwed_server(Path(folder) / f"postgres{workers}", arguments))
        agents = {name: [server.register()] for name, server in servers.items()}
        loads: dict[str, Callable[[], Load]] = {ECHO: partial(traffic.echo, echo, agents[SQLITE][0])}
        for name, server in servers.items():
            for way, options, query in ((RECEIPT, {}, traffic.same), (JWT, traffic.JWT, traffic.same)):
                loads[Contender(name, way).name] = partial(traffic.decide, server.place, agents[name], options, query)
        sqlite = servers[SQLITE]
        loads[Contender(SQLITE, NEW).name] = partial(traffic.decide, sqlite.place, agents[SQLITE], {}, traffic.new_sql)
        yield loads, servers


def _shares(seen: dict[str, list[Load]]) -> list[Row]:
    echo = [load.per_second for load in seen[ECHO]]
    aims = {Contender(SQLITE, way).name: aim for way, aim in AIMS.items()}
    return [
        Row(f"{name} / {ECHO}", ratio([load.per_second for load in loads], echo), aims.get(name), chart=CHART)
        for name, loads in seen.items()
        if name != ECHO
    ]


def _tails(seen: dict[str, list[Load]]) -> list[Row]:
    """Return p99 / p50, with the echo's own as the target."""
    tails = {name: figure([load.p99_ms / load.p50_ms for load in loads]) for name, loads in seen.items()}
    aim = at_most(round(tails[ECHO].median, 2))
    at = f"p99 / p50 at {traffic.CONNECTIONS} connections"
    return [Row(f"{at}: {name}", tail, None if name == ECHO else aim) for name, tail in tails.items()]


def _rates(seen: dict[str, list[Load]]) -> list[Row]:
    found = []
    for name, loads in seen.items():
        found.append(absolute(f"{name}, requests/s", [load.per_second for load in loads]))
        found.append(absolute(f"{name}, p50 ms", [load.p50_ms for load in loads]))
    return found

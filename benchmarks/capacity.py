"""Capacity model: number of machines for a rate of decisions, and the first bottleneck.

The costs are measured in the same run: CPU time of our server and of PostgreSQL, stored bytes, bytes of write-ahead
log, and the duration of a commit, which is serial per log (that is, per organisation). The rest is arithmetic on stated
assumptions.
"""

import math
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg

import qwed
from benchmarks import traffic
from benchmarks.measure import figure
from benchmarks.report import Row, Say, absolute
from benchmarks.servers import Running, cpu_seconds, qwed_server
from qwed.gate import Gate
from qwed.store.group_commit import MAX_BATCH
from tests.support.metrics_scrape import Scrape
from tests.support.postgres_server import Postgres

CORES, BUSY = 16, 0.6
"""Cores of a machine and their target utilisation; above it, waiting grows faster than work."""
DISK_MB = 500
"""Megabytes a second that one database writes to its log without falling behind."""
RATES = (1_000, 100_000, 10_000_000)
_DECISIONS = 2_000
_ALONE = 500
_CONNECTIONS = 256
"""As on a server at its target load: the more requests wait, the more share one transaction."""


class Cost(NamedTuple):
    """Cost of one decision."""

    server_us: float
    database_us: float
    kept_bytes: float
    log_bytes: float
    """Bytes of PostgreSQL's write-ahead log."""
    commit_us: float
    """Duration of a commit with one decision."""
    further_us: float
    """Additional duration per further decision."""

    @property
    def one_log(self) -> float:
        """Decisions a second of one organisation's log, with full batches."""
        return MAX_BATCH / (self.commit_us + (MAX_BATCH - 1) * self.further_us) * 1e6


class Need(NamedTuple):
    """Resources for a rate."""

    servers: int
    databases: int
    logs: int
    """Minimum number of organisations the decisions must be spread over."""
    terabytes_a_day: float
    first: str
    """First bottleneck with one machine of each kind."""


def model(cost: Cost, rate: float) -> Need:
    """Return the machines for a rate of decisions."""
    core_us = 1e6 * CORES * BUSY
    loads = {
        "the processors of one server machine": rate * cost.server_us / core_us,
        "the processors of one database": rate * cost.database_us / core_us,
        "the write-ahead log of one database": rate * cost.log_bytes / (DISK_MB * 1e6),
        "the log of one organisation, which grows one commit at a time": rate / cost.one_log,
    }
    servers, processors, disk, logs = (max(1, math.ceil(load)) for load in loads.values())
    worst = max(loads, key=lambda name: loads[name])
    first = worst if loads[worst] > 1 else "nothing"
    return Need(servers, max(processors, disk), logs, rate * cost.kept_bytes * 86_400 / 1e12, first)


def table(cost: Cost) -> str:
    """Return Markdown with one line per rate."""
    head = (
        f"| decisions/s | server machines ({CORES} cores, {BUSY:.0%} busy) | databases | organisations, minimum "
        "| TB stored a day | first limit with one of each |\n|---|---|---|---|---|---|"
    )
    needs = ((rate, model(cost, rate)) for rate in RATES)
    lines = (
        f"| {rate:,} | {need.servers:,} | {need.databases:,} | {need.logs:,} "
        f"| {need.terabytes_a_day:,.2f} | {need.first} |"
        for rate, need in needs
    )
    return "\n".join([head, *lines])


def rows(rounds: int, say: Say) -> tuple[list[Row], Cost]:
    """Measure the stages of a decision in process and the cost of one on PostgreSQL."""
    say("  the stages of a decision")
    stages = _stages(rounds)
    say("  a decision on PostgreSQL")
    cost = _cost(rounds)
    measured = [
        absolute("a decision on PostgreSQL, CPU of the server, us", [cost.server_us]),
        absolute("the same, CPU of PostgreSQL, us", [cost.database_us]),
        absolute("the same, bytes stored", [cost.kept_bytes]),
        absolute("the same, bytes of write-ahead log", [cost.log_bytes]),
        absolute("the same, a commit of one, us", [cost.commit_us]),
        absolute("the same, each further decision in a commit, us", [cost.further_us]),
        absolute(f"the same, one organisation in commits of {MAX_BATCH}, decisions/s", [cost.one_log]),
    ]
    return [*(absolute(f"stage {name}, us of CPU", values) for name, values in stages.items()), *measured], cost


class _Watch:
    """Accumulates the CPU time of this thread per stage."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._stage = ""
        self._since = time.thread_time()

    def reach(self, stage: str) -> None:
        """Attribute the time since the last call to the previous stage."""
        now = time.thread_time()
        if self._stage:
            self.spent[self._stage] = self.spent.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now


def _stages(rounds: int) -> dict[str, list[float]]:
    """Return the microseconds of a decision with a receipt by stage, on average, with a store on disk."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, qwed.open(Path(folder) / "data") as gate:
        agent = gate.register_agent(name="bench", principal_id="bench", type="autonomous")
        for number in range(rounds + 1):
            watch = _Watch()
            gate.services = replace(gate.services, at_stage=watch.reach)
            _work(gate, str(agent.agent_id), f"c{number}_", watch)
            for name, spent in watch.spent.items() if number else ():
                found.setdefault(name, []).append(spent / _DECISIONS * 1e6)
    return found


def _work(gate: Gate, agent_id: str, talk: str, watch: _Watch) -> None:
    for n in range(_DECISIONS):
        action = {"type": "file_read", "target": f"reports/{n % 7}.csv"}
        context = {"conversation_id": f"{talk}{n // 50}", "step_number": n % 50 + 1}
        watch.reach("request parsing")
        answer = gate.verify_action(agent_id, action, context)
        watch.reach("outside the pipeline")
        if answer.decided != "APPROVED":
            raise RuntimeError(f"not approved: {dict(answer)}")


def _cost(rounds: int) -> Cost:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        postgres = stack.enter_context(Postgres(in_memory=False))
        address = postgres.database()
        server = stack.enter_context(qwed_server(Path(folder) / "data", ["--database", address]))
        decide = partial(traffic.decide, server.place, [server.register()], {})
        decide(connections=_CONNECTIONS)
        measured = [_costs_of(server, postgres, address, decide) for _ in range(rounds)]
    return Cost(*(figure(list(values)).median for values in zip(*measured, strict=True)))


def _costs_of(server: Running, postgres: Postgres, address: str, decide: Callable[..., object]) -> Cost:
    alone = _commits_of(server, lambda: decide(connections=1, count=_ALONE))
    with psycopg.connect(address, autocommit=True) as connection:
        before = (server.cpu_seconds(), cpu_seconds(postgres.pid), *_bytes(connection))
        together = _commits_of(server, lambda: decide(connections=_CONNECTIONS))
        after = (server.cpu_seconds(), cpu_seconds(postgres.pid), *_bytes(connection))
    ours, theirs, kept, logged = ((end - begin) / traffic.REQUESTS for begin, end in zip(before, after, strict=True))
    further = max(together.us - alone.us, 0.0) / max(together.leaves - alone.leaves, 1.0)
    return Cost(ours * 1e6, theirs * 1e6, kept, logged, alone.us, further)


class _Commits(NamedTuple):
    """Average duration and size of a commit."""

    us: float
    leaves: float


def _commits_of(server: Running, run: Callable[[], object]) -> _Commits:
    """Return the server's own commit statistics, with one worker."""
    scrape = Scrape(server.base, server.owner_key)
    names = ("qwed_commit_seconds_count", "qwed_commit_seconds_sum", "qwed_log_entries_committed_total")
    before = [scrape.value(name) for name in names]
    run()
    commits, seconds, leaves = (scrape.value(name) - was for name, was in zip(names, before, strict=True))
    return _Commits(seconds / commits * 1e6, leaves / commits)


def _bytes(connection: psycopg.Connection[tuple[int, int]]) -> tuple[int, int]:
    row = connection.execute("SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'").fetchone()
    assert row is not None
    return int(row[0]), int(row[1])

"""Run all benchmarks once, in interleaved rounds, and write a table and a plot to docs/.

`python -m benchmarks NAME...` runs single sections and prints them; with `--write` the page contains only these.
"""

import argparse
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    a2a_proxy,
    capacity,
    client,
    engines,
    health_under_load,
    in_process,
    log_append,
    messages,
    over_http,
    packs,
    policies,
    proxy,
    sandbox,
    scale,
    start_up,
)
from benchmarks.report import Row, Say, table

ROUNDS = 7
DOCS = Path(__file__).parent.parent / "docs"
PAGE, PLOT = DOCS / "benchmark.md", DOCS / "benchmark.png"
Section = Callable[[int, Say], list[Row]]

SECTIONS: dict[str, tuple[str, Section]] = {
    "inside": ("decisions in process, compared with Cedar and Casbin", in_process.rows),
    "policies": ("policies of up to 1,000 rules, compared with Cedar and bare CEL", policies.rows),
    "http": ("durable decisions over HTTP, compared with a bare echo", over_http.rows),
    "scale": ("with more history, agents and connections", scale.rows),
    "log": ("appending to a log of ten and of a million leaves, and verifying it", log_append.rows),
    "engines": ("engines and guards, compared with bandit and bare parsers", engines.rows),
    "messages": ("messages between agents, compared with bare parsing", messages.rows),
    "packs": ("the guards of the domain packs", packs.rows),
    "client": ("the Python client, compared with its HTTP library", client.rows),
    "start": ("time to start: the hook, the command line and the MCP proxy", start_up.rows),
    "mcp": ("the MCP proxy, compared with calling the server directly", proxy.rows),
    "a2a": ("the A2A proxy, compared with calling the agent directly", a2a_proxy.rows),
    "sandbox": ("the sandbox, compared with bare Python", sandbox.rows),
    "fire": ("under load: /health while engines process hostile inputs", health_under_load.rows),
}
CAPACITY = "capacity"


def main() -> int:
    """Run the requested sections; return 0 whatever the figures are, because a figure is not a test."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="NAME",
        help=f"sections to run: {', '.join([*SECTIONS, CAPACITY])} (default: all)",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"number of measurements (default {ROUNDS})")
    parser.add_argument("--write", action="store_true", help="write docs/ even if only some sections were run")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sections if name not in SECTIONS and name != CAPACITY]
    if unknown:
        parser.error(f"unknown section `{unknown[0]}`: use {', '.join([*SECTIONS, CAPACITY])}")
    measured, cost = _measure(arguments.sections or [*SECTIONS, CAPACITY], arguments.rounds)
    page = _page(measured, cost, arguments.rounds)
    print(page)
    if arguments.write or not arguments.sections:
        _write(page, measured)
    return 0


def _measure(names: list[str], rounds: int) -> tuple[dict[str, list[Row]], capacity.Cost | None]:
    measured: dict[str, list[Row]] = {}
    for number, name in enumerate((name for name in SECTIONS if name in names), 1):
        what, section = SECTIONS[name]
        _say(f"{number}: {what}")
        measured[what] = section(rounds, _say)
    if CAPACITY not in names:
        return measured, None
    _say("cost of a decision by stage, and number of machines")
    measured["cost of a decision"], cost = capacity.rows(rounds, _say)
    return measured, cost


def _page(measured: dict[str, list[Row]], cost: capacity.Cost | None, rounds: int) -> str:
    ratios = [row for rows in measured.values() for row in rows if row.ratio]
    parts = [_HEAD.format(python=platform.python_version(), day=datetime.now(UTC).date(), rounds=rounds)]
    if ratios:
        parts += ["## Ratios", table(ratios), "![bar chart of the ratios](benchmark.png)"]
    if cost is not None:
        parts += ["## How many machines", _MODEL.strip(), capacity.table(cost)]
    parts.append(
        "## Absolute figures\n\nThese hold for this machine and this run only. Do not compare them with another run."
    )
    for what, rows in measured.items():
        plain = [row for row in rows if not row.ratio]
        if plain:
            parts += [f"### {what[0].upper()}{what[1:]}", table(plain)]
    return "\n\n".join(parts) + "\n"


def _write(page: str, measured: dict[str, list[Row]]) -> None:
    from benchmarks.plot import draw

    PAGE.write_text(page)
    draw([row for rows in measured.values() for row in rows], PLOT)
    _say(f"written: {PAGE} and {PLOT}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


_HEAD = """\
# Benchmark

`make bench` wrote this page, in one run on {day} with Python {python}. Servers, databases and load generators shared
two virtual processors. Each value is the median of {rounds} interleaved rounds, with the lowest and the highest in
brackets. [Performance](performance.md) explains where the time goes, and why a target is missed."""

_MODEL = f"""
The table is computed from the [cost of a decision](#cost-of-a-decision). It assumes machines with {capacity.CORES}
cores that are {capacity.BUSY:.0%} busy, and databases that write {capacity.DISK_MB} MB of write-ahead log a second. The
log of one organisation grows one commit at a time, each with the largest number of decisions. So more machines do not
make one log faster. Decisions of different organisations are committed in parallel.
"""

if __name__ == "__main__":
    sys.exit(main())

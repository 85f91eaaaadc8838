"""`make bench`: everything measured once, in interleaved rounds; a table and a plot under docs/.

`python -m benchmarks NAME...` runs some sections alone and prints them; with `--write` the page is theirs alone.
"""

import argparse
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    a2a_proxy,
    appending,
    capacity,
    client,
    engines,
    in_process,
    messages,
    over_http,
    packs,
    proxy,
    sandbox,
    scale,
    under_fire,
)
from benchmarks.report import Row, Say, table

ROUNDS = 7
DOCS = Path(__file__).parent.parent / "docs"
PAGE, PLOT = DOCS / "benchmark.md", DOCS / "benchmark.png"
Section = Callable[[int, Say], list[Row]]

SECTIONS: dict[str, tuple[str, Section]] = {
    "inside": ("decisions in process, beside Cedar and Casbin", in_process.rows),
    "http": ("durable decisions over HTTP, beside bare echo on the same server", over_http.rows),
    "scale": ("with more history, agents and connections", scale.rows),
    "log": ("appending to a log of ten and of a million, and checking it", appending.rows),
    "engines": ("engines and guards, beside bandit and a bare parse", engines.rows),
    "messages": ("messages between agents, beside a bare reading of them", messages.rows),
    "packs": ("the guards of the domain packs", packs.rows),
    "client": ("the client beside the HTTP library it asks with", client.rows),
    "mcp": ("the MCP proxy beside the server it stands before", proxy.rows),
    "a2a": ("the A2A proxy beside the agent it stands before", a2a_proxy.rows),
    "sandbox": ("the sandbox beside a bare Python", sandbox.rows),
    "fire": ("under fire: /health while the engines work on bombs", under_fire.rows),
}
CAPACITY = "capacity"


def main() -> int:
    """Run what is asked for; 0 whatever the figures say, because a figure is not a test."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="NAME", help=f"of {', '.join([*SECTIONS, CAPACITY])}; all without"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each is measured (default {ROUNDS})")
    parser.add_argument("--write", action="store_true", help="write docs/ also where only some sections were run")
    asked = parser.parse_args()
    unknown = [name for name in asked.sections if name not in SECTIONS and name != CAPACITY]
    if unknown:
        parser.error(f"unknown section {unknown[0]}: known are {', '.join([*SECTIONS, CAPACITY])}")
    measured, cost = _measure(asked.sections or [*SECTIONS, CAPACITY], asked.rounds)
    page = _page(measured, cost, asked.rounds)
    print(page)
    if asked.write or not asked.sections:
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
    _say("what a decision costs, stage by stage, and how many machines that makes")
    measured["what a decision costs"], cost = capacity.rows(rounds, _say)
    return measured, cost


def _page(measured: dict[str, list[Row]], cost: capacity.Cost | None, rounds: int) -> str:
    ratios = [row for rows in measured.values() for row in rows if row.ratio]
    parts = [_HEAD.format(python=platform.python_version(), day=datetime.now(UTC).date(), rounds=rounds)]
    if ratios:
        parts += ["## Ratios", table(ratios), "![the ratios as bars](benchmark.png)"]
    if cost is not None:
        parts += ["## How many machines", _MODEL.strip(), capacity.table(cost)]
    parts.append("## Absolute figures\n\nOf this machine in this run, to be compared with nothing else.")
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

Written by `make bench`, in one run on {day}: Python {python}, two shared virtual processors, on which the servers,
the databases and whoever asks them run together. Median of {rounds} interleaved rounds (lowest to highest). Where the
time goes, and why an aim was missed, is in [performance](performance.md)."""

_MODEL = f"""
Arithmetic over the costs below: a machine has {capacity.CORES} cores that should be {capacity.BUSY:.0%} busy, one
database writes {capacity.DISK_MB} MB of its log a second, and the log of one organisation grows one commit at a time,
each with as many decisions as a commit may have: so more machines do not help it, more organisations do.
"""

if __name__ == "__main__":
    sys.exit(main())

"""Where the processor's time of a test run goes: `pytest --spending FILE` has a line for each phase of each test.

    {"what": "tests/unit/test_rota.py::test_a_turn_is_taken", "phase": "call", "seconds": 0.013}

Counted is what a test process and everything below it used, whether it has ended or still runs.
"""

import json
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

_TICK = os.sysconf("SC_CLK_TCK")
_OPTION = "--spending"
_MANY = 60
"""Threads; with more of them it is quicker to look at every process of the machine."""


def add_option(parser: pytest.Parser) -> None:
    """Let the run be told where to write it."""
    parser.addoption(_OPTION, metavar="FILE", help="write the processor's seconds of each test and fixture")


def register(config: pytest.Config) -> None:
    """Count, if somebody wants to know; each test process for itself."""
    wanted = config.getoption(_OPTION)
    if wanted:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        config.pluginmanager.register(Spending(Path(f"{wanted}.{worker}")), "spending")


class Spending:
    """What was spent up to now, and since when."""

    def __init__(self, file: Path) -> None:
        self.out = file.open("w")
        self.seen = 0.0

    def _write(self, what: str, phase: str, seconds: float) -> None:
        self.out.write(json.dumps({"what": what, "phase": phase, "seconds": round(seconds, 4)}) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        outcome = yield
        self._write("collection", "start", spent())
        return outcome

    def pytest_runtest_logstart(self) -> None:
        self.seen = spent()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        now = spent()
        self._write(report.nodeid, report.when or "", now - self.seen)
        self.seen = now

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = spent()
        try:
            return (yield)
        finally:
            name = f"{fixturedef.baseid}::{fixturedef.argname}"
            self._write(name, f"fixture of a {fixturedef.scope}", spent() - before)

    def pytest_sessionfinish(self) -> None:
        self._write("everything", "end", spent())

    def pytest_unconfigure(self) -> None:
        self.out.close()


def spent() -> float:
    """The processor's seconds of this process and of all below it, in user and in kernel mode."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + sum(_running_below("self"))


def _running_below(process: str) -> Iterator[float]:
    for child in _children_of(process):
        figures = _figures(child)
        # In user and in kernel mode, its own and of those it waited for.
        yield sum(map(int, figures[11:15])) / _TICK
        yield from _running_below(child)


def _children_of(process: str) -> list[str]:
    threads = _listed(f"/proc/{process}/task")
    if len(threads) < _MANY:
        return " ".join(_read(f"/proc/{process}/task/{thread}/children") for thread in threads).split()
    parent = str(os.getpid()) if process == "self" else process
    return [other for other in _listed("/proc") if other.isdigit() and _figures(other)[1:2] == [parent]]


def _figures(process: str) -> list[str]:
    """What the kernel tells of a process, after its name, which may hold anything."""
    return _read(f"/proc/{process}/stat").rpartition(")")[2].split()


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []  # it has ended meanwhile


def _read(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""


def main(files: list[str]) -> None:
    """Print what was spent in each module, each test and each fixture of these files, the most first."""
    rows = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    phases = ("setup", "call", "teardown")
    for title, named in (
        (
            "directories",
            lambda row: "/".join(row["what"].partition("::")[0].split("/")[:3]) if row["phase"] in phases else None,
        ),
        ("modules", lambda row: row["what"].partition("::")[0] if row["phase"] in phases else None),
        ("tests", lambda row: row["what"] if row["phase"] in phases else None),
        ("fixtures", lambda row: row["what"] + " " + row["phase"] if row["phase"] not in phases else None),
    ):
        sums: dict[str, list[float]] = {}
        for row in rows:
            name = named(row)
            if name is not None:
                sums.setdefault(name, []).append(row["seconds"])
        print(f"\n{title}: {sum(map(sum, sums.values())):.1f} s")
        for name, seconds in sorted(sums.items(), key=lambda each: -sum(each[1]))[:120]:
            print(f"{sum(seconds):8.1f} s {len(seconds):6} {name}")


if __name__ == "__main__":
    main(sys.argv[1:])

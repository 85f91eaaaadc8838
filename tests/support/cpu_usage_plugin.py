"""CPU usage report of a test run: `pytest --spending FILE` writes a line for each phase of each test.

    {"what": "tests/unit/test_fair_queue.py::test_a_turn_is_taken", "phase": "call", "seconds": 0.013}

It counts the CPU time of a test process and of all its descendants, running or ended.
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
_MAX_THREADS = 60
"""Number of threads above which it is faster to scan every process of the machine."""


def add_option(parser: pytest.Parser) -> None:
    """Add the option for the output file."""
    parser.addoption(_OPTION, metavar="FILE", help="write the processor's seconds of each test and fixture")


def register(config: pytest.Config) -> None:
    """Start counting if the option is set; each test process counts for itself."""
    target = config.getoption(_OPTION)
    if target:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        config.pluginmanager.register(CpuUsageRecorder(Path(f"{target}.{worker}")), "spending")


class CpuUsageRecorder:
    """Recorder of the CPU time used since the previous phase."""

    def __init__(self, file: Path) -> None:
        self.out = file.open("w")
        self.seen = 0.0

    def _write(self, what: str, phase: str, seconds: float) -> None:
        self.out.write(json.dumps({"what": what, "phase": phase, "seconds": round(seconds, 4)}) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        outcome = yield
        self._write("collection", "start", cpu_seconds())
        return outcome

    def pytest_runtest_logstart(self) -> None:
        self.seen = cpu_seconds()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        now = cpu_seconds()
        self._write(report.nodeid, report.when or "", now - self.seen)
        self.seen = now

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = cpu_seconds()
        try:
            return (yield)
        finally:
            name = f"{fixturedef.baseid}::{fixturedef.argname}"
            self._write(name, f"fixture of a {fixturedef.scope}", cpu_seconds() - before)

    def pytest_sessionfinish(self) -> None:
        self._write("everything", "end", cpu_seconds())

    def pytest_unconfigure(self) -> None:
        self.out.close()


def cpu_seconds() -> float:
    """Return the user and system CPU seconds of this process and its descendants."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + sum(_running_below("self"))


def _running_below(process: str) -> Iterator[float]:
    for child in _children_of(process):
        figures = _figures(child)
        # User and system time, its own and that of reaped children.
        yield sum(map(int, figures[11:15])) / _TICK
        yield from _running_below(child)


def _children_of(process: str) -> list[str]:
    threads = _listed(f"/proc/{process}/task")
    if len(threads) < _MAX_THREADS:
        return " ".join(_read(f"/proc/{process}/task/{thread}/children") for thread in threads).split()
    parent = str(os.getpid()) if process == "self" else process
    return [other for other in _listed("/proc") if other.isdigit() and _figures(other)[1:2] == [parent]]


def _figures(process: str) -> list[str]:
    """Return the fields of `/proc/PID/stat` after the process name, which may contain anything."""
    return _read(f"/proc/{process}/stat").rpartition(")")[2].split()


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []  # it has ended since


def _read(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""


def main(files: list[str]) -> None:
    """Print the CPU time of each module, test and fixture in these files, largest first."""
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

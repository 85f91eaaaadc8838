"""A server that ends itself, as if its power were cut, the n-th time a named place is reached.

The application is the real one; only the hook that the kernel offers and the writer's transaction are watched.
"""

import argparse
import os
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

import uvicorn

from qwed.api.app import App
from qwed.cli.serve import _listen
from qwed.kernel.wiring import open_services
from qwed.settings import settings_from
from qwed.store import writer
from qwed.store.log import Integration, Sequencer
from qwed.store.writer import WRITE_BATCH, Write

BEFORE_COMMIT, INSIDE_BATCH, AFTER_COMMIT = "before commit", "inside batch", "after commit"
"""Around the statement that commits: the batch itself where it stands alone, COMMIT where other statements go first."""
BEHIND_LEAF = "behind the leaf"
"""The leaf is written and the commit is yet to come; every decision and every change has one."""

_CUTS = {
    # The tallies are written last, so everything else of the batch has been written when they begin.
    INSIDE_BATCH: "CREATE TEMP TRIGGER cut BEFORE INSERT ON main.tallies BEGIN SELECT reach_inside(); END",
    BEHIND_LEAF: "CREATE TEMP TRIGGER cut AFTER INSERT ON main.activities BEGIN SELECT reach_inside(); END",
}


class Fuse:
    """Counts how often its place is reached; the last time is the last thing this process does."""

    def __init__(self, place: str, times: int) -> None:
        self.place = place
        self._left = times

    def reach(self, place: str) -> None:
        if place != self.place:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Serve until the fuse burns."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--place", required=True)
    parser.add_argument("--times", type=int, required=True)
    parser.add_argument("--from-start", action="store_true", help="watch the first start too")
    given = parser.parse_args()
    fuse = Fuse(given.place, given.times)
    if given.from_start:
        _watch_commits(fuse)
    opened = open_services(settings_from(data_dir=given.data_dir))
    if not given.from_start:
        _watch_commits(fuse)
    app = App(replace(opened.services, at_stage=fuse.reach))
    listening = _listen("127.0.0.1", 0)
    host, port = listening.getsockname()
    print(f"listens on http://{host}:{port}", flush=True)
    # Without lifespan the engine workers start with the first question for them, and none is asked.
    uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off")).run(sockets=[listening])


def _watch_commits(fuse: Fuse) -> None:
    real = writer.write_batch
    prepared: list[sqlite3.Connection] = []

    def watched(connection: sqlite3.Connection, batch: list[Write], sequencer: Sequencer) -> Integration:
        if fuse.place in _CUTS and connection not in prepared:
            prepared.append(connection)
            _watch_inside(connection, fuse)
        return real(_Eyes(connection, fuse), batch, sequencer)  # type: ignore[arg-type]  # one that is watched

    writer.write_batch = watched


def _watch_inside(connection: sqlite3.Connection, fuse: Fuse) -> None:
    connection.create_function("reach_inside", 0, lambda: fuse.reach(fuse.place))
    connection.execute(_CUTS[fuse.place])
    # With no room to keep pages back, what is not committed yet is already on its way to the disk.
    connection.execute("PRAGMA cache_size = 1")


class _Eyes:
    """A connection whose commits are seen."""

    def __init__(self, connection: sqlite3.Connection, fuse: Fuse) -> None:
        self._connection = connection
        self._fuse = fuse

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        commits = statement == "COMMIT" or (statement == WRITE_BATCH and not self.in_transaction)
        if commits:
            self._fuse.reach(BEFORE_COMMIT)
        cursor = self._connection.execute(statement, *values)  # type: ignore[arg-type]  # rows as they come
        if commits:
            self._fuse.reach(AFTER_COMMIT)
        return cursor


if __name__ == "__main__":
    main()

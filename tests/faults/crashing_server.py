"""Server that kills itself, as if its power were cut, the n-th time a named place is reached.

The application is the real one; only the kernel's stage hook and the writer's transaction are observed.
"""

import argparse
import os
import signal
import socket
import sqlite3
from dataclasses import replace
from pathlib import Path

import uvicorn

from qwed.api.app import App
from qwed.cli.multiprocess.process import bind_socket
from qwed.kernel.bootstrap import open_services
from qwed.settings import settings_from
from qwed.store import group_commit
from qwed.store.group_commit import WRITE_BATCH, BatchRows
from qwed.store.log import Integration, ReadFrontier, Sequencer

BEFORE_COMMIT, INSIDE_BATCH, AFTER_COMMIT = "before commit", "inside batch", "after commit"
"""Places around the committing statement: the batch itself if it stands alone, COMMIT otherwise."""
AFTER_LEAF = "behind the leaf"
"""Place after the leaf is written and before the commit; every decision and every change has one."""

_CUTS = {
    # Daily totals are written last, so the rest of the batch is written when the trigger fires.
    INSIDE_BATCH: "CREATE TEMP TRIGGER cut BEFORE INSERT ON main.daily_totals BEGIN SELECT reach_inside(); END",
    AFTER_LEAF: "CREATE TEMP TRIGGER cut AFTER INSERT ON main.activities BEGIN SELECT reach_inside(); END",
}


class CrashPoint:
    """Counter of a place that kills the process when it reaches zero."""

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
    """Serve until the crash point is reached."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--place", required=True)
    parser.add_argument("--times", type=int, required=True)
    parser.add_argument("--from-start", action="store_true", help="watch the first start too")
    options = parser.parse_args()
    crash_point = CrashPoint(options.place, options.times)
    if options.from_start:
        _watch_commits(crash_point)
    opened = open_services(settings_from(data_dir=options.data_dir))
    if not options.from_start:
        _watch_commits(crash_point)
    app = App(replace(opened.services, at_stage=crash_point.reach))
    listening = bind_socket("127.0.0.1", 0)
    listening.listen(socket.SOMAXCONN)
    host, port = listening.getsockname()
    print(f"listens on http://{host}:{port}", flush=True)
    # Without lifespan the engine workers start with the first request for them, and there is none.
    uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off")).run(sockets=[listening])


def _watch_commits(crash_point: CrashPoint) -> None:
    real = group_commit.write_batch
    prepared: list[sqlite3.Connection] = []

    def watched(
        connection: sqlite3.Connection, rows: BatchRows, sequencer: Sequencer, read: ReadFrontier
    ) -> Integration:
        if crash_point.place in _CUTS and connection not in prepared:
            prepared.append(connection)
            _watch_inside(connection, crash_point)
        return real(_CommitObserver(connection, crash_point), rows, sequencer, read)  # type: ignore[arg-type]  # one that is watched

    group_commit.write_batch = watched


def _watch_inside(connection: sqlite3.Connection, crash_point: CrashPoint) -> None:
    connection.create_function("reach_inside", 0, lambda: crash_point.reach(crash_point.place))
    connection.execute(_CUTS[crash_point.place])
    # With a minimal page cache, uncommitted pages are already written to the disk.
    connection.execute("PRAGMA cache_size = 1")


class _CommitObserver:
    """Connection that reports its commits to the crash point."""

    def __init__(self, connection: sqlite3.Connection, fuse: CrashPoint) -> None:
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

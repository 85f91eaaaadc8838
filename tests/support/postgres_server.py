"""Real PostgreSQL for tests: `shared()` is one for a whole test run, `Postgres` one for a single test.

    url = shared(place).database()          # a new database, in milliseconds
    with Postgres() as own:                 # can be stopped, frozen and restarted
        own.restart_immediate()

No server outlives the tests that use it, even if they are killed: see `postgres_reaper`.
"""

import fcntl
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import postgres_reaper, temp_directories
from tests.support.postgres_binaries import ENVIRONMENT, installation, run_as, server_user, within_reach

_PATIENCE = 60
_USER = "postgres"
_numbers = itertools.count(1)
_SETTINGS: Mapping[str, str] = {
    "max_connections": "300",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "jit": "off",
    "listen_addresses": "",
}
_UNSAFE: Mapping[str, str] = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Databases:
    """Databases of the server that runs in this home."""

    def __init__(self, home: Path, port: int | None = None) -> None:
        self.home = home
        self.port = port

    def url(self, name: str = _USER) -> str:
        """Return the URL of a database."""
        if self.port is not None:
            return f"postgresql://{_USER}@127.0.0.1:{self.port}/{name}"
        return f"postgresql://{_USER}@/{name}?host={self.home}"

    def database(self, like: str | None = None, encoding: str = "UTF8") -> str:
        """Create a database, empty or a copy of the one at this URL, and return its URL."""
        name = f"t{os.getpid()}_{next(_numbers)}"
        template = database_name(like) if like else "template0"
        self.say(f'CREATE DATABASE "{name}" TEMPLATE "{template}" ENCODING \'{encoding}\'')
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop a database; open connections are terminated."""
        self.say(f'DROP DATABASE IF EXISTS "{database_name(url)}" WITH (FORCE)')

    def rename(self, url: str, new_url: str) -> None:
        """Rename a database to the unused name in another URL."""
        self.say(f'ALTER DATABASE "{database_name(url)}" RENAME TO "{database_name(new_url)}"')

    @contextmanager
    def closed(self, url: str) -> Iterator[None]:
        """Terminate all connections to a database, and refuse new ones inside the block."""
        name = database_name(url)
        self.say(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
        self.say(f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'")
        try:
            yield
        finally:
            self.say(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')

    def say(self, statement: str) -> None:
        """Run a statement as the owner of the server."""
        import psycopg  # not where CrewAI is tested

        with psycopg.connect(self.url(), autocommit=True, connect_timeout=_PATIENCE) as connection:
            connection.execute(statement.encode())


class Postgres(Databases):
    """PostgreSQL server of one test, in memory where there is space; it ends with the last process that uses it."""

    def __init__(
        self,
        *,
        durable: bool = True,
        tcp: bool = False,
        in_memory: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """With `durable=False` nothing is forced to disk; without `in_memory` the data is on a real disk. With `tcp` it
        listens on 127.0.0.1."""
        super().__init__(_new_home(in_memory=in_memory), _free_port() if tcp else None)
        self.data = self.home / "data"
        self.life = _lock_server(self.home / "life")
        self.settings = {**_SETTINGS, **({} if durable else _UNSAFE), **(settings or {})}
        self._keeper: subprocess.Popen[bytes] | None = None
        self._who = server_user()
        self.programs = within_reach(installation(), self.home) / "bin"
        try:
            self._make()
            self.start()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        # It takes half a second in memory, so nothing is cached for the next run.
        how = ("--no-sync", "--auth=trust", "--locale=C", "--encoding=UTF8", "--no-instructions")
        run_as(self._who, [self.programs / "initdb", *how, "--username", _USER, "--pgdata", self.data])

    def start(self) -> None:
        """Start it, and wait until it listens."""
        assert self._keeper is None, "it runs already"
        self._keeper = subprocess.Popen(
            [sys.executable, "-IS", postgres_reaper.__file__, self.home, *map(str, self._who), *self._command()],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the tests, which still need the server to clean up.
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        with self._keeper.stdout as output:
            if output.readline() != b"ready\n":
                self._reap()
                raise RuntimeError(f"PostgreSQL did not start: {(self.home / 'log').read_text()}")

    def _command(self) -> list[str]:
        over_tcp = {} if self.port is None else {"listen_addresses": "127.0.0.1", "port": str(self.port)}
        settings = {"unix_socket_directories": str(self.home), **self.settings, **over_tcp}
        return [
            str(self.programs / "postgres"),
            *("-D", str(self.data)),
            *(f"--{name}={value}" for name, value in settings.items()),
        ]

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def stop(self, with_signal: signal.Signals = signal.SIGINT) -> None:
        """Shut it down, terminating all connections, and wait until it has ended."""
        os.kill(self.pid, with_signal)
        self._reap()

    def restart_immediate(self) -> None:
        """Restart as `pg_ctl restart -m immediate`: every process ends at once, and the log is replayed."""
        self.stop(signal.SIGQUIT)
        self.start()

    def freeze(self) -> None:
        """Stop every process, as a paused machine does: connections stay open without answers."""
        _freeze(self.pid)
        # It starts no new processes from here on.
        for child in children(self.pid):
            _freeze(child)

    def thaw(self) -> None:
        """Continue the stopped processes."""
        for process in (*children(self.pid), self.pid):
            _signal(process, signal.SIGCONT)

    def close(self) -> None:
        """Stop it if it runs, and remove its files."""
        if self._keeper is not None:
            self.thaw()
            self.stop(signal.SIGQUIT)
        os.close(self.life)
        shutil.rmtree(self.home)

    def detach(self) -> None:
        """Let it outlive this process, which does not wait for it."""
        assert self._keeper is not None
        # Otherwise Python warns about a process that still runs.
        self._keeper.returncode = 0

    def kill_keeper(self) -> None:
        """Kill the process that keeps it, and not the server itself."""
        assert self._keeper is not None
        self._keeper.kill()
        self._reap()

    def _reap(self) -> None:
        assert self._keeper is not None
        self._keeper.wait(timeout=_PATIENCE)
        self._keeper = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()


@cache
def shared(place: Path) -> Databases:
    """Return the one server of all processes that pass the same place; it ends with the last of them."""
    with (place / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = place / "postgres.home"
        running = _join_server(Path(note.read_text())) if note.exists() else None
        if running is not None:
            return running
        started = Postgres()
        started.detach()
        note.write_text(str(started.home))
    return started


def run_directory(base: Path) -> Path:
    """Return a directory shared by all processes of a test run, from the temporary one of this process."""
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def database_name(url: str) -> str:
    """Return the name of the database in one of our URLs."""
    return url.partition("?")[0].rpartition("/")[2]


def _join_server(home: Path) -> Databases | None:
    """Return the server in that home, which now lives as long as this process; None if it is about to end."""
    try:
        descriptor = os.open(home / "life", os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Databases(home) if (home / "data" / "postmaster.pid").exists() else None


def _lock_server(life: Path) -> int:
    """Mark the server as used while this process lives or the descriptor is open."""
    descriptor = os.open(life, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _new_home(*, in_memory: bool) -> Path:
    roomy = (
        in_memory
        and temp_directories.MEMORY.is_dir()
        and shutil.disk_usage(temp_directories.MEMORY).free >= temp_directories.ENOUGH
    )
    home = Path(tempfile.mkdtemp(prefix="qwed-postgres-", dir=temp_directories.MEMORY if roomy else None))
    # Every process of the test run may use the socket, also an unprivileged server; the data is private.
    home.chmod(0o755)
    os.chown(home, *server_user())
    return home


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def children(parent: int) -> list[int]:
    """Return the running child processes of this process."""
    return [int(pids.name) for pids in Path("/proc").iterdir() if pids.name.isdigit() and _parent_of(pids) == parent]


def _parent_of(process: Path) -> int | None:
    try:
        # The program name is in parentheses and may contain anything.
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None  # it has ended since


def _freeze(process: int) -> None:
    """Stop a process and wait until it is stopped: the signal alone returns earlier."""
    _signal(process, signal.SIGSTOP)
    until = time.monotonic() + _PATIENCE
    while state_of(process) not in ("T", "Z", "") and time.monotonic() < until:
        time.sleep(0.001)  # it is not a child of this process, so it cannot be waited for


def state_of(process: int) -> str:
    """Return the kernel's state letter of a process, or an empty string if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended since
        os.kill(process, number)

"""A real PostgreSQL for tests: `shared()` is one for a whole test run, `Postgres` one of a test's own.

    url = shared(place).database()          # a fresh database, in milliseconds
    with Postgres() as own:                 # to be stopped, frozen and restarted at will
        own.restart_immediate()

No server outlives the tests that use it, even if they are killed: see `postgres_keeper`.
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

from tests.support import places, postgres_keeper
from tests.support.postgres_binaries import ENVIRONMENT, installation, person, run_as, within_reach

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
    """A server that somebody runs in this home: fresh databases, and their addresses."""

    def __init__(self, home: Path, port: int | None = None) -> None:
        self.home = home
        self.port = port

    def url(self, name: str = _USER) -> str:
        """The address of a database."""
        if self.port is not None:
            return f"postgresql://{_USER}@127.0.0.1:{self.port}/{name}"
        return f"postgresql://{_USER}@/{name}?host={self.home}"

    def database(self, like: str | None = None, encoding: str = "UTF8") -> str:
        """The address of a new database: an empty one, or a copy of that which this address names."""
        name = f"t{os.getpid()}_{next(_numbers)}"
        template = named_by(like) if like else "template0"
        self.say(f'CREATE DATABASE "{name}" TEMPLATE "{template}" ENCODING \'{encoding}\'')
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database; whoever is still connected is thrown out."""
        self.say(f'DROP DATABASE IF EXISTS "{named_by(url)}" WITH (FORCE)')

    def rename(self, url: str, wanted: str) -> None:
        """Give a database the name in another address, which nothing else has."""
        self.say(f'ALTER DATABASE "{named_by(url)}" RENAME TO "{named_by(wanted)}"')

    @contextmanager
    def closed(self, url: str) -> Iterator[None]:
        """Throw everybody out of a database, and let nobody in meanwhile."""
        name = named_by(url)
        self.say(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
        self.say(f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'")
        try:
            yield
        finally:
            self.say(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')

    def say(self, statement: str) -> None:
        """What whoever owns the server tells it."""
        import psycopg  # not where CrewAI is tested

        with psycopg.connect(self.url(), autocommit=True, connect_timeout=_PATIENCE) as connection:
            connection.execute(statement.encode())


class Postgres(Databases):
    """A server of one's own, in memory where there is room; it ends with the last process that uses it."""

    def __init__(
        self,
        *,
        durable: bool = True,
        tcp: bool = False,
        in_memory: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """With `durable=False` nothing is forced to the disk, which without `in_memory` is a real one.

        With `tcp` it is reached over 127.0.0.1.
        """
        super().__init__(_new_home(in_memory=in_memory), _free_port() if tcp else None)
        self.data = self.home / "data"
        self.life = _in_use(self.home / "life")
        self.settings = {**_SETTINGS, **({} if durable else _UNSAFE), **(settings or {})}
        self._keeper: subprocess.Popen[bytes] | None = None
        self._who = person()
        self._programs = within_reach(installation(), self.home) / "bin"
        try:
            self._make()
            self.start()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        # Half a second in memory: nothing to keep for the next time.
        how = ("--no-sync", "--auth=trust", "--locale=C", "--encoding=UTF8", "--no-instructions")
        run_as(self._who, [self._programs / "initdb", *how, "--username", _USER, "--pgdata", self.data])

    def start(self) -> None:
        """Start it, and wait until it listens."""
        assert self._keeper is None, "it runs already"
        self._keeper = subprocess.Popen(
            [sys.executable, "-IS", postgres_keeper.__file__, self.home, *map(str, self._who), *self._command()],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # A terminal's interrupt is for the tests, which still need the server to clean up.
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        with self._keeper.stdout as said:
            if said.readline() != b"ready\n":
                self._reap()
                raise RuntimeError(f"PostgreSQL did not start: {(self.home / 'log').read_text()}")

    def _command(self) -> list[str]:
        over_tcp = {} if self.port is None else {"listen_addresses": "127.0.0.1", "port": str(self.port)}
        settings = {"unix_socket_directories": str(self.home), **self.settings, **over_tcp}
        return [
            str(self._programs / "postgres"),
            *("-D", str(self.data)),
            *(f"--{name}={value}" for name, value in settings.items()),
        ]

    @property
    def pid(self) -> int:
        """The process that listens."""
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def stop(self, with_signal: signal.Signals = signal.SIGINT) -> None:
        """Stop it in good order, throwing out whoever is connected, and wait until it has ended."""
        os.kill(self.pid, with_signal)
        self._reap()

    def restart_immediate(self) -> None:
        """As `pg_ctl restart -m immediate`: every process ends at once, and the log is replayed."""
        self.stop(signal.SIGQUIT)
        self.start()

    def freeze(self) -> None:
        """Stop every process of it where it stands, as a machine does that is paused: connections stay, mute."""
        _freeze(self.pid)
        # From here on it has no new ones.
        for child in children(self.pid):
            _freeze(child)

    def thaw(self) -> None:
        """Let what was frozen go on."""
        for process in (*children(self.pid), self.pid):
            _signal(process, signal.SIGCONT)

    def close(self) -> None:
        """End it, if it runs, and remove what it wrote."""
        if self._keeper is not None:
            self.thaw()
            self.stop(signal.SIGQUIT)
        os.close(self.life)
        shutil.rmtree(self.home)

    def outlive(self) -> None:
        """It may live longer than this process, which does not wait for it."""
        assert self._keeper is not None
        # Otherwise Python complains of a process that still runs.
        self._keeper.returncode = 0

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
    """The one server of all who name the same place; it ends with the last of their processes."""
    with (place / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = place / "postgres.home"
        running = _joined(Path(note.read_text())) if note.exists() else None
        if running is not None:
            return running
        started = Postgres()
        started.outlive()
        note.write_text(str(started.home))
    return started


def place_of_a_run(base: Path) -> Path:
    """A directory that all processes of a test run know, from the temporary one of this process."""
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def named_by(url: str) -> str:
    """The name of the database in one of our addresses."""
    return url.partition("?")[0].rpartition("/")[2]


def _joined(home: Path) -> Databases | None:
    """The server in that home, which now lives as long as we do; none if its keeper is about to end it."""
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


def _in_use(life: Path) -> int:
    """Says that we use the server, for as long as this process lives or the descriptor is open."""
    descriptor = os.open(life, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _new_home(*, in_memory: bool) -> Path:
    roomy = in_memory and places.MEMORY.is_dir() and shutil.disk_usage(places.MEMORY).free >= places.ENOUGH
    home = Path(tempfile.mkdtemp(prefix="qwed-postgres-", dir=places.MEMORY if roomy else None))
    # The socket is for everybody of the test run, also for a server that gave its powers up; the data is closed.
    home.chmod(0o755)
    os.chown(home, *person())
    return home


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def children(parent: int) -> list[int]:
    """The processes that this one has started and that have not ended."""
    return [
        int(found.name) for found in Path("/proc").iterdir() if found.name.isdigit() and _parent_of(found) == parent
    ]


def _parent_of(process: Path) -> int | None:
    try:
        # The name of the program stands in parentheses and may hold anything.
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None  # it has ended meanwhile


def _freeze(process: int) -> None:
    """Stop a process and come back when it stands: the signal alone comes back before that."""
    _signal(process, signal.SIGSTOP)
    until = time.monotonic() + _PATIENCE
    while state_of(process) not in ("T", "Z", "") and time.monotonic() < until:
        time.sleep(0.001)  # it is nobody's child here, so there is nothing to wait for


def state_of(process: int) -> str:
    """The letter the kernel has for what a process does; none for one that is no more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended meanwhile
        os.kill(process, number)

"""Several real qwed servers on one database in PostgreSQL, which are one to whoever asks.

with two_servers(place, url) as fleet:      # A and B, each at an address of its own
    fleet.client(0).post(...)
with two_workers(place, url) as fleet:      # `qwed serve --workers 2`: who answers is the kernel's to say
    ...
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg

from tests.support.postgres_server import Postgres, children, named_by
from tests.support.relay import Relay
from tests.support.server import SERVE, Server

Json = dict[str, Any]

_UNLIMITED = {"QWED_RATE_LIMIT_PER_KEY": "0"}
"""What is drilled is the store; how often a key may ask is counted elsewhere."""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name LIKE 'qwed%%'"


class Fleet:
    """Servers on one database, with one data directory that holds their keys."""

    def __init__(self, directory: Path, database_url: str, *options: str, servers: int = 1, **settings: str) -> None:
        self.data_dir = directory / "data"
        self.database_url = database_url
        self.servers: list[Server] = []
        self._command = (*SERVE, "--database", database_url, *options)
        self._settings = _UNLIMITED | settings
        self._clients: list[httpx.Client] = []
        self.heads: list[Json] = []
        """What somebody outside has kept of the log."""
        for _ in range(servers):
            self._start()

    def _start(self) -> None:
        server = Server(self.data_dir, self._command, **self._settings)
        self.servers.append(server)
        client = httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=60)
        self._clients.append(client)

    @property
    def urls(self) -> list[str]:
        return [server.base_url for server in self.servers]

    @property
    def owner_key(self) -> str:
        return self.servers[0].owner_key

    @property
    def log(self) -> str:
        """What they have said."""
        return self.servers[0].log.read_text()

    def client(self, number: int = 0) -> httpx.Client:
        """The owner, asking one of them."""
        return self._clients[number]

    def register(self, **fields: Any) -> Json:
        """A new agent."""
        response = self.client().post("/agents/register", json={"name": "a", "principal_id": "p", **fields})
        assert response.status_code == 201, response.text
        made: Json = response.json()
        return made

    def keep_head(self) -> Json:
        """The head as it stands, kept by somebody outside."""
        head: Json = self.client(-1).get("/audit/head").json()
        self.heads.append(head)
        return head

    def processes(self) -> list[int]:
        """Those that answer: the servers, or the workers of the only one."""
        if len(self.servers) > 1:
            return [server.process.pid for server in self.servers]
        return sorted(children(self.servers[0].process.pid))

    def memory(self) -> int:
        """Bytes that they hold together."""
        return sum(map(_resident, self.processes()))

    def connections(self) -> int:
        """How many they have to the database."""
        with psycopg.connect(self.database_url, connect_timeout=10) as connection:
            row = connection.execute(_CONNECTIONS, (named_by(self.database_url),)).fetchone()
        assert row is not None
        return int(row[0])

    def look(self, path: str) -> httpx.Response:
        """Ask over a connection of its own, so that no end of another one matters: whoever gets to it answers."""
        return httpx.get(self.urls[0] + path, timeout=60)

    def close(self) -> None:
        """End all that still run, in good order."""
        for client in self._clients:
            client.close()
        codes = [server.stop() for server in self.servers if server.process.poll() is None]
        assert set(codes) <= {0}, codes

    def kill(self) -> None:
        """End all that still run, at once."""
        for client in self._clients:
            client.close()
        for server in self.servers:
            server.kill()


@contextmanager
def two_servers(directory: Path, database_url: str, **settings: str) -> Iterator[Fleet]:
    """Two processes at two addresses."""
    with _running(Fleet(directory, database_url, servers=2, **settings)) as fleet:
        yield fleet


@contextmanager
def two_workers(directory: Path, database_url: str, **settings: str) -> Iterator[Fleet]:
    """Two workers of one server, at one address."""
    with _running(Fleet(directory, database_url, "--workers", "2", **settings)) as fleet:
        yield fleet


class Shaken(NamedTuple):
    """Two workers, their database, and the wire between them: whatever a test does to the one, the other meets."""

    fleet: Fleet
    postgres: Postgres
    wire: Relay


@contextmanager
def shaken_workers(directory: Path) -> Iterator[Shaken]:
    """Two workers of one server on a PostgreSQL of their own, behind a wire that can be cut."""
    with (
        Postgres(tcp=True) as postgres,
        Relay(postgres.port) as wire,
        two_workers(directory, wire.url(named_by(postgres.database()))) as fleet,
    ):
        yield Shaken(fleet, postgres, wire)


@contextmanager
def _running(fleet: Fleet) -> Iterator[Fleet]:
    try:
        yield fleet
    except BaseException:
        fleet.kill()
        raise
    fleet.close()


def _resident(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{process} has no memory")

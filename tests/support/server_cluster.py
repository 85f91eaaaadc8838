"""Several real qwed servers on one PostgreSQL database.

with two_servers(place, url) as cluster:      # A and B, each at its own address
    cluster.client(0).post(...)
with two_workers(place, url) as cluster:      # `qwed serve --workers 2`: the kernel chooses who answers
    ...
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg

from tests.support.agent_names import unique_name
from tests.support.cut_proxy import CutProxy
from tests.support.postgres_server import Postgres, children, database_name
from tests.support.server import SERVE, Server

Json = dict[str, Any]

_UNLIMITED = {"QWED_RATE_LIMIT_PER_KEY": "0"}
"""Settings without a rate limit: these drills are about the store."""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name LIKE 'qwed%%'"


class ServerCluster:
    """Servers on one database, with one data directory that holds their keys."""

    def __init__(self, directory: Path, database_url: str, *options: str, servers: int = 1, **settings: str) -> None:
        self.data_dir = directory / "data"
        self.database_url = database_url
        self.servers: list[Server] = []
        self._command = (*SERVE, "--database", database_url, *options)
        self._settings = _UNLIMITED | settings
        self._clients: list[httpx.Client] = []
        self.heads: list[Json] = []
        """Heads of the log that an outside observer has kept."""
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
        """Log output of the first server."""
        return self.servers[0].log.read_text()

    def client(self, number: int = 0) -> httpx.Client:
        """Return the owner's client of one server."""
        return self._clients[number]

    def register(self, **fields: Any) -> Json:
        """Register an agent."""
        response = self.client().post("/agents/register", json={"name": unique_name(), "principal_id": "p", **fields})
        assert response.status_code == 201, response.text
        made: Json = response.json()
        return made

    def keep_head(self) -> Json:
        """Return the current head and keep it for later checks."""
        head: Json = self.client(-1).get("/audit/head").json()
        self.heads.append(head)
        return head

    def processes(self) -> list[int]:
        """Return the processes that answer: the servers, or the workers of the only one."""
        if len(self.servers) > 1:
            return [server.process.pid for server in self.servers]
        return sorted(children(self.servers[0].process.pid))

    def memory(self) -> int:
        """Return the resident bytes of all of them."""
        return sum(map(_resident, self.processes()))

    def connections(self) -> int:
        """Return the number of their connections to the database."""
        with psycopg.connect(self.database_url, connect_timeout=10) as connection:
            row = connection.execute(_CONNECTIONS, (database_name(self.database_url),)).fetchone()
        assert row is not None
        return int(row[0])

    def look(self, path: str) -> httpx.Response:
        """Send a GET over a new connection, so that any process may answer it."""
        return httpx.get(self.urls[0] + path, timeout=60)

    def close(self) -> None:
        """Stop all that still run."""
        for client in self._clients:
            client.close()
        codes = [server.stop() for server in self.servers if server.process.poll() is None]
        assert set(codes) <= {0}, codes

    def kill(self) -> None:
        """Kill all that still run."""
        for client in self._clients:
            client.close()
        for server in self.servers:
            server.kill()


@contextmanager
def two_servers(directory: Path, database_url: str, **settings: str) -> Iterator[ServerCluster]:
    """Run two servers at two addresses."""
    with _running(ServerCluster(directory, database_url, servers=2, **settings)) as cluster:
        yield cluster


@contextmanager
def two_workers(directory: Path, database_url: str, **settings: str) -> Iterator[ServerCluster]:
    """Run two workers of one server at one address."""
    with _running(ServerCluster(directory, database_url, "--workers", "2", **settings)) as cluster:
        yield cluster


class FaultCluster(NamedTuple):
    """Two workers, their database, and the proxy between them, for fault injection."""

    cluster: ServerCluster
    postgres: Postgres
    proxy: CutProxy


@contextmanager
def open_fault_cluster(directory: Path) -> Iterator[FaultCluster]:
    """Run two workers of one server on their own PostgreSQL behind a proxy that can be cut."""
    with (
        Postgres(tcp=True) as postgres,
        CutProxy(postgres.port) as wire,
        two_workers(directory, wire.url(database_name(postgres.database()))) as cluster,
    ):
        yield FaultCluster(cluster, postgres, wire)


@contextmanager
def _running(cluster: ServerCluster) -> Iterator[ServerCluster]:
    try:
        yield cluster
    except BaseException:
        cluster.kill()
        raise
    cluster.close()


def _resident(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{process} has no memory")

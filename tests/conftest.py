"""Fixtures shared by every test: one real server per test process, a client, agents."""

import gc
import itertools
import shutil
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support import authorities, chosen, figures, places, spending, tables
from tests.support.server import Server
from tests.support.workers import end_workers

if TYPE_CHECKING:
    from tests.support.postgres_server import Databases

_names = itertools.count(1)

Register = Callable[..., dict[str, Any]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row-by-row", action="store_true", help="make every row of a table a test of its own")
    spending.add_option(parser)
    chosen.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    figures.register(config)
    spending.register(config)
    chosen.register(config)
    _settle_properties(drawn_anew=config.option.markexpr != "not drill")
    authorities.trust_one()
    # Nothing that is made while tests are collected is garbage before they have run.
    gc.disable()
    # A shell has what it runs in the background ignore these, and the programs that tests start would ignore them too.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def _settle_properties(drawn_anew: bool) -> None:
    """A property is about what comes out, not about how long it takes where others work too.

    `make test` draws the same examples every time: whether a change passes does not hang on luck. Drills draw anew.
    """
    if find_spec("hypothesis") is None:
        return  # what is tested in an environment of its own has no properties
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "unhurried",
        settings.default,
        deadline=None,
        derandomize=not drawn_anew,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("unhurried")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that hold nothing but drills, and are slow to collect, are left alone where no drill is wanted."""
    unwanted = config.option.markexpr == "not drill" and collection_path.name.endswith("_at_length.py")
    return True if unwanted else None


def pytest_collection_finish() -> None:
    # What was collected stays to the end; looking through it for garbage again and again takes longer than many tests.
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()
    end_workers()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    tables.groups(metafunc, metafunc.config.getoption("--row-by-row"))


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory for what no test looks for on a disk: nothing written there is waited for."""
    with places.in_memory(tmp_path_factory.getbasetemp()) as found:
        yield found


@pytest.fixture
def memory_path(memory: Path) -> Iterator[Path]:
    """As `tmp_path`, in memory."""
    made = places.room_in(memory)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> "Databases":
    """The PostgreSQL of this test run, started when the first test asks for it."""
    from tests.support.postgres_server import place_of_a_run, shared

    return shared(place_of_a_run(tmp_path_factory.getbasetemp()))


@pytest.fixture
def database(postgres: "Databases") -> Iterator[str]:
    """The address of an empty database in PostgreSQL."""
    url = postgres.database()
    yield url
    postgres.drop(url)


@pytest.fixture(scope="session")
def server(memory: Path) -> Iterator[Server]:
    """A server over HTTP with an empty data directory."""
    running = Server(places.room_in(memory) / "data")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[httpx.Client]:
    """The owner's client."""
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def stranger(server: Server) -> Iterator[httpx.Client]:
    """A client that shows nothing."""
    with httpx.Client(base_url=server.base_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def register(api: httpx.Client) -> Register:
    """Registers a new agent; fields may be given."""

    def call(**fields: Any) -> dict[str, Any]:
        body = {"name": f"agent {next(_names)}", "principal_id": "user_123", **fields}
        response = api.post("/agents/register", json=body)
        assert response.status_code == 201, response.text
        registered: dict[str, Any] = response.json()
        return registered

    return call


class Asking:
    """One agent in one conversation, asked step by step."""

    def __init__(self, api: httpx.Client, agent: dict[str, Any], conversation: str = "conv_1") -> None:
        self.api = api
        self.agent = agent
        self.agent_id: str = agent["agent_id"]
        self.conversation = conversation

    def send(self, body: dict[str, Any], headers: dict[str, str] | None = None) -> httpx.Response:
        return self.api.post(f"/agents/{self.agent_id}/verify", json=body, headers=headers)

    def __call__(
        self,
        action: dict[str, Any],
        step: int,
        *,
        conversation: str | None = None,
        options: dict[str, Any] | None = None,
        **context: Any,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "action": action,
            "context": {"conversation_id": conversation or self.conversation, "step_number": step, **context},
        }
        if options is not None:
            body["options"] = options
        answer: dict[str, Any] = self.send(body).json()
        return answer

    def budget(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.api.get(f"/agents/{self.agent_id}/budget").json()
        return answer

    def activity(self, **query: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.api.get(f"/agents/{self.agent_id}/activity", params=query).json()
        return answer


@pytest.fixture
def asking(api: httpx.Client, register: Register) -> Callable[..., Asking]:
    """`ask = asking(type="trusted")`, then `ask({"type": "calculate", "query": "2+2"}, 1)`."""

    def call(**fields: Any) -> Asking:
        return Asking(api, register(**fields))

    return call


@pytest.fixture
def ask(asking: Callable[..., Asking]) -> Asking:
    """A supervised agent in a fresh conversation."""
    return asking()

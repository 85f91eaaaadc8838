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

from tests.support import (
    campaign_table,
    case_tables,
    certificate_authorities,
    cpu_usage_plugin,
    store_choice,
    temp_directories,
)
from tests.support.server import Server
from tests.support.shared_engine_workers import end_workers

if TYPE_CHECKING:
    from tests.support.postgres_server import Databases

_names = itertools.count(1)

Register = Callable[..., dict[str, Any]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row-by-row", action="store_true", help="make every row of a table a test of its own")
    cpu_usage_plugin.add_option(parser)
    store_choice.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    campaign_table.register(config)
    cpu_usage_plugin.register(config)
    store_choice.register(config)
    _settle_properties(drawn_anew=config.option.markexpr != "not drill")
    certificate_authorities.trust_one_authority()
    # Objects created during collection live until the tests have run.
    gc.disable()
    # A shell makes background jobs ignore these signals, and programs started by tests would inherit that.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def _settle_properties(drawn_anew: bool) -> None:
    """Configure Hypothesis: no deadlines, and the same examples in every `make test`; drills draw new ones."""
    if find_spec("hypothesis") is None:
        return  # tests in a separate environment have no Hypothesis
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
    """Skip files that contain only drills and are slow to collect, unless drills are selected."""
    unwanted = config.option.markexpr == "not drill" and collection_path.name.endswith("_at_length.py")
    return True if unwanted else None


def pytest_collection_finish() -> None:
    # Collected tests stay to the end; scanning them for garbage repeatedly takes longer than many tests.
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()
    end_workers()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    case_tables.groups(metafunc, metafunc.config.getoption("--row-by-row"))


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Directory in memory for tests that do not need a disk, so that no write waits."""
    with temp_directories.memory_directory(tmp_path_factory.getbasetemp()) as found:
        yield found


@pytest.fixture
def memory_path(memory: Path) -> Iterator[Path]:
    """Directory in memory, as `tmp_path`."""
    made = temp_directories.make_directory_in(memory)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> "Databases":
    """PostgreSQL of this test run, started at the first use."""
    from tests.support.postgres_server import run_directory, shared

    return shared(run_directory(tmp_path_factory.getbasetemp()))


@pytest.fixture
def database(postgres: "Databases") -> Iterator[str]:
    """URL of an empty PostgreSQL database."""
    url = postgres.database()
    yield url
    postgres.drop(url)


@pytest.fixture(scope="session")
def server(memory: Path) -> Iterator[Server]:
    """Server over HTTP with an empty data directory."""
    running = Server(temp_directories.make_directory_in(memory) / "data")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="session")
def api(server: Server) -> Iterator[httpx.Client]:
    """The owner's client."""
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def stranger(server: Server) -> Iterator[httpx.Client]:
    """Client without credentials."""
    with httpx.Client(base_url=server.base_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def register(api: httpx.Client) -> Register:
    """Registers an agent with these fields."""

    def call(**fields: Any) -> dict[str, Any]:
        body = {"name": f"agent {next(_names)}", "principal_id": "user_123", **fields}
        response = api.post("/agents/register", json=body)
        assert response.status_code == 201, response.text
        registered: dict[str, Any] = response.json()
        return registered

    return call


class AgentConversation:
    """One agent in one conversation, called step by step."""

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
def asking(api: httpx.Client, register: Register) -> Callable[..., AgentConversation]:
    """`ask = asking(type="trusted")`, then `ask({"type": "calculate", "query": "2+2"}, 1)`."""

    def call(**fields: Any) -> AgentConversation:
        return AgentConversation(api, register(**fields))

    return call


@pytest.fixture
def ask(asking: Callable[..., AgentConversation]) -> AgentConversation:
    """Supervised agent in a new conversation."""
    return asking()

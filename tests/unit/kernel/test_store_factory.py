"""A process opens the store named by its settings, or reports in one sentence why it cannot."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qwed.gate import Gate, open_gate
from qwed.kernel.bootstrap import OWNER_KEY_FILE, close_services, open_services
from qwed.ledger.subject_encryption import MASTER_FILE, VaultError
from qwed.settings import SettingsError, settings_from
from qwed.store.protocol import DatabaseUnreachableError

PASSWORD = "s3cr3t-for-tests"


def _opened(directory: Path, url: str) -> Gate:
    return open_gate(directory, database_url=url)


def test_of_many_that_start_at_once_one_makes_the_keys_and_the_organisation(tmp_path: Path, database: str) -> None:
    settings = settings_from(data_dir=tmp_path, database_url=database)
    with ThreadPoolExecutor(4) as threads:
        opened = [started.result(60) for started in [threads.submit(open_services, settings) for _ in range(4)]]
    assert len({server.organisation_id for server in opened}) == 1
    [key] = [server.owner_key for server in opened if server.owner_key is not None]
    assert (tmp_path / OWNER_KEY_FILE).read_text().strip() == key
    assert [server.services.store.is_leader() for server in opened].count(True) == 1
    for server in opened:
        close_services(server.services)


def test_two_processes_share_decisions_and_the_directory(tmp_path: Path, database: str) -> None:
    with _opened(tmp_path, database) as one, _opened(tmp_path, database) as other:
        agent_id = one.register_agent(name="a", principal_id="p", trust_level=3)["agent_id"]
        context = {"conversation_id": "c", "step_number": 1}
        assert one.verify_action(agent_id, {"type": "calculate", "query": "1+1"}, context)["decision"] == "APPROVED"
        again = other.verify_action(agent_id, {"type": "calculate", "query": "1+1"}, context)
        assert again["error"]["code"] == "QWED-AGENT-LOOP-002"
        one.suspend_agent(agent_id, "enough")
        assert other.get_agent(agent_id)["status"] == "suspended"
        assert other.get_agent_budget(agent_id)["cost"]["current_daily_usd"] == 0.01


def test_a_key_that_is_rotated_in_one_process_signs_in_the_other(tmp_path: Path, database: str) -> None:
    with _opened(tmp_path, database) as one, _opened(tmp_path, database) as other:
        agent_id = one.register_agent(name="a", principal_id="p", trust_level=3)["agent_id"]
        kid = one.rotate_signing_key("it is time")["kid"]
        # The other process continues the log from a head whose key it has not loaded yet.
        context = {"conversation_id": "c", "step_number": 1}
        proven = other.verify_action(
            agent_id, {"type": "calculate", "query": "1+1"}, context, {"require_attestation": True}
        )["attestation"]
        assert other.verify_attestation(proven)["valid"]
        assert other.services.signer.keyring.current.kid == kid
        assert one.verify_attestation(proven)["valid"]
        # A second rotation keeps all earlier keys.
        latest = other.rotate_signing_key("once more")["kid"]
        assert {key["kid"] for key in other.services.signer.keyring.public_jwks()} >= {kid, latest}


def test_another_machine_with_other_keys_is_told_to_copy_them(tmp_path: Path, database: str) -> None:
    with _opened(tmp_path / "one", database) as one:
        one.register_agent(name="a", principal_id="p")
        (tmp_path / "other").mkdir()
        for name in ("signing.key", "signing.jwks"):
            (tmp_path / "other" / name).write_bytes((tmp_path / "one" / name).read_bytes())
            (tmp_path / "other" / name).chmod(0o600)
        with pytest.raises(VaultError, match=MASTER_FILE):
            _opened(tmp_path / "other", database)


ADDRESSES = {
    "connection refused": f"postgresql://someone:{PASSWORD}@127.0.0.1:9/qwed",
    "no such socket": f"postgresql://someone:{PASSWORD}@/qwed?host=/nowhere",
}


@pytest.mark.parametrize("url", ADDRESSES.values(), ids=ADDRESSES)
def test_a_database_that_cannot_be_reached_is_one_sentence_without_the_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(DatabaseUnreachableError) as raised:
        _opened(tmp_path, url)
    message = str(raised.value)
    assert message.startswith("PostgreSQL cannot be reached: ")
    assert PASSWORD not in message
    assert "\n" not in message


def test_a_driver_that_is_not_there_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget_modules: Callable[[str], None]
) -> None:
    forget_modules("qwed.store.postgres")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"pip install 'qwed\[postgres\]'"):
        _opened(tmp_path, "postgresql://127.0.0.1:9/qwed")


@pytest.fixture
def forget_modules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Remove imported modules so that they are imported again; restored afterwards."""

    def forget(prefix: str) -> None:
        for name in [name for name in sys.modules if name.startswith(prefix)]:
            monkeypatch.delitem(sys.modules, name)

    return forget

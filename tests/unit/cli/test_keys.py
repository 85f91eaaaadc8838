"""`qwed keys`: the keys of a stopped server are listed and rotated; an error is one line."""

from pathlib import Path

import pytest

import qwed
from qwed.cli import main
from qwed.ledger.keyring import JWKS_FILE, KEY_FILE, open_keyring

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QWED_SIGNING_KEY_FILE", "QWED_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory that was opened once."""
    with qwed.open(tmp_path / "data"):
        return tmp_path / "data"


def _list_keys(data: Path) -> str:
    keyring = open_keyring(data)
    first, *others = (jwk["kid"] for jwk in keyring.public_jwks())
    return "\n".join([keyring.issuer, f"  {first}  signs", *(f"  {kid}  retired" for kid in others), ""])


def test_the_keys_are_listed_whether_or_not_a_server_runs(data: Path, capsys: Capture) -> None:
    assert main(["keys", "list", "--data-dir", str(data)]) == 0
    assert capsys.readouterr() == (_list_keys(data), "")
    with qwed.open(data):
        assert main(["keys", "list", "--data-dir", str(data)]) == 0
    assert capsys.readouterr().out == _list_keys(data)


def test_a_rotation_keeps_the_name_and_the_old_keys_and_is_logged(data: Path, capsys: Capture) -> None:
    before = open_keyring(data)
    for reason in ("once a year", "and again"):
        assert main(["keys", "rotate", "--data-dir", str(data), "--reason", reason]) == 0
        assert capsys.readouterr() == (_list_keys(data), "")
    after = open_keyring(data)
    assert after.issuer == before.issuer
    assert [jwk["kid"] for jwk in after.public_jwks()][2:] == [before.current.kid]
    with qwed.open(data) as gate:
        newest, _second = gate.services.store.changes(gate.organisation_id, 2, None)
        assert f'"about":"{after.current.kid}"' in newest.leaf
        assert '"event":"signing_key_rotated"' in newest.leaf


def test_a_lost_key_is_replaced_under_the_old_name_and_that_is_logged(data: Path, capsys: Capture) -> None:
    before = open_keyring(data)
    (data / KEY_FILE).unlink()
    assert main(["keys", "list", "--data-dir", str(data)]) == 2
    assert "run `qwed keys rotate`" in capsys.readouterr().err
    assert main(["keys", "rotate", "--data-dir", str(data)]) == 0
    after = open_keyring(data)
    assert (after.issuer, len(after.public_jwks())) == (before.issuer, 2)
    with qwed.open(data) as gate:
        assert after.current.kid in gate.services.store.changes(gate.organisation_id, 1, None)[0].leaf


@pytest.mark.parametrize("lost", [False, True])
def test_the_keys_of_a_server_that_runs_are_left_to_it(data: Path, capsys: Capture, lost: bool) -> None:
    with qwed.open(data):
        if lost:
            (data / KEY_FILE).unlink()
        before = (data / JWKS_FILE).read_bytes()
        assert main(["keys", "rotate", "--data-dir", str(data)]) == 2
        assert (data / JWKS_FILE).read_bytes() == before
    message = f"qwed: a server runs on {data}: use POST /signing-key/rotate, or stop the server first\n"
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("verb", ["list", "rotate"])
def test_a_mistyped_directory_gets_no_keys(tmp_path: Path, capsys: Capture, verb: str) -> None:
    assert main(["keys", verb, "--data-dir", str(tmp_path / "dta")]) == 2
    missing = tmp_path / "dta" / KEY_FILE
    message = f"qwed: {missing} does not exist: a server creates its keys at its first start\n"
    assert capsys.readouterr() == ("", message)
    assert list(tmp_path.iterdir()) == []


def test_the_operators_key_is_the_operators(
    data: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.pem"
    own.write_bytes((data / KEY_FILE).read_bytes())
    own.chmod(0o600)
    monkeypatch.setenv("QWED_SIGNING_KEY_FILE", str(own))
    assert main(["keys", "rotate", "--data-dir", str(data)]) == 2
    assert "own.pem (QWED_SIGNING_KEY_FILE): put another P-256 key there" in capsys.readouterr().err
    own.unlink()
    assert main(["keys", "rotate", "--data-dir", str(data)]) == 2
    assert "own.pem is missing" in capsys.readouterr().err
    assert not own.exists()


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [(KEY_FILE, 0o644, "run chmod 600 on it"), (JWKS_FILE, 0o640, "run chmod 600 on it")],
)
def test_keys_that_others_can_read_are_not_rotated(
    data: Path, capsys: Capture, name: str, mode: int, message: str
) -> None:
    (data / name).chmod(mode)
    assert main(["keys", "rotate", "--data-dir", str(data)]) == 2
    assert capsys.readouterr().err.endswith(f"{message}\n")


def test_a_reason_can_be_read(data: Path, capsys: Capture) -> None:
    assert main(["keys", "rotate", "--data-dir", str(data), "--reason", "\u202e"]) == 2
    assert capsys.readouterr() == ("", "qwed: `reason` must be a readable text of 1 to 4096 characters\n")

"""Spec 9.7, Environment Integrity: real servers in tampered environments."""

import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest

import qwed
from tests.spec.sections import spec
from tests.support.server import SERVE, Server
from tests.support.store_choice import chosen
from tests.support.stored_rows import StoredRows

POISON = "import os; os.environ['POISONED'] = '1'\n"


def _refusal(place: Path, command: tuple[str, ...] = SERVE, **environment: str) -> str:
    """Return the message of a server that must not start; its data directory must stay empty."""
    data = place / "data"
    refused = subprocess.run(
        [*command, "--data-dir", str(data)],
        env={"PATH": os.environ["PATH"], **chosen.environment(data), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode != 0
    assert "listens on" not in refused.stdout
    assert not StoredRows(data).exists()
    assert not (data / "owner.key").exists()
    return refused.stderr


def _starts(place: Path, command: tuple[str, ...] = SERVE, **environment: str) -> None:
    server = Server(place / "data", command, **environment)
    assert httpx.get(f"{server.base_url}/health").status_code == 200
    assert StoredRows(server.data_dir).exists()
    assert server.stop() == 0


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Virtual environment that finds our packages and has an otherwise empty site directory."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    ours = [str(Path(qwed.__file__).parent.parent), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (_site(place) / "ours.pth").write_text("\n".join(dict.fromkeys(ours)) + "\n")
    return place


def _site(venv: Path) -> Path:
    return venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _serve(venv: Path) -> tuple[str, ...]:
    return (str(venv / "bin" / "python"), "-m", "qwed.cli", "serve", "--port", "0")


@spec("9.7", "guide/Environment integrity verification")
def test_a_plain_virtual_environment_starts(venv: Path, tmp_path: Path) -> None:
    _starts(tmp_path, _serve(venv))


@spec("9.7", "guide/Environment integrity verification")
def test_a_poisoned_pth_file_aborts_the_start_before_the_database(venv: Path, tmp_path: Path) -> None:
    file = _site(venv) / "innocent.pth"
    file.write_text(POISON)
    said = _refusal(tmp_path, _serve(venv))
    assert "RuntimeError" in said
    assert str(file) in said


@spec("9.7")
def test_a_known_name_does_not_excuse_unknown_content(venv: Path, tmp_path: Path) -> None:
    file = _site(venv) / "distutils-precedence.pth"
    file.write_text(POISON)
    assert str(file) in _refusal(tmp_path, _serve(venv))


@spec("9.7")
def test_an_administrator_may_accept_one_hook_by_its_hash(venv: Path, tmp_path: Path) -> None:
    (_site(venv) / "accepted.pth").write_text(POISON)
    accepted = hashlib.sha256(POISON.encode()).hexdigest()
    _starts(tmp_path, _serve(venv), QWED_STARTUP_HOOKS_ALLOW=accepted)


@spec("9.7")
@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
def test_a_customizer_on_the_path_aborts_the_start(tmp_path: Path, name: str) -> None:
    file = tmp_path / "path" / f"{name}.py"
    file.parent.mkdir()
    file.write_text("POISONED = True\n")
    said = _refusal(tmp_path, PYTHONPATH=str(file.parent))
    assert "RuntimeError" in said
    assert str(file) in said


@spec("9.7")
def test_pythonstartup_aborts_the_start(tmp_path: Path) -> None:
    file = tmp_path / "startup.py"
    file.write_text("POISONED = True\n")
    assert str(file) in _refusal(tmp_path, PYTHONSTARTUP=str(file))

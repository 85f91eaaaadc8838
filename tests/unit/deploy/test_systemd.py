"""The systemd unit: its `systemd-analyze` result and its required settings."""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.api.openapi.examples import EXAMPLES
from tests.support.campaign_table import Figure, campaign
from tests.support.server import SERVE, Server
from tests.unit.deploy.deploy_files import DEPLOY

UNIT = DEPLOY / "systemd" / "qwed.service"
LINE = re.compile(r"\[(?P<section>[A-Z][A-Za-z]*)\]|(?P<name>[A-Z][A-Za-z]*)=(?P<value>.*)")
ON = [
    "NoNewPrivileges",
    "ProtectHome",
    "PrivateTmp",
    "PrivateDevices",
    "PrivateUsers",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "RemoveIPC",
]
MOST_EXPOSED = 2.0

analyzer = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def settings() -> dict[str, dict[str, list[str]]]:
    """Return the settings by section and name; raise AssertionError if a line is invalid."""
    result: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in UNIT.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match is not None, line
        section = match["section"] or section
        if match["name"]:
            result.setdefault(section, {}).setdefault(match["name"], []).append(match["value"])
    return result


def installed(tmp_path: Path) -> Path:
    """The unit, with a program that is there."""
    file = tmp_path / "qwed.service"
    file.write_text(UNIT.read_text().replace("/opt/qwed/bin/qwed", str(Path(sys.executable).with_name("qwed"))))
    return file


def test_it_leaves_the_server_what_it_needs_and_no_more() -> None:
    assert set(settings()) == {"Unit", "Service", "Install"}
    service = settings()["Service"]
    assert {name: service[name] for name in ON} == {name: ["yes"] for name in ON}
    assert service["ProtectSystem"] == ["strict"]
    assert service["CapabilityBoundingSet"] == [""]
    assert service["User"] == ["qwed"]
    assert service["UMask"] == ["0077"]
    # The server raises its soft limit to this number.
    assert service["LimitNOFILE"] == ["65536"]
    # The server waits 30 seconds for requests in progress.
    assert int(service["TimeoutStopSec"][0]) > 30
    assert service["KillMode"] == ["mixed"]
    assert service["Environment"] == ["QWED_DATA_DIR=%S/qwed"]
    assert service["ExecStart"] == ["/opt/qwed/bin/qwed serve"]


@analyzer
def test_systemd_takes_it(tmp_path: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", str(installed(tmp_path))], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "qwed.service" not in done.stderr


@analyzer
def test_systemd_finds_little_of_the_machine_exposed(tmp_path: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(installed(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    result = re.search(r"Overall exposure level for qwed\.service: ([0-9.]+)", done.stdout)
    assert result is not None, done.stdout + done.stderr
    assert float(result[1]) <= MOST_EXPOSED


@analyzer
@pytest.mark.parametrize("call", ["pidfd_open", "prlimit64", "setrlimit", "setsid", "prctl", "flock", "socketpair"])
def test_what_the_engine_workers_call_is_not_filtered(call: str) -> None:
    [group] = settings()["Service"]["SystemCallFilter"]
    assert call in _calls_of(group)


def _calls_of(group: str) -> set[str]:
    done = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, timeout=60)
    names = {line.strip() for line in done.stdout.splitlines()[1:] if line.strip() and not line.strip().startswith("#")}
    return {name for name in names if name[0] != "@"}.union(*(_calls_of(name) for name in names if name[0] == "@"))


PR_SET_MDWE, PR_GET_MDWE, REFUSE_EXEC_GAIN = 65, 66, 1
DENYING = """
import ctypes, os, sys
denied = ctypes.CDLL(None, use_errno=True).prctl(int(sys.argv[1]), int(sys.argv[2]), 0, 0, 0)
sys.exit("this kernel cannot") if denied else os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""
ROUTES = {f"verify_{name}": f"/verify/{name}" for name in ("math", "logic", "code", "sql", "fact", "stats", "image")}
ROUTES |= {"verify_consensus": "/verify/consensus", "verify_any": "/verify"}
PACKS: list[dict[str, Any]] = [
    {"type": "tax", "operation": "us_payroll", "params": {"year": 2024, "gross_pay": 100000, "claimed_fica": 7650}},
    {
        "type": "finance",
        "operation": "npv",
        "params": {"cashflows": [-10000, 3000, 4200, 6800], "rate": 0.1, "llm_output": "$1,307.29"},
    },
]


@pytest.mark.skipif(ctypes.CDLL(None).prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0, reason="this kernel cannot deny it by itself")
@pytest.mark.drill
@campaign("P7", "engines without memory that is writable and executable")
def test_every_engine_works_where_no_memory_is_writable_and_executable(tmp_path: Path, figure: Figure) -> None:
    """The effect of `MemoryDenyWriteExecute` on a kernel that supports it."""
    command = [sys.executable, "-c", DENYING, str(PR_SET_MDWE), str(REFUSE_EXEC_GAIN), *SERVE[1:]]
    server = Server(tmp_path / "data", command)
    requests = [(path, item) for name, path in ROUTES.items() for item in EXAMPLES[name].examples]
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=60) as client:
        result = [client.post(path, json=item.body).json()["status"] for path, item in requests]
        packs = [client.post("/verify", json=body).json()["status"] for body in PACKS]
    assert server.stop() == 0
    assert result == [item.answer["status"] for _, item in requests]
    assert packs == ["VERIFIED"] * len(PACKS)
    figure("questions", len(result) + len(packs))

"""Programs that people wait for import little: counted, because a time depends on the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.unit.cli.hook_runner import claude_event, encode_input, hook_environment

ENGINE_LIBRARIES = {"duckdb", "lark", "pint", "sqlglot", "sympy", "tree_sitter", "z3"}
CLIENT_LIBRARIES = {"anyio", "asyncio", "httpcore", "httpx", "msgspec", "rich", "typer", "cryptography"}
MAX_HOOK_MODULES = 210
_PRINT_MODULES = "import json, os, sys; os.write(1, json.dumps(sorted(sys.modules)).encode())"


def modules_of(program: str, environment: dict[str, str], given: bytes = b"") -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{_PRINT_MODULES}"],
        input=given,
        capture_output=True,
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(names)


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.fixture
def hook_variables(server: Server, coder: dict[str, str]) -> dict[str, str]:
    return {
        "QWED_BASE_URL": server.base_url,
        "QWED_AGENT_ID": coder["agent_id"],
        "QWED_AGENT_TOKEN": coder["agent_token"],
    }


def test_a_hook_with_a_local_server_imports_no_library(hook_variables: dict[str, str], tmp_path: Path) -> None:
    program = "from qwed.cli import main; assert main(['hook']) == 0"
    given = encode_input(claude_event("Bash", {"command": "ls"}))
    modules = modules_of(program, hook_environment(tmp_path, **hook_variables), given)
    assert packages(modules) & (ENGINE_LIBRARIES | CLIENT_LIBRARIES) == set()
    assert not any(name.startswith(("qwed.kernel", "qwed.store", "qwed.engines", "qwed.guards")) for name in modules)
    assert len(modules) <= MAX_HOOK_MODULES


def test_a_calculation_on_the_command_line_imports_no_engine(tmp_path: Path) -> None:
    program = "from qwed.cli import main; assert main(['verify', '2 + 2 = 4']) == 0"
    modules = modules_of(program, hook_environment(tmp_path))
    assert packages(modules) & (ENGINE_LIBRARIES | {"httpx", "rich", "uvicorn", "starlette", "mcp"}) == set()


def test_a_proxy_imports_the_protocol_only_after_its_server_was_started(tmp_path: Path) -> None:
    program = "import qwed_mcp.proxy.run, qwed_mcp.proxy.proxy_command"
    modules = modules_of(program, hook_environment(tmp_path))
    assert packages(modules) & {"mcp", "mcp_types", "pydantic", "httpx", "msgspec"} == set()
    assert not any(name.startswith(("qwed.gate", "qwed.kernel", "qwed.guards")) for name in modules)


def test_a_proxy_with_a_server_imports_no_gate(tmp_path: Path) -> None:
    program = "import qwed_mcp.proxy.session, qwed.proxies.remote_backend"
    modules = modules_of(program, hook_environment(tmp_path))
    assert packages(modules) & ENGINE_LIBRARIES == set()
    assert not any(name.startswith(("qwed.gate", "qwed.store", "qwed.engines")) for name in modules)

"""One effect has one risk, in whatever language the action is written."""

from collections.abc import Callable, Iterable, Iterator

import pytest

from qwed.engines import sql
from qwed.engines.protocol import EngineRequest
from qwed.gate import Gate
from qwed.guards import javascript_code, python_code, shell
from qwed.model import Effect, EffectKind, Risk, risk_of
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.gate_factory import open_gate

RISKS = {
    "read": Risk.LOW,
    "write": Risk.HIGH,
    "delete": Risk.CRITICAL,
    "execute": Risk.CRITICAL,
    "network": Risk.MEDIUM,
    "secret": Risk.CRITICAL,
}
KINDS = {
    "read": EffectKind.READ,
    "write": EffectKind.WRITE,
    "delete": EffectKind.DELETE,
    "execute": EffectKind.EXECUTE,
    "network": EffectKind.NETWORK,
    "secret": EffectKind.SECRET,
}
SAID: dict[str, dict[str, str]] = {
    "shell": {
        "read": "cat notes.txt",
        "write": "echo done > notes.txt",
        "delete": "rm notes.txt",
        "execute": "make test",
        "network": "curl -s https://example.com/rates",
        "secret": "cat ~/.ssh/id_rsa",
    },
    "python": {
        "read": "open('notes.txt').read()",
        "write": "open('notes.txt', 'w').write('done')",
        "delete": "import os\nos.remove('notes.txt')",
        "execute": "import subprocess\nsubprocess.run(['make', 'test'])",
        "network": "import urllib.request\nurllib.request.urlopen('https://example.com/rates')",
        "secret": "open('/home/agent/.ssh/id_rsa').read()",
    },
    "javascript": {
        "read": "require('fs').readFileSync('notes.txt', 'utf8')",
        "write": "require('fs').writeFileSync('notes.txt', 'done')",
        "delete": "require('fs').unlinkSync('notes.txt')",
        "execute": "require('child_process').execFileSync('make', ['test'])",
        "network": "fetch('https://example.com/rates')",
        "secret": "require('fs').readFileSync('/home/agent/.ssh/id_rsa')",
    },
    "sql": {
        "read": "SELECT body FROM notes WHERE id = 1",
        "write": "UPDATE notes SET body = 'done' WHERE id = 1",
        "delete": "DELETE FROM notes WHERE id = 1",
        "execute": "COPY notes TO PROGRAM 'make test'",
        "network": "SELECT * FROM dblink('host=example.com', 'SELECT 1') AS t(a int)",
        "secret": "SELECT password FROM users WHERE id = 1",
    },
}
ACTIONS: dict[str, dict[str, dict[str, object]]] = {
    "tool call": {
        "read": {"type": "tool_call", "tool": "get_note", "parameters": {"id": 1}},
        "write": {"type": "tool_call", "tool": "database_write", "parameters": {"table": "notes"}},
        "delete": {"type": "tool_call", "tool": "delete_note", "parameters": {"id": 1}},
        "execute": {"type": "tool_call", "tool": "execute_job", "parameters": {"job": "tests"}},
        "network": {"type": "tool_call", "tool": "api_call", "parameters": {"url": "https://example.com/rates"}},
        "secret": {"type": "tool_call", "tool": "get_note", "parameters": {"password": "hunter2-But-L0nger!x"}},
    },
    "file path": {
        "read": {"type": "file_read", "target": "notes.txt"},
        "write": {"type": "file_write", "target": "notes.txt"},
        "delete": {"type": "file_delete", "target": "notes.txt"},
        # Other programs run what is written there.
        "execute": {"type": "file_write", "target": "/etc/cron.d/job"},
        "network": {"type": "api_call", "target": "https://example.com/rates"},
        "secret": {"type": "file_read", "target": "/home/agent/.ssh/id_rsa"},
    },
}
TONGUES: dict[str, Callable[[str], Iterable[Effect]]] = {
    "shell": lambda text: shell.findings(text).effects,
    "python": lambda text: python_code.findings(text).effects,
    "javascript": lambda text: javascript_code.findings(text).effects,
    "sql": lambda text: sql.verify(EngineRequest(query=text, parameters={"dialect": "postgres"})).effects,
}


@spec("2.3")
@pytest.mark.parametrize("deed", RISKS)
@pytest.mark.parametrize("tongue", SAID)
def test_a_deed_has_its_risk_in_every_language(tongue: str, deed: str) -> None:
    effects = tuple(TONGUES[tongue](SAID[tongue][deed]))
    assert KINDS[deed] in {effect.kind for effect in effects}, effects
    assert risk_of(effects) is RISKS[deed], effects


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    with open_gate() as opened:
        yield opened


@spec("2.3")
@pytest.mark.parametrize("deed", RISKS)
@pytest.mark.parametrize("tongue", ACTIONS)
def test_a_deed_has_its_risk_as_a_tool_and_as_a_path(tongue: str, deed: str, gate: Gate) -> None:
    tools = ["get_note", "delete_note", "execute_job", "database_write", "api_call", "file_read", "file_write"]
    permissions = {"allowed_tools": [*tools, "file_delete"]}
    agent = gate.register_agent(name=unique_name("tongues"), principal_id="ops", trust_level=3, permissions=permissions)
    answer = gate.verify_action(agent.agent_id, ACTIONS[tongue][deed], {"conversation_id": "c", "step_number": 1})
    assert answer.verification is not None, answer
    assert answer.verification["risk_level"] == RISKS[deed].word, answer

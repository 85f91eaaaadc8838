"""Ruling 4.22: parameters of an agent can only narrow its permissions; a path in a request is never opened."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import Json, said
from tests.spec.sections import spec

Make = Callable[..., AgentConversation]
REFUSED = ("DENIED", "QWED-AGENT-005")
DDL = "CREATE TABLE t (id INT)"
WIDE_DDL = "CREATE TABLE t (id INT, salary INT)"


def _sql(query: str, **parameters: Any) -> Json:
    return {"type": "execute_sql", "query": query, "parameters": parameters}


# The seven permissions: the agent's, and those that its parameters state.
WIDENED: dict[str, tuple[Json, Json]] = {
    "allowed_tables": ({"allowed_tables": ["t"]}, _sql("SELECT id FROM u", allowed_tables=["t", "u"])),
    "allowed_columns": ({"allowed_columns": ["id"]}, _sql("SELECT x FROM t", allowed_columns=["id", "x"])),
    "sensitive_columns": ({"sensitive_columns": ["x"]}, _sql("SELECT x FROM t", sensitive_columns=[])),
    "schema_ddl": ({"schema_ddl": DDL}, _sql("SELECT salary FROM t", schema_ddl=WIDE_DDL)),
    "allowed_paths": (
        {"allowed_paths": ["/srv/data"]},
        {"type": "file_read", "target": "/etc/hosts", "parameters": {"allowed_paths": ["/"]}},
    ),
    "allowed_domains": (
        {"allowed_domains": ["example.com"]},
        {"type": "api_call", "target": "https://evil.com", "parameters": {"allowed_domains": ["evil.com"]}},
    ),
}


@spec("3.1")
@pytest.mark.parametrize("name", WIDENED)
def test_no_parameter_widens_what_the_permissions_leave_out(asking: Make, name: str) -> None:
    permissions, action = WIDENED[name]
    assert said(asking(type="trusted", permissions=permissions)(action, 1)) == REFUSED
    plain = {key: value for key, value in action.items() if key != "parameters"}
    assert said(asking(type="trusted", permissions=permissions)(plain, 1)) == REFUSED


@spec("3.1")
def test_no_parameter_raises_the_number_of_rows(asking: Make) -> None:
    answer = asking(permissions={"max_rows": 5})(_sql("SELECT id FROM t LIMIT 50", max_rows=1000), 1)
    assert (answer["decision"], answer["verified_query"]) == ("CORRECTED", "SELECT id FROM t LIMIT 5")


@spec("3.1")
@pytest.mark.parametrize("permissions", [{}, {"allowed_tables": ["t", "u"]}], ids=str)
def test_a_parameter_narrows(asking: Make, permissions: Json) -> None:
    ask = asking(permissions=permissions)
    assert said(ask(_sql("SELECT id FROM t", allowed_tables=["t"]), 1)) == ("APPROVED", None)
    assert said(ask(_sql("SELECT id FROM u", allowed_tables=["t"]), 2)) == REFUSED
    assert said(ask(_sql("SELECT nothing FROM t", schema_ddl=DDL), 2)) == REFUSED


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a table that would confirm the claim if it were opened."""
    place = tmp_path / "table.csv"
    place.write_text("a\n1\n2\n")
    return place


@spec("2.2")
@pytest.mark.parametrize("name", ["path", "file", "file_path", "filename", "url", "content"])
def test_a_path_in_a_request_is_not_opened(asking: Make, file: Path, name: str) -> None:
    ask = asking(type="trusted")
    for place in (str(file), f"file://{file}"):
        answer = ask({"type": "verify_stats", "query": "rows = 2", "parameters": {name: place}}, 1)
        assert said(answer) == REFUSED
        assert "content_base64" in answer["error"]["message"]


@spec("2.2")
@pytest.mark.parametrize("claim", ["rows = 2", "select count(*) from read_csv('{}')", "rows of '{}' = 2"])
def test_neither_a_target_nor_a_claim_opens_a_file(asking: Make, file: Path, claim: str) -> None:
    ask, content = asking(type="trusted"), base64.b64encode(b"b\n1\n").decode()
    bare = {"type": "verify_stats", "query": "rows = 2", "target": str(file)}
    assert said(ask(bare, 1)) == REFUSED
    asked = {
        "type": "verify_stats",
        "query": claim.format(file),
        "target": str(file),
        "parameters": {"content_base64": content},
    }
    assert ask(asked, 1)["decision"] in ("DENIED", "PENDING")


@spec("2.2", "B")
@pytest.mark.parametrize("engine", ["stats", "image"])
def test_an_endpoint_opens_no_path_either(api: httpx.Client, file: Path, engine: str) -> None:
    claim = {"stats": "query", "image": "claim"}[engine]
    for name in ("path", "file", "file_path", "image_path", "url"):
        refused = api.post(f"/verify/{engine}", json={claim: "rows = 2", name: str(file)})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "QWED-REQ-001")
    held = api.post(f"/verify/{engine}", json={claim: "rows = 2", "content_base64": str(file)})
    assert held.json().get("verified") is not True


TEN_MIB = 10 << 20


def _with_file(size: int) -> Json:
    line = b"x" * 65_535 + b"\n"
    text = b"a\n" + line * (size // len(line) - 1)
    content = base64.b64encode(text + b"y" * (size - len(text))).decode()
    action = {"type": "verify_stats", "query": "rows = 160", "parameters": {"content_base64": content}}
    return {"action": action, "context": {"conversation_id": "c", "step_number": 1}}


@spec("2.2")
def test_a_file_of_an_agent_has_ten_mebibytes_at_most(ask: AgentConversation) -> None:
    larger = ask.send(_with_file(TEN_MIB + 2))
    assert (larger.status_code, said(larger.json())) == (200, REFUSED)
    assert f"larger than {TEN_MIB} bytes" in larger.json()["error"]["message"]
    much_larger = ask.send(_with_file(TEN_MIB + (1 << 21)))
    assert (much_larger.status_code, said(much_larger.json())) == (413, ("DENIED", "QWED-REQ-002"))
    assert said(ask.send(_with_file(TEN_MIB)).json()) == ("APPROVED", None)

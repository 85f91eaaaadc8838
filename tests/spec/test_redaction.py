"""Spec 7.1: a secret that is sent is in no file, no log and no answer afterwards."""

import base64
import hashlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pypdf
import pytest

from qwed.model import sha256_of
from tests.conftest import AgentConversation
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.campaign_table import Figure, campaign
from tests.support.case_tables import rows
from tests.support.server import Server
from tests.support.sse_client import SseClient
from tests.support.store_choice import chosen
from tests.support.stored_rows import StoredRows
from tests.support.webhook_receivers import WebhookReceiver, answering

TABLE = rows("redaction.jsonl")
HONEST = [row for row in TABLE if row["kind"] == "honest"]
SETTINGS = {
    "QWED_TRUST_MIN_DAYS": "0",
    "QWED_TRUST_MIN_ACTIONS": "0",
    "QWED_TRUST_MAX_DENIAL_RATE": "1",
    "QWED_WEBHOOK_ALLOW_PRIVATE": "true",
    "QWED_LOG_LEVEL": "debug",
}
_numbers = itertools.count(1)
AT_ONCE = 3
"""Secrets put into each place by default, others into each; all of them in the drill."""


class Secret(NamedTuple):
    """One secret, and a text that contains it; `told` is the name without which it is not recognised."""

    name: str
    text: str
    said: str
    told: str | None = None
    wrapped: bool = False
    """Whether the guard knows it inside base64, too."""
    ours: bool = False
    """One of this very server, which keeps the SHA-256 of it to know it by."""


def _secret(row: dict[str, Any]) -> Secret:
    text = "".join(row["secret"])
    return Secret(
        row["name"],
        text,
        "".join(row.get("said", ["{}"])).replace("{}", text),
        row.get("told"),
        row.get("wrapped", False),
    )


def _forms(text: str, *, hashed: bool) -> Iterator[bytes]:
    """Return the spellings of a secret, encoded ones in lower case."""
    raw = text.encode()
    yield from (raw, json.dumps(text)[1:-1].encode(), quote(text).encode(), raw.hex().encode())
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        inner = whole[(0, 2, 3)[shift] : len(whole) - 4]
        yield from (inner, inner.translate(bytes.maketrans(b"+/", b"-_")))
    if len(text) > 100:
        # Enough of a long secret to recognise it, within what a message quotes; private keys share a beginning.
        start = 80 if text.startswith("-----") else 40
        yield text[start : start + 20].encode()
    if hashed:
        digest = hashlib.sha256(raw).digest()
        yield from (digest, digest.hex().encode(), base64.b64encode(digest)[:-1], base64.urlsafe_b64encode(digest)[:-1])


class Needles:
    """Texts that must not occur: spellings of secrets, and plain hashes of actions that contained one."""

    def __init__(self, secrets: Iterable[Secret], hashes: dict[str, str]) -> None:
        self._forms = {
            form.lower(): secret.name for secret in secrets for form in _forms(secret.text, hashed=not secret.ours)
        }
        self._hashes = hashes

    def found_in(self, data: bytes, where: str) -> list[str]:
        """Return each occurrence with the text around it."""
        low = data.lower()
        forms = [(name, low.index(form)) for form, name in self._forms.items() if form in low]
        hashes = [
            (self._hashes[match[0].decode()], match.start())
            for match in _HASH.finditer(low)
            if match[0].decode() in self._hashes
        ]
        return [f"{where}: {name} in {data[max(at - 60, 0) : at + 90]!r}" for name, at in (*forms, *hashes)]


_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


# Requests. `<S>` is the secret with its context; `<password>` is a name that identifies a secret, and `<T>` next to it
# is the secret alone.


def _action(**action: Any) -> dict[str, Any]:
    return {"action": action, "context": {"conversation_id": "<C>", "step_number": 1}}


def _said(
    action: dict[str, Any] | None = None, options: dict[str, Any] | None = None, **context: Any
) -> dict[str, Any]:
    asked = {
        "action": action or {"type": "calculate", "query": "2+2"},
        "context": {"conversation_id": "<C>", "step_number": 1, **context},
    }
    return asked if options is None else {**asked, "options": options}


_NOTE = "tool_call"
_LONG = "the report of the week " * 400
VERIFY: dict[str, Any] = {
    "a query": _action(type="calculate", query="<S>"),
    "a statement": _action(type="execute_sql", query="SELECT id FROM orders WHERE note = '<S>'"),
    "a comment of a statement": _action(type="execute_sql", query="SELECT id FROM orders -- <S>"),
    "a statement that fails": _action(type="execute_sql", query="SELEC id FROM orders WHERE <S>"),
    "a logical query": _action(type="verify_logic", query="<S> implies q"),
    "a claim": _action(type="verify_fact", query="<S>", parameters={"context": "the key is <S>"}),
    "code": _action(type="execute_code", code="import os\nkey = '''<S>'''\nos.system(key)"),
    "a command": _action(type="shell_command", query="curl -H 'X-Note: <S>' https://example.com"),
    "a path": _action(type="file_read", target="/srv/<S>"),
    "a target": _action(type="api_call", target="https://api.example.com/<S>"),
    "a mail": _action(type="send_email", parameters={"to": "a@example.com", "body": "here it is: <S>"}),
    "a type": _action(type="<S>"),
    "a tool": _action(type=_NOTE, tool="<S>"),
    "a parameter": _action(type=_NOTE, tool="get_note", parameters={"text": "<S>"}),
    "a parameter in a list": _action(type=_NOTE, tool="get_note", parameters={"all": ["a", ["b", "<S>"]]}),
    "a nested parameter": _action(type=_NOTE, tool="get_note", parameters={"a": {"b": [{"c": {"d": "<S>"}}]}}),
    "the name of a parameter": _action(type=_NOTE, tool="get_note", parameters={"<S>": 1}),
    "a nested name": _action(type=_NOTE, tool="get_note", parameters={"a": [{"<S>": {"<S>": "x"}}]}),
    "a name that tells": _action(type=_NOTE, tool="get_note", parameters={"<password>": "<T>"}),
    "a nested name that tells": _action(type=_NOTE, tool="get_note", parameters={"db": {"<password>": ["<T>", "x"]}}),
    "told once, said twice": _action(
        type=_NOTE, tool="get_note", parameters={"<password>": "<T>", "note": "it is <T>"}
    ),
    "a long text": _action(type=_NOTE, tool="get_note", parameters={"text": f"{_LONG} <S> {_LONG}"}),
    "base64": _action(type=_NOTE, tool="get_note", parameters={"blob": "<B>"}),
    "a file": _action(type="verify_stats", query="rows = 1", parameters={"content_base64": "<F>"}),
    "an action that waits": _action(type=_NOTE, tool="ask_first", parameters={"text": "<S>"}),
    "what the user wants": _said(user_intent="please use <S>"),
    "what the user wants, told by the action": _said(
        {"type": _NOTE, "tool": "get_note", "parameters": {"<password>": "<T>"}}, user_intent="log in with <T>"
    ),
    "a conversation": _said() | {"context": {"conversation_id": "chat <S>", "step_number": 1}},
    "a long conversation": _said() | {"context": {"conversation_id": "chat <S>" * 9, "step_number": 1}},
    "a subject": _said(subject="customer <S>"),
    "a state": _said(pre_action_state_hash="<S>", state_source="custom"),
    "a source of state": _said(pre_action_state_hash="a" * 64, state_source="<S>"),
    "a chain": _said(options={"chain_id": "<S>"}),
    "a threshold": _said(options={"risk_threshold": "<S>"}),
    "an unknown option": _said(options={"<S>": True}),
    "an unknown field": _said() | {"<S>": "<S>"},
    "an unknown field of the context": _said()
    | {"context": {"conversation_id": "<C>", "step_number": 1, "<S>": "<S>"}},
    "an unknown field of the action": _action(type="calculate", query="2+2", **{"<S>": "<S>"}),
    "a cost": _action(type="calculate", query="2+2", cost={"usd": "<S>"}),
    "an agent": _said() | {"agent_id": "<S>"},
}
REGISTER: dict[str, Any] = {
    "a principal": {"name": "bot", "principal_id": "<S>"},
    "a type of agent": {"name": "bot", "principal_id": "u", "type": "<S>"},
    "a level": {"name": "bot", "principal_id": "u", "trust_level": "<S>"},
    "tools that are allowed": {"name": "bot", "principal_id": "u", "permissions": {"allowed_tools": ["<S>"]}},
    "tables that are allowed": {"name": "bot", "principal_id": "u", "permissions": {"allowed_tables": ["a", "<S>"]}},
    "engines": {"name": "bot", "principal_id": "u", "permissions": {"allowed_engines": ["<S>"]}},
    "paths": {"name": "bot", "principal_id": "u", "permissions": {"allowed_paths": ["/srv/<S>"]}},
    "a schema": {"name": "bot", "principal_id": "u", "permissions": {"schema_ddl": "CREATE TABLE a (b INT); -- <S>"}},
    "an unknown permission": {"name": "bot", "principal_id": "u", "permissions": {"<S>": ["x"]}},
    "an unknown budget": {"name": "bot", "principal_id": "u", "budget": {"<S>": 1}},
    "an unknown field": {"name": "bot", "principal_id": "u", "<S>": 1},
    "under agent": {"agent": {"name": "bot", "principal_id": "u", "<S>": 1}},
}
VERIFIERS: dict[str, Any] = {
    "": {"query": "<S>"},
    "/math": {"expression": "<S> = 4"},
    "/logic": {"query": "<S> and p", "options": {"include_attestation": True}},
    "/code": {"code": "eval('''<S>''')", "language": "python"},
    "/sql": {"query": "SELECT * FROM users WHERE note = '<S>'", "options": {"include_attestation": True}},
    "/fact": {"claim": "the key is <S>", "context": "Nobody knows: <S>."},
    "/stats": {"query": "mean of <S>", "content_base64": "<F>"},
    "/consensus": {"query": "<S>"},
    "/image": {"claim": "it shows <S>", "content_base64": "<B>"},
}
ASKED: dict[str, Any] = {
    "a key": ("POST", "/keys", {"name": "key <S>", "role": "member"}),
    "a role": ("POST", "/keys", {"name": "key", "role": "<S>"}),
    "an organisation": ("POST", "/organisations", {"name": "team <S>"}),
    "a webhook": ("PUT", "/webhook", {"url": "https://example.com/<Q>", "events": ["pending"]}),
    "a host": ("PUT", "/webhook", {"url": "https://<Q>/told", "events": ["pending"]}),
    "a secret in a query": ("PUT", "/webhook", {"url": "https://example.com/told?note=<Q>", "events": ["pending"]}),
    "an event": ("PUT", "/webhook", {"url": "https://example.com/", "events": ["<S>"]}),
    "a tool's name": ("PUT", "/tools/<Q>", {"risk_level": "low"}),
    "a tool's risk": ("PUT", "/tools/get_note", {"risk_level": "<S>"}),
    "a tool's effect": ("PUT", "/tools/get_note", {"risk_level": "low", "effect": "<S>"}),
    "a tool's engine": ("PUT", "/tools/get_note", {"risk_level": "low", "verification_engine": "<S>"}),
    "a tool's field": ("PUT", "/tools/get_note", {"risk_level": "low", "<S>": "<S>"}),
    "a batch": (
        "POST",
        "/verify/batch",
        {
            "items": [
                {"query": "<S>"},
                {"query": "SELECT a FROM b WHERE c = '<S>'", "type": "sql"},
                {"query": "note", "type": "fact", "params": {"context": "<S>"}},
            ],
            "options": {"subject": "client <S>"},
        },
    ),
    "a type in a batch": ("POST", "/verify/batch", {"items": [{"query": "1", "type": "<S>"}]}),
    "parameters in a batch": (
        "POST",
        "/verify/batch",
        {"items": [{"query": "1", "type": "sql", "params": {"<S>": 1}}]},
    ),
    "an option of a batch": ("POST", "/verify/batch", {"items": [{"query": "1"}], "options": {"<S>": 1}}),
    "an erasure": ("POST", "/audit/erase", {"subject": "customer <S>"}),
    "a field of an erasure": ("POST", "/audit/erase", {"<S>": "x"}),
    "an attestation": ("POST", "/attestation/verify", {"jwt": "<S>"}),
    "an attestation's name": ("GET", "/attestation/<Q>", None),
    "an agent's name": ("GET", "/agents/<Q>", None),
    "a page": ("GET", "/agents?cursor=<Q>", None),
    "an unknown parameter": ("GET", "/agents?<Q>=1", None),
    "a period": ("GET", "/agents/{agent}/activity?from=<Q>", None),
    "a decision": ("GET", "/agents/{agent}/activity?decision=<Q>", None),
    "a report": ("GET", "/agents/{agent}/compliance-report?format=<Q>", None),
    "an unknown route": ("GET", "/nowhere/<Q>", None),
    "an entry": ("GET", "/audit/entries?from_index=<Q>", None),
    "an index": ("GET", "/audit/proof/inclusion?index=<Q>", None),
    "a change": ("GET", "/changes?cursor=<Q>", None),
    "a state of approvals": ("GET", "/approvals?state=<Q>", None),
    "an action": ("GET", "/agents/{agent}/actions/<Q>", None),
    "a tool in the path": (
        "POST",
        "/agents/{agent}/tools/<Q>",
        {"parameters": {}, "context": {"conversation_id": "<C>", "step_number": 1}},
    ),
    "a justification": (
        "POST",
        "/agents/{agent}/tools/get_note",
        {
            "parameters": {"a": 1},
            "justification": "because <S>",
            "context": {"conversation_id": "<C>", "step_number": 1},
        },
    ),
    "another tool": (
        "POST",
        "/agents/{agent}/tools/get_note",
        {"tool_call": {"tool_name": "<S>"}, "context": {"conversation_id": "<C>", "step_number": 1}},
    ),
    "an execution": ("POST", "/agents/{agent}/actions/{action}/execution", {"success": True, "result": {"key": "<S>"}}),
    "a result told by its name": (
        "POST",
        "/agents/{agent}/actions/{second}/execution",
        {"success": True, "result": {"<password>": "<T>"}},
    ),
    "a hash of a result": (
        "POST",
        "/agents/{agent}/actions/{third}/execution",
        {"success": True, "result_hash": "<S>"},
    ),
    "proof of an execution": (
        "POST",
        "/agents/{agent}/actions/{third}/execution",
        {"success": True, "attestation": "<S>"},
    ),
    "more trust": (
        "POST",
        "/agents/{agent}/trust",
        {"request": "trust_elevation", "to_level": 3, "justification": "as <S>"},
    ),
    "less trust": (
        "POST",
        "/agents/{agent}/trust",
        {"request": "trust_reduction", "to_level": 1, "justification": "as <S>"},
    ),
    "a kind of trust": ("POST", "/agents/{agent}/trust", {"request": "<S>", "to_level": 3, "evidence": {"<S>": "<S>"}}),
    "an approval": ("POST", "/approvals/{approval}/approve", {"reason": "as <S>", "approver": "Ann <S>"}),
    "a refusal": ("POST", "/approvals/{refused}/reject", {"reason": "as <S>", "approver": "Ann <S>"}),
    "a revocation": ("POST", "/attestation/{attestation}/revoke", {"reason": "as <S>"}),
    "a suspension": ("POST", "/agents/{agent}/suspend", {"reason": "as <S>"}),
    "a return": ("POST", "/agents/{agent}/reactivate", {"reason": "as <S>"}),
    "a complaint": ("POST", "/agents/{agent}/complaint", {"reason": "as <S>"}),
    "a field of a reason": ("POST", "/agents/{agent}/suspend", {"<S>": "x"}),
    "a stop": ("POST", "/suspend-all", {"reason": "as <S>"}),
    "the end of a stop": ("POST", "/reactivate-all", {"reason": "as <S>"}),
}
RAW = {
    "half of a text": b'{"action": {"type": "calculate", "query": "<S>',
    "no JSON": b"<S>",
    "a name twice": b'{"<S>": 1, "<S>": 2}',
    "a wrong number": b'{"action": <S>}',
}
ECHOED = frozenset({"verified_query", "corrected"})
"""What may be executed is told to whoever asked, whole: a masked text would be another one."""


class Sent(NamedTuple):
    """Location of a secret in a request, and the answer."""

    place: str
    status: int
    answer: bytes


def _put(value: Any, secret: Secret) -> Any:
    """Return the body with the secret inserted."""
    if isinstance(value, str):
        return _put_text(value, secret)
    if isinstance(value, dict):
        return {_put_text(name, secret): _put(item, secret) for name, item in value.items()}
    return [_put(item, secret) for item in value] if isinstance(value, list) else value


def _put_text(text: str, secret: Secret) -> str:
    table = f"note\n{secret.said}\n".encode()
    spelled = {
        "<S>": secret.said,
        "<T>": secret.text if secret.told else secret.said,
        "<password>": secret.told or "note",
        "<B>": base64.b64encode(f"the file of {secret.said if secret.wrapped else 'nothing'} ends".encode()).decode(),
        "<F>": base64.b64encode(table).decode(),
        "<Q>": quote(secret.said, safe=""),
    }
    for mark, said in spelled.items():
        text = text.replace(mark, said)
    return text.replace("<C>", f"chat {next(_numbers)}")


class Attack:
    """One server that receives every secret in every location."""

    def __init__(self, server: Server, receiver: WebhookReceiver) -> None:
        self.server = server
        self.key = server.owner_key
        self.client = httpx.Client(base_url=server.base_url, timeout=60)
        self.sent: list[Sent] = []
        self.hashes: dict[str, str] = {}
        self._furnished: dict[str, dict[str, str]] = {}
        self.agents: list[str] = []
        self.jobs: list[str] = []
        made = self.asked("POST", "/keys", {"name": "another", "role": "owner"})
        self.other: str = made["key"]
        for name in ("get_note", "ask_first"):
            self.asked("PUT", f"/tools/{name}", {"risk_level": "low", "requires_approval": name == "ask_first"})
        hook = {"url": receiver.url(scheme="http")}
        self.asked("PUT", "/webhook", hook)
        spare = self.asked("POST", "/keys", {"name": "spare", "role": "owner"})["key"]
        worker = self.asked("POST", "/agents/register", {"name": "w", "principal_id": "w"})
        ours = [("owner key of this server", spare), ("agent token of this server", worker["agent_token"])]
        self.secrets = [_secret(row) for row in TABLE if row["kind"] == "secret"]
        self.secrets += [Secret(name, text, text, ours=True) for name, text in ours]

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.client.request(method, path, json=body, headers={"X-API-Key": self.key} | (headers or {}))

    def asked(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        response = self.ask(method, path, body)
        assert response.status_code < 300, (path, response.text)
        read: dict[str, Any] = response.json()
        return read

    def run(self, at_once: int) -> None:
        """Return each location with this many secrets, in rotation."""
        self._furnished = {secret.name: self._prepare(secret) for secret in self.secrets}
        steps: list[tuple[dict[str, Any], Callable[[str, Secret, Any], object]]] = [
            (VERIFY, self._verify),
            (RAW, self._raw),
            ({"headers": None}, self._headers),
            (REGISTER, self._register),
            (VERIFIERS, self._inquire),
            (ASKED, self._ask_place),
        ]
        places = [(name, body, step) for table, step in steps for name, body in table.items()]
        for turn, (name, body, step) in enumerate(places):
            for secret in self._chosen(turn * at_once, at_once, body):
                step(name, secret, body)

    def _chosen(self, first: int, count: int, body: Any) -> list[Secret]:
        """Return this many secrets in rotation; a location with a name always gets the secret that needs one."""
        told = [secret for secret in self.secrets if secret.told and "<T>" in str(body)]
        turn = [self.secrets[(first + more) % len(self.secrets)] for more in range(count)]
        return [*told, *(secret for secret in turn if secret not in told)]

    def _register(self, name: str, secret: Secret, body: Any) -> None:
        self._send(f"register: {name}", "POST", "/agents/register", _put(body, secret))

    def _inquire(self, path: str, secret: Secret, body: Any) -> None:
        self._send(f"/verify{path}", "POST", f"/verify{path}", _put(body, secret))

    def _ask_place(self, name: str, secret: Secret, asked: Any) -> None:
        method, path, body = asked
        at = _put_text(path.format(**self._furnished[secret.name]), secret)
        self._send(name, method, at, _put(body, secret))

    def _prepare(self, secret: Secret) -> dict[str, str]:
        """Create an agent with the secret in all its texts, permitted actions and pending ones."""
        said = dict.fromkeys(("name", "description", "framework", "model"), f"my {secret.said}"[:256])
        # Two secrets of one kind are masked alike, and a name is given once.
        said["name"] = f"{unique_name()} {secret.said}"[:256]
        made = self._send(
            "an agent", "POST", "/agents/register", {**said, "principal_id": "u_1", "trust_level": 2}
        ).json()
        agent = made["agent_id"]
        self.agents.append(agent)
        places = {"agent": agent, "token": made["agent_token"]}
        for name in ("action", "second", "third", "attestation"):
            body = _put(_said(options={"require_attestation": name == "attestation"}), secret)
            answer = self.asked("POST", f"/agents/{agent}/verify", body)
            assert answer["decision"] == "APPROVED"
            places[name] = answer["action_id"]
        view = self.asked("GET", f"/agents/{agent}/actions/{places['attestation']}")
        places["attestation"] = view["attestation_id"]
        waits = {"type": _NOTE, "tool": "ask_first", "parameters": {"order": 7}}
        for name in ("approval", "refused", "waiting"):
            body = _put(_said(waits, user_intent="with <S>"), secret)
            places[name] = self.asked("POST", f"/agents/{agent}/verify", body)["approval_id"]
        return places

    def _send(
        self, place: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        response = self.ask(method, path, body, headers)
        self.sent.append(Sent(place, response.status_code, response.content))
        if path == "/verify/batch" and response.status_code < 300:
            self.jobs.append(response.json()["job_id"])
        return response

    def _verify(self, name: str, secret: Secret, body: Any) -> None:
        sent, agent = _put(body, secret), self._furnished[secret.name]["agent"]
        response = self.ask("POST", f"/agents/{agent}/verify", sent)
        answer = response.json()
        told = {field: value for field, value in answer.items() if field not in ECHOED}
        self.sent.append(Sent(name, response.status_code, json.dumps(told).encode()))
        carried = secret.text in json.dumps(sent["action"], ensure_ascii=False)
        proven = isinstance(answer.get("attestation"), str) or answer["decision"] == "PENDING"
        if (
            carried
            and not proven
            and sent["action"].keys() <= {"type", "query", "code", "target", "tool", "parameters"}
        ):
            self.hashes[sha256_of(sent["action"])] = f"the hash of {name} with {secret.name}"

    def _raw(self, name: str, secret: Secret, raw: bytes) -> None:
        body = raw.replace(b"<S>", secret.said.encode())
        for path in (f"/agents/{self._furnished[secret.name]['agent']}/verify", "/keys", "/verify/sql"):
            response = self.client.post(path, content=body, headers={"X-API-Key": self.key})
            self.sent.append(Sent(f"{name} at {path}", response.status_code, response.content))

    def _headers(self, _name: str, secret: Secret, _body: None) -> None:
        if not secret.said.isprintable():
            return
        body, at = _put(_said(), secret), f"/agents/{self._furnished[secret.name]['agent']}"
        for name in ("Idempotency-Key", "User-Agent", "X-Request-Id", "Referer", "Cookie"):
            self._send(name, "POST", f"{at}/verify", body, {name: secret.said})
        self._send("Last-Event-ID", "GET", "/events", None, {"Last-Event-ID": secret.said})
        self._send("Authorization", "GET", at, None, {"Authorization": f"Bearer {secret.said}"})
        self._send("a key of nobody", "GET", "/agents", None, {"X-API-Key": f"{secret.said}x"})

    def told(self) -> Iterator[tuple[str, bytes]]:
        """Return everything that another owner can read."""
        paths = [
            "/agents?limit=1000",
            "/approvals?limit=1000",
            "/keys",
            "/webhook",
            "/tools",
            "/metrics",
            "/docs",
            "/openapi.json",
        ]
        paths += ["/health", "/ready", "/audit/head", "/.well-known/jwks.json"]
        paths += [f"/verify/batch/{job}" for job in self.jobs]
        for agent in self.agents:
            paths += [f"/agents/{agent}", f"/agents/{agent}/did.json", f"/agents/{agent}/budget"]
            paths += [f"/agents/{agent}/compliance-report?format={form}" for form in ("json", "csv")]
        paths += [f"/agents/{agent}/compliance-report?format=pdf" for agent in self.agents[::8]]
        for path in paths:
            response = self.client.get(path, headers={"X-API-Key": self.other})
            assert response.status_code == 200, (path, response.text)
            pdf = path.endswith("pdf")
            yield path, _pdf_text(response.content) if pdf else response.content
        for path in (
            "/changes?limit=1000",
            *(f"/agents/{agent}/activity?kind=all&limit=1000" for agent in self.agents),
        ):
            yield from self._pages(path)
        yield from self._entries()

    def _pages(self, path: str) -> Iterator[tuple[str, bytes]]:
        cursor = ""
        while cursor is not None:
            after = f"&cursor={cursor}" if cursor else ""
            response = self.client.get(path + after, headers={"X-API-Key": self.other})
            assert response.status_code == 200, (path, response.text)
            yield path, response.content
            page = response.json()
            for entry in page.get("activities", ())[::4]:
                at = f"/agents/{entry['agent_id']}/actions/{entry['activity_id']}"
                yield at, self.client.get(at, headers={"X-API-Key": self.other}).content
            cursor = page["next_cursor"]

    def _entries(self) -> Iterator[tuple[str, bytes]]:
        index, size = 0, self.asked("GET", "/audit/head")["size"]
        while index < size:
            page = self.asked("GET", f"/audit/entries?from_index={index}")
            yield "/audit/entries", json.dumps(page).encode()
            index += len(page["entries"])


def _pdf_text(document: bytes) -> bytes:
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(document)).pages).encode()


class Aftermath(NamedTuple):
    """Remains of an attack after the server has ended: texts and bytes by location."""

    needles: Needles
    answers: list[tuple[str, bytes]]
    told: list[tuple[str, bytes]]
    outside: list[tuple[str, bytes]]
    printed: list[tuple[str, bytes]]
    files: list[tuple[str, bytes]]

    def found_in(self, texts: Iterable[tuple[str, bytes]]) -> list[str]:
        """Return every secret that they contain."""
        return [found for where, data in texts for found in self.needles.found_in(data, where)]


def _attacked(place: Path, at_once: int) -> Aftermath:
    receiver, witness = WebhookReceiver(answering(200)), place / "witness.jsonl"
    server = Server(place / "data", QWED_WITNESS=f"file:{witness}", **SETTINGS)
    try:
        attack = Attack(server, receiver)
        attack.run(at_once)
        told = list(attack.told())
        outside = [("the export", _export(server)), ("the stream of events", _events(attack))]
        outside += [("a webhook", receiver.next().body)]
        attack.client.close()
        server.process.terminate()
        assert server.process.stdout is not None
        printed = [("standard output", (server.greeting + server.process.stdout.read()).encode())]
    finally:
        server.kill()
        receiver.close()
    outside += [("a webhook", heard.body) for heard in _rest(receiver)]
    printed += [("standard error", server.log.read_bytes()), ("the witness", witness.read_bytes())]
    return Aftermath(
        Needles(attack.secrets, attack.hashes),
        [(sent.place, sent.answer) for sent in attack.sent],
        told,
        outside,
        printed,
        [*_files(server.data_dir), *StoredRows(server.data_dir).tables()],
    )


def _rest(receiver: WebhookReceiver) -> Iterator[Any]:
    while not receiver.heard.empty():
        yield receiver.heard.get()


def _events(attack: Attack) -> bytes:
    last = attack.asked("GET", "/audit/head")["size"] - 1
    with SseClient(attack.server.base_url, attack.other, last=0) as ear:
        ear.until(last)
        return ear.text.encode()


def _export(server: Server) -> bytes:
    command = [sys.executable, "-m", "qwed.cli", "audit", "export", "--payloads", "--data-dir", str(server.data_dir)]
    environment = {**os.environ, **chosen.environment(server.data_dir)}
    done = subprocess.run(
        [*command, "--organisation", _first(server)], capture_output=True, check=True, env=environment
    )
    assert b'"payload"' in done.stdout
    return done.stdout + done.stderr


def _first(server: Server) -> str:
    first = "SELECT organisation_id FROM organisations ORDER BY created_at LIMIT 1"
    return str(StoredRows(server.data_dir).cell(first))


def _files(data_dir: Path) -> Iterator[tuple[str, bytes]]:
    yield from ((file.name, file.read_bytes()) for file in sorted(data_dir.rglob("*")) if file.is_file())


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    return _attacked(tmp_path_factory.mktemp("attacked"), AT_ONCE)


@spec("7.1", "A")
def test_no_answer_repeats_a_secret_that_was_sent(left: Aftermath) -> None:
    assert left.found_in(left.answers) == []
    assert sum(b"[secret:" in answer for _place, answer in left.answers) > 50


@spec("7.1", "7.2", "7.3")
def test_no_other_caller_reads_a_secret_or_a_plain_hash_of_what_carried_it(left: Aftermath) -> None:
    assert left.found_in(left.told) == []
    for kind in ("/activity", "/approvals", "/agents", "/keys", "/changes", "format=json", "format=csv"):
        assert any(b"[secret:" in text for where, text in left.told if kind in where), kind


@spec("7.1")
def test_no_export_event_or_notice_holds_a_secret(left: Aftermath) -> None:
    assert left.found_in(left.outside) == []
    assert b"[secret:" in dict(left.outside)["the export"]


@spec("7.1")
def test_no_log_line_and_no_witness_holds_a_secret(left: Aftermath) -> None:
    assert left.found_in(left.printed) == []
    assert all(text for _where, text in left.printed)


@spec("7.1")
def test_no_file_and_no_table_holds_a_secret_plain_escaped_encoded_or_hashed(left: Aftermath) -> None:
    assert left.found_in(left.files) == []


@spec("7.1")
@pytest.mark.drill
@campaign("secrets", "secrets in every place")
def test_every_secret_in_every_place_stands_nowhere(tmp_path: Path, figure: Figure) -> None:
    left = _attacked(tmp_path, 15)
    looked_in = [*left.answers, *left.told, *left.outside, *left.printed, *left.files]
    figure("texts without a secret", len(looked_in))
    assert left.found_in(looked_in) == []


_SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda raw: raw,
    "in lower case": bytes.lower,
    "escaped": lambda raw: json.dumps(raw.decode()).encode(),
    "base64": base64.b64encode,
    "base64 within a text": lambda raw: base64.b64encode(b"ab" + raw + b"cd"),
    "hex": lambda raw: raw.hex().encode(),
    "in an address": lambda raw: quote(raw.decode()).encode(),
    "hashed": lambda raw: hashlib.sha256(raw).hexdigest().encode(),
    "hashed, as bytes": lambda raw: hashlib.sha256(raw).digest(),
}


@spec("7.1")
@pytest.mark.parametrize("spelling", _SPELLINGS.values(), ids=_SPELLINGS)
def test_a_secret_that_stood_somewhere_would_be_found(spelling: Callable[[bytes], bytes]) -> None:
    secrets = [_secret(row) for row in TABLE if row["kind"] == "secret"]
    needles = Needles(secrets, {})
    for secret in secrets:
        assert needles.found_in(b"x" + spelling(secret.text.encode()) + b"x", "here"), secret.name


def _honest_actions(text: str) -> Iterator[dict[str, Any]]:
    yield {"type": _NOTE, "tool": "get_note", "parameters": {"text": text, "all": [{"n": text}], text: {"a": 1}}}
    yield {"type": "calculate", "query": text}


@spec("7.1")
def test_honest_texts_are_kept_as_they_were_sent(asking: Callable[..., AgentConversation]) -> None:
    ask = asking(type="autonomous")
    sent = [(action, f"for {row['text']}") for row in HONEST for action in _honest_actions(row["text"])]
    for number, (action, said) in enumerate(sent):
        ask(action, 1, conversation=f"honest {number}", user_intent=said)
    kept = ask.activity(limit=len(sent))["activities"]
    assert [(entry["action"], entry["user_intent"]) for entry in reversed(kept)] == sent


@spec("3.1", "7.1")
def test_honest_texts_about_an_agent_are_kept_as_they_were_sent(asking: Callable[..., AgentConversation]) -> None:
    for row in HONEST:
        said = dict.fromkeys(("name", "description", "framework", "model"), row["text"])
        ask = asking(**said, principal_id=row["name"])
        view = ask.api.get(f"/agents/{ask.agent_id}").json()
        assert {name: view[name] for name in said} == said


SECRET_NAME = "ghp_" + "k3zk6ejittpsnjgihyrv9nhrjtv7j2hdiksw"
REFUSED: dict[str, tuple[str, str, Any, str]] = {
    "a principal": (
        "POST",
        "/agents/register",
        {"name": "bot", "principal_id": SECRET_NAME},
        "`principal_id` carries a secret: use an id",
    ),
    "a permission": (
        "POST",
        "/agents/register",
        {"name": "bot", "principal_id": "u", "permissions": {"allowed_tools": [SECRET_NAME]}},
        "`permissions.allowed_tools` carries a secret: leave it out",
    ),
    "a tool": ("PUT", f"/tools/{SECRET_NAME}", {"risk_level": "low"}, "`name` carries a secret: choose another name"),
    "a webhook": (
        "PUT",
        "/webhook",
        {"url": f"https://example.com/{SECRET_NAME}"},
        "`url` carries a secret, which would be stored and shown: leave it out, notices are signed",
    ),
}


@spec("A")
@pytest.mark.parametrize(("method", "path", "body", "message"), REFUSED.values(), ids=REFUSED)
def test_a_name_that_would_be_another_one_without_its_secret_is_refused(
    api: httpx.Client, method: str, path: str, body: Any, message: str
) -> None:
    response = api.request(method, path, json=body)
    assert (response.status_code, response.json()["error"]["message"]) == (400, message)


@spec("4.1", "A")
def test_a_chain_that_is_named_by_a_secret_is_refused(ask: AgentConversation) -> None:
    answer = ask({"type": "calculate", "query": "2+2"}, 1, options={"chain_id": SECRET_NAME})
    assert answer["error"]["message"] == "`options.chain_id` carries a secret: use an id"


KEPT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a number told by its name": ({"password": 1234567890123456}, {"password": "[secret:assignment]"}),
    "a number of an order": (
        {"order": 1234567890123456, "token": SECRET_NAME},
        {"order": 1234567890123456, "token": "[secret:github_token]"},
    ),
    "a password around a token": ({"password": f"abc {SECRET_NAME} xyz"}, {"password": "[secret:assignment]"}),
    "a token in a sentence": ({"text": f"abc {SECRET_NAME} xyz"}, {"text": "abc [secret:github_token] xyz"}),
    "a name with a point": ({"password.": "hunter2-correct-horse"}, {"password.": "[secret:assignment]"}),
    "a token as a name": ({SECRET_NAME: "blue"}, {"[secret:github_token]": "blue"}),
    "said again without its name": (
        {"password": "hunter2-correct-horse", "note": ["say hunter2-correct-horse!", "hello"]},
        {"password": "[secret:assignment]", "note": ["say [secret:password]!", "hello"]},
    ),
}


@spec("7.1")
@pytest.mark.parametrize(("sent", "kept"), KEPT.values(), ids=KEPT)
def test_what_is_kept_of_an_action_is_all_but_its_secrets(
    ask: AgentConversation, sent: dict[str, Any], kept: dict[str, Any]
) -> None:
    answer = ask({"type": _NOTE, "tool": "get_note", "parameters": sent}, 1, user_intent="hunter2-correct-horse or so")
    assert answer["decision"] == "DENIED"
    (entry,) = ask.activity()["activities"]
    assert entry["action"] == {"type": _NOTE, "tool": "get_note", "parameters": kept}
    told = "hunter2-correct-horse" in sent.values()
    assert entry["user_intent"] == ("[secret:password] or so" if told else "hunter2-correct-horse or so")


@spec("7.1")
@pytest.mark.parametrize(
    ("result", "kept"),
    [
        ({"rows": 3}, True),
        ("done", True),
        ({"token": SECRET_NAME}, False),
        ([{"user": "ann", "password": "hunter2-correct-horse"}], False),
        (f"the key is {SECRET_NAME}", False),
    ],
)
def test_of_a_result_with_a_secret_not_even_the_hash_is_kept(ask: AgentConversation, result: Any, kept: bool) -> None:
    action_id = ask({"type": "calculate", "query": "2+2"}, 1)["action_id"]
    body = {"success": True, "result": result}
    told = ask.api.post(f"/agents/{ask.agent_id}/actions/{action_id}/execution", json=body).json()["execution"]
    assert (told["success"], told["result_hash"] is not None) == (True, kept)


@spec("7.1")
def test_a_permitted_action_with_a_secret_leaves_a_hash_only_where_it_is_attested(
    asking: Callable[..., AgentConversation],
) -> None:
    ask = asking(type="autonomous")
    action = {"type": "execute_sql", "query": f"SELECT id FROM notes WHERE body = '{SECRET_NAME}'"}
    plain = ask(action, 1)
    assert (plain["decision"], plain["verified_query"]) == ("APPROVED", action["query"])
    view = ask.api.get(f"/agents/{ask.agent_id}/actions/{plain['action_id']}").json()
    assert (view["action"]["query"], view["verified_query"]) == (
        "SELECT id FROM notes WHERE body = '[secret:github_token]'",
        None,
    )
    proven = ask(action, 2, options={"require_attestation": True})
    claims = proven["attestation"].split(".")[1]
    read = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert read["sub"] == f"sha256:{sha256_of(action)}"
    assert ask.api.post("/attestation/verify", json={"jwt": proven["attestation"]}).json()["valid"] is True

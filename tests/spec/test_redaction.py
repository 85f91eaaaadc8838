"""Spec 7.1: a secret that is sent stands nowhere afterwards: not in the files, not in the logs, not in any answer."""

import base64
import hashlib
import io
import itertools
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pypdf
import pytest

from qwed.words import sha256_of
from tests.spec.sections import spec
from tests.support.ears import Ear
from tests.support.receivers import Receiver, answering
from tests.support.server import Server
from tests.support.tables import rows

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
_WINDOW = slice(40, 60)
"""Enough of a long secret to know it by, and within what a message quotes."""


class Secret(NamedTuple):
    """One secret, and a text that carries it; `told` is the name without which it is no secret."""

    name: str
    text: str
    said: str
    told: str | None = None
    ours: bool = False
    """One of this very server, which keeps the SHA-256 of it to know it by."""


def _secret(row: dict[str, Any]) -> Secret:
    text = "".join(row["secret"])
    return Secret(row["name"], text, "".join(row.get("said", ["{}"])).replace("{}", text), row.get("told"))


def _forms(text: str, *, hashed: bool) -> Iterator[bytes]:
    """The spellings of a secret, in lower case where they are letters to be read."""
    raw = text.encode()
    yield from (raw, json.dumps(text)[1:-1].encode(), quote(text).encode(), raw.hex().encode())
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        inner = whole[(0, 2, 3)[shift] : len(whole) - 4]
        yield from (inner, inner.translate(bytes.maketrans(b"+/", b"-_")))
    if len(text) > _WINDOW.stop:
        yield text[_WINDOW].encode()
    if hashed:
        yield from _digests(hashlib.sha256(raw).digest())


def _digests(digest: bytes) -> tuple[bytes, ...]:
    return digest, digest.hex().encode(), base64.b64encode(digest)[:-1], base64.urlsafe_b64encode(digest)[:-1]


class Needles:
    """Whatever must not be found, and where it is found all the same."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self._all = {form.lower(): secret.name for secret in secrets for form in _forms(secret.text, hashed=not secret.ours)}
        self._any = re.compile(b"|".join(re.escape(form) for form in sorted(self._all, key=len, reverse=True)))

    def add_hash(self, digest: str, name: str) -> None:
        """No plain hash of an action that carried a secret, either."""
        self._all |= {form.lower(): name for form in _digests(bytes.fromhex(digest))}
        self._any = re.compile(b"|".join(re.escape(form) for form in sorted(self._all, key=len, reverse=True)))

    def found_in(self, data: bytes, where: str) -> list[str]:
        low = data.lower()
        return [
            f"{where}: {self._all[match[0]]} in {data[max(match.start() - 60, 0) : match.end() + 20]!r}"
            for match in itertools.islice(self._any.finditer(low), 3)
        ]


# What is sent. `<S>` is the secret as it is said; `<password>` is a name that gives one away, and beside it `<T>` is
# the secret alone.

def _action(**action: Any) -> dict[str, Any]:
    return {"action": action, "context": {"conversation_id": "<C>", "step_number": 1}}


def _said(action: dict[str, Any] | None = None, options: dict[str, Any] | None = None, **context: Any) -> dict[str, Any]:
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
    "told once, said twice": _action(type=_NOTE, tool="get_note", parameters={"<password>": "<T>", "note": "it is <T>"}),
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
    "an unknown field of the context": _said(**{"<S>": "<S>"}),
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
    "an organisation": ("POST", "/organisations", {"name": "house <S>"}),
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
    "parameters in a batch": ("POST", "/verify/batch", {"items": [{"query": "1", "type": "sql", "params": {"<S>": 1}}]}),
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
    "a tool in the path": ("POST", "/agents/{agent}/tools/<Q>", {"parameters": {}, "context": {"conversation_id": "<C>", "step_number": 1}}),
    "a justification": (
        "POST",
        "/agents/{agent}/tools/get_note",
        {"parameters": {"a": 1}, "justification": "because <S>", "context": {"conversation_id": "<C>", "step_number": 1}},
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
    "more trust": ("POST", "/agents/{agent}/trust", {"request": "trust_elevation", "to_level": 3, "justification": "as <S>"}),
    "less trust": ("POST", "/agents/{agent}/trust", {"request": "trust_reduction", "to_level": 1, "justification": "as <S>"}),
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
    """Where a secret was put, and what came back."""

    place: str
    status: int
    answer: bytes


def _put(value: Any, secret: Secret) -> Any:
    """The body with the secret in its places."""
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
        "<B>": base64.b64encode(f"the file of {secret.said} ends".encode()).decode(),
        "<F>": base64.b64encode(table).decode(),
        "<Q>": quote(secret.said, safe=""),
    }
    for mark, said in spelled.items():
        text = text.replace(mark, said)
    return text.replace("<C>", f"chat {next(_numbers)}")


class Attack:
    """One server, and every secret in every place of it."""

    def __init__(self, server: Server, receiver: Receiver) -> None:
        self.server = server
        self.key = server.owner_key
        self.client = httpx.Client(base_url=server.base_url, timeout=60)
        self.sent: list[Sent] = []
        self.hashes: list[tuple[str, str]] = []
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

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return self.client.request(method, path, json=body, headers={"X-API-Key": self.key} | headers)

    def asked(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        response = self.ask(method, path, body)
        assert response.status_code < 300, (path, response.text)
        read: dict[str, Any] = response.json()
        return read

    def run(self) -> None:
        for secret in self.secrets:
            places = self._furnish(secret)
            for name, body in VERIFY.items():
                self._verify(f"verify: {name}", secret, places, body)
            for name, raw in RAW.items():
                self._raw(name, secret, places, raw)
            self._headers(secret, places)
            for name, body in REGISTER.items():
                self._send(f"register: {name}", "POST", "/agents/register", _put(body, secret))
            for name, (method, path, body) in ASKED.items():
                at = _put_text(path.format(**places), secret)
                self._send(name, method, at, _put(body, secret))
        self._verifiers()

    def _verifiers(self) -> None:
        for path, body in VERIFIERS.items():
            for secret in self.secrets:
                self._send(f"/verify{path}", "POST", f"/verify{path}", _put(body, secret))

    def _furnish(self, secret: Secret) -> dict[str, str]:
        """An agent with the secret in all its texts, actions that were permitted, and some that wait."""
        said = {name: f"my {secret.said}"[:256] for name in ("name", "description", "framework", "model")}
        made = self._send("an agent", "POST", "/agents/register", {**said, "principal_id": "u_1", "trust_level": 2}).json()
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

    def _send(self, place: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        response = self.ask(method, path, body, **headers)
        self.sent.append(Sent(place, response.status_code, response.content))
        if path == "/verify/batch" and response.status_code < 300:
            self.jobs.append(response.json()["job_id"])
        return response

    def _verify(self, name: str, secret: Secret, places: dict[str, str], body: Any) -> None:
        sent = _put(body, secret)
        response = self.ask("POST", f"/agents/{places['agent']}/verify", sent)
        answer = response.json()
        told = {field: value for field, value in answer.items() if field not in ECHOED}
        self.sent.append(Sent(name, response.status_code, json.dumps(told).encode()))
        carried = secret.text in json.dumps(sent["action"], ensure_ascii=False)
        proven = isinstance(answer.get("attestation"), str) or answer["decision"] == "PENDING"
        if carried and not proven and sent["action"].keys() <= {"type", "query", "code", "target", "tool", "parameters"}:
            self.hashes.append((sha256_of(sent["action"]), f"the hash of {name} with {secret.name}"))

    def _raw(self, name: str, secret: Secret, places: dict[str, str], raw: bytes) -> None:
        body = raw.replace(b"<S>", secret.said.encode())
        for path in (f"/agents/{places['agent']}/verify", "/keys", "/verify/sql"):
            response = self.client.post(path, content=body, headers={"X-API-Key": self.key})
            self.sent.append(Sent(f"{name} at {path}", response.status_code, response.content))

    def _headers(self, secret: Secret, places: dict[str, str]) -> None:
        if not secret.said.isprintable():
            return
        body = _put(_said(), secret)
        path = f"/agents/{places['agent']}/verify"
        for name in ("Idempotency-Key", "User-Agent", "X-Request-Id", "Referer", "Cookie"):
            self._send(name, "POST", path, body, **{name: secret.said})
        self._send("Last-Event-ID", "GET", "/events", **{"Last-Event-ID": secret.said})
        self._send("Authorization", "GET", f"/agents/{places['agent']}", **{"Authorization": f"Bearer {secret.said}"})
        self._send("a key of nobody", "GET", "/agents", **{"X-API-Key": f"{secret.said}x"})

    def told(self) -> Iterator[tuple[str, bytes]]:
        """All that another owner can read."""
        paths = ["/agents?limit=1000", "/approvals?limit=1000", "/keys", "/webhook", "/tools", "/metrics", "/docs", "/openapi.json"]
        paths += ["/health", "/ready", "/audit/head", "/.well-known/jwks.json"]
        paths += [f"/verify/batch/{job}" for job in self.jobs]
        for agent in self.agents:
            paths += [f"/agents/{agent}", f"/agents/{agent}/did.json", f"/agents/{agent}/budget"]
            paths += [f"/agents/{agent}/compliance-report?format={form}" for form in ("json", "csv", "pdf")]
        for path in paths:
            response = self.client.get(path, headers={"X-API-Key": self.other})
            assert response.status_code == 200, (path, response.text)
            pdf = path.endswith("pdf")
            yield path, _pdf_text(response.content) if pdf else response.content
        for path in ("/changes?limit=1000", *(f"/agents/{agent}/activity?kind=all&limit=1000" for agent in self.agents)):
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
            for entry in page.get("activities", ()):
                if entry.get("decision"):
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

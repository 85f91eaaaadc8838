"""The same random requests to two applications, one on SQLite and one on PostgreSQL, whose answers and rows must agree.

Ids, tokens and signatures are random. An id of one application is paired with the id that the other one gives at the
same place, and each later occurrence must be that pair.
"""

import json
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from qwed.cli import main
from qwed.kernel.admin.approvals import expire
from qwed.kernel.bootstrap import OpenedServices, close_services, open_services
from qwed.settings import Settings, settings_from
from qwed.store.copy.plan import TableSchema, tables
from qwed.store.data_directory import FILE_NAME
from qwed.store.postgres.reader import open_tables
from qwed.store.snapshot_reader import SqliteTables, Tables
from tests.property.api_client import ApiAnswer, ApiHarness
from tests.property.state_machine import ACTIONS, HONEST, REASON, RULES, STATES
from tests.support.agent_names import unique_name
from tests.support.manual_clock import ManualClock
from tests.support.shared_engine_workers import share_engine_workers
from tests.support.wait_until import wait_for_condition

_ID = re.compile(
    r"qwed_(?:live|agent)_[0-9a-z]+|(?:a2a|act|agent|alone|apr|att|job|key|org|sub)_[0-9a-f]{12,26}|\b[0-9a-f]{64}\b"
)
"""Ids, tokens and digests; the digest of a message contains the ids of its agents."""
_OPAQUE_IN_ANSWERS = {"attestation", "attestation_jwt", "head", "inclusion", "latency_ms", "proof", "receipt"}
_OPAQUE_IN_ROWS = {
    *("answer", "commitment", "definition", "digest", "key", "latency_us", "nodes", "payload", "permissions", "prefix"),
    *("recent_flags", "request", "resolution", "result_hash", "signature", "token_digest", "token_prefix"),
}
"""Fields with signatures, ciphertexts, digests or durations: both have a value, or neither has."""
_SKIPPED_TABLES = {"heads", "meta", "logs", "outbox", "schema_versions", "token_buckets", "write_batch"}
"""State of one store alone, heads, of which each batch has one, and buckets, which SQLite writes with a later batch."""
_KEY_FILES = ("vault.key", "signing.key", "signing.jwks")
_PRINCIPALS = ("user_1", "user_2", "user_3")
_TOOL = "issue_voucher"


_FEW = """\
policy: few
facts: 1
rules:
  - id: mails
    when: action.type == "send_email" && usage.org.count("send_email", duration("1h")) < 4
    then: allow
  - id: reads
    when: action.type == "file_read" && usage.count("file_read", duration("60s")) >= 2
    then: deny
  - id: writes
    when: action.type == "file_write" && usage.count("file_write", duration("744h")) >= 2
    then: ask
    overrides: trust
"""
_SUMS = f"""\
policy: sums
facts: 1
args: {{amount: number}}
applies_to:
  tools: [{_TOOL}]
rules:
  - id: small
    when: usage.org.sum("{_TOOL}", "amount", duration("1h")) < 2.0
    then: allow
  - id: large
    when: usage.sum("{_TOOL}", "amount", duration("24h")) >= 1.0
    then: ask
    overrides: trust
"""


class DifferenceError(AssertionError):
    """The two applications differ."""


class Pairs:
    """Ids of the application on SQLite, each with the id that the other application gave instead."""

    def __init__(self) -> None:
        self._other: dict[str, str] = {}
        self._first: dict[str, str] = {}

    def translate(self, text: str) -> str:
        """Return a text for the application on PostgreSQL."""
        return _ID.sub(lambda found: self._other.get(found[0], found[0]), text)

    def translated_or_blank(self, text: str) -> str:
        """Return a text for the application on PostgreSQL, without the random ids that have no pair yet."""
        return _ID.sub(lambda found: self._other.get(found[0], _without_random_id(found[0])), text)

    def paired_or_blank(self, text: str) -> str:
        """Return a text of the application on PostgreSQL, without the random ids that have no pair yet."""
        return _ID.sub(lambda found: found[0] if found[0] in self._first else _without_random_id(found[0]), text)

    def require_equal(self, one: Any, other: Any, where: str, opaque: Set[str] = frozenset()) -> None:
        """Raise DifferenceError unless both are the same but for paired ids and opaque values."""
        if isinstance(one, dict) and isinstance(other, dict):
            self._require(one.keys() == other.keys(), one, other, where)
            for name, value in one.items():
                if name in opaque:
                    self._require((value is None) is (other[name] is None), value, other[name], f"{where}.{name}")
                else:
                    self.require_equal(value, other[name], f"{where}.{name}", opaque)
        elif isinstance(one, list) and isinstance(other, list):
            self._require(len(one) == len(other), one, other, where)
            for number, (left, right) in enumerate(zip(one, other, strict=True)):
                self.require_equal(left, right, f"{where}[{number}]", opaque)
        elif isinstance(one, str) and isinstance(other, str):
            self._pair(one, other, where)
        else:
            self._require(one == other, one, other, where)

    def _pair(self, one: str, other: str, where: str) -> None:
        self._require(_ID.sub("", one) == _ID.sub("", other), one, other, where)
        for left, right in zip(_ID.findall(one), _ID.findall(other), strict=True):
            paired = (self._other.setdefault(left, right), self._first.setdefault(right, left))
            self._require(paired == (right, left), one, other, where)

    @staticmethod
    def _require(equal: bool, one: Any, other: Any, where: str) -> None:
        if not equal:
            raise DifferenceError(f"{where}: {one!r:.500} on SQLite, {other!r:.500} on PostgreSQL")


def _without_random_id(name: str) -> str:
    """Return a digest, which both applications compute, and nothing for an id, which each of them draws."""
    return "" if "_" in name else name


class TwoStores:
    """Two applications with the same keys and the same clock."""

    def __init__(self, directory: Path, url: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.pairs = Pairs()
        self.met: Counter[str] = Counter()
        self.steps: list[str] = []
        self._directory, self._url = directory, url
        here, there = directory / "sqlite", directory / "postgres"
        created = self._open(here, "")
        close_services(created.services)
        assert main(["copy", "--from", f"sqlite:///{here}", "--to", url]) == 0
        there.mkdir(mode=0o700)
        for name in _KEY_FILES:
            shutil.copy(here / name, there / name)
        one, other = self._open(here, ""), self._open(there, url)
        self._opened = (one, other)
        self._doors = (ApiHarness(one), ApiHarness(other))
        wait_for_condition(other.services.store.is_leader)
        self.keys = [created.owner_key or ""]
        self.key_ids: list[str] = []
        self.agents: list[str] = []
        self.tokens: dict[str, list[str]] = {}
        self.actions: list[tuple[str, str]] = []
        """Agent and action of each decision."""
        self.approvals: list[str] = []
        self.attestations: list[str] = []
        self.last_steps: Counter[tuple[str, str]] = Counter()
        """Last committed step of each agent and conversation."""
        self.sent: list[tuple[str, str, Any, dict[str, str]]] = []
        """Requests for a decision, to be repeated."""
        for role in ("owner", "approver", "member"):
            self._add_key(role)
        for _ in range(2):
            self.register()

    def _open(self, directory: Path, url: str) -> OpenedServices:
        return share_engine_workers(open_services(_settings(directory, url), clock=self.clock.clock()))

    def close(self) -> None:
        """Release both."""
        for door in self._doors:
            door.close()

    # Requests

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> ApiAnswer:
        """Return the answer to a request that both answer alike."""
        self.clock.advance(0.25)
        self._expire()
        self.steps.append(f"{method} {path} {body} {headers}")
        path, _, query = path.partition("?")
        one = self._doors[0].ask(method, path, body, headers, query)
        translated = json.loads(self.pairs.translate(json.dumps([path, body, headers, query])))
        other = self._doors[1].ask(method, translated[0], *translated[1:])
        self.pairs.require_equal(list(one), list(other), f"{method} {path}", _OPAQUE_IN_ANSWERS)
        self.met[f"{one.body.get('decision') or one.body.get('status') or one.status} {one.code}"] += 1
        return one

    def _expire(self) -> None:
        """Resolve what has expired, in both at the same moment; a server on PostgreSQL does it in a thread."""
        for opened in self._opened:
            expire(opened.services, self.clock.now)
            opened.services.store.durable().wait_result(30)

    def _key(self) -> dict[str, str]:
        return {"X-API-Key": self.random.choice(self.keys)}

    def _owner(self) -> dict[str, str]:
        return {"X-API-Key": self.keys[0]}

    def _credential(self, agent: str) -> dict[str, str]:
        """Return the headers of the agent, rarely with an earlier token or with the key of a person."""
        chance = self.random.random()
        if chance < 0.1:
            return self._key()
        tokens = self.tokens[agent]
        return {"Authorization": f"Bearer {self.random.choice(tokens) if chance < 0.2 else tokens[-1]}"}

    def _agent(self) -> str:
        return self.random.choice(self.agents[-3:])

    # Operations

    def _add_key(self, role: str) -> None:
        answer = self.ask("POST", "/keys", {"name": role, "role": role}, self._owner())
        self.keys.append(answer.body["key"])
        self.key_ids.append(answer.body["id"])

    def add_or_revoke_key(self) -> None:
        """Add a key, or revoke one."""
        if len(self.key_ids) < 6:
            self._add_key(self.random.choice(["owner", "approver", "member"]))
        else:
            self.ask("DELETE", f"/keys/{self.random.choice(self.key_ids)}", None, self._key())
            self.key_ids.pop(0)

    def register(self) -> None:
        """Register an agent."""
        budget = {
            "max_daily_cost_usd": self.random.choice([None, None, 0.05, 0.4]),
            "max_requests_per_hour": self.random.choice([None, None, 15]),
            "max_tokens_per_day": self.random.choice([None, 40]),
            "max_high_risk_calls_per_day": self.random.choice([None, 2]),
        }
        body = {
            "name": unique_name("played"),
            "principal_id": self.random.choice(_PRINCIPALS),
            "trust_level": self.random.choice([0, 1, 2, 2, 3, 3]),
            "permissions": {"blocked_tools": ["database_write"]},
            "budget": {name: value for name, value in budget.items() if value is not None},
        }
        answer = self.ask("POST", "/agents/register", body, self._key() if self.agents else self._owner())
        if answer.status < 300:
            self.agents.append(answer.body["agent_id"])
            self.tokens[self.agents[-1]] = [answer.body["agent_token"]]

    def verify(self) -> None:
        """Ask for a decision about an action."""
        draw, agent = self.random, self._agent()
        name = draw.choice([*HONEST * 8, *sorted(ACTIONS)])
        options: dict[str, Any] = {}
        if draw.random() < 0.2:
            options["require_attestation"] = True
        if draw.random() < 0.2:
            options["chain_id"] = draw.choice(["chain_a", "chain_b"])
        if ACTIONS[name][0].careful:
            options["risk_threshold"] = "low"
        cost = {"usd": draw.choice([0, 0, 0.01, 0.03]), "tokens": draw.choice([0, 0, 7])}
        body = {"action": {**ACTIONS[name][1], "cost": cost}, "context": self._context(agent)}
        headers = self._credential(agent)
        if draw.random() < 0.15:
            headers["Idempotency-Key"] = f"key {draw.randrange(6)}"
        if options:
            body["options"] = options
        self._decide(agent, f"/agents/{agent}/verify", body, headers)

    def _context(self, agent: str) -> dict[str, Any]:
        draw = self.random
        conversation = draw.choice(["one", f"talk {len(self.steps) // 40}", f"talk {len(self.steps) // 100}"])
        ahead = draw.choice([1, 1, 1, 1, 1, 1, 2, 0, 49])
        step = max(self.last_steps[agent, conversation] + ahead, 1)
        context: dict[str, Any] = {"conversation_id": conversation, "step_number": step}
        if draw.random() < 0.3:
            context |= {"pre_action_state_hash": draw.choice(STATES), "state_source": "custom"}
        return context

    def call_tool(self) -> None:
        """Ask for a decision about a tool call."""
        agent, tool = self._agent(), self.random.choice([_TOOL, "file_read", "brew_tea"])
        parameters = {"target": "reports/q3.csv", "amount": self.random.choice([0.1, 0.25, 1, 0, "many"])}
        body = {"parameters": parameters, "context": self._context(agent)}
        self._decide(agent, f"/agents/{agent}/tools/{tool}", body, self._credential(agent))

    def _decide(self, agent: str, path: str, body: Any, headers: dict[str, str]) -> None:
        self.sent = [*self.sent[-20:], (agent, path, body, headers)]
        answer = self.ask("POST", path, body, headers)
        if answer.body.get("decision") in ("APPROVED", "CORRECTED", "PENDING"):
            place = (agent, body["context"]["conversation_id"])
            self.last_steps[place] = max(self.last_steps[place], body["context"]["step_number"])
        if "action_id" in answer.body:
            self.actions = [*self.actions[-50:], (agent, answer.body["action_id"])]
        if "approval_id" in answer.body:
            self.approvals = [*self.approvals[-12:], answer.body["approval_id"]]
        if answer.body.get("attestation_id"):
            self.attestations = [*self.attestations[-12:], answer.body["attestation_id"]]

    def repeat(self) -> None:
        """Send an earlier request again, as it was or with its next step."""
        if self.sent:
            agent, path, body, headers = self.random.choice(self.sent[-6:])
            if self.random.random() < 0.7:
                step = body["context"]["step_number"] + 1
                body = {**body, "context": {**body["context"], "step_number": step}}
            self._decide(agent, path, body, headers)

    def register_tool(self) -> None:
        """Register a tool, with another risk each time."""
        body = {"risk_level": self.random.choice(["low", "medium", "high"]), "requires_verification": False}
        self.ask("PUT", f"/tools/{_TOOL}", body, self._key())

    def change_policies(self) -> None:
        """Put another set in force, with rules that count calls."""
        documents = [{"text": text} for text in self.random.choice([(), (_FEW,), (_FEW, _SUMS), (_SUMS,)])]
        self.ask("PUT", "/policies", {"documents": documents}, self._owner() | {"If-Match": "*"})

    def resolve(self) -> None:
        """Approve or reject."""
        if self.approvals:
            verb = self.random.choice(["approve", "approve", "reject"])
            self.ask("POST", f"/approvals/{self.random.choice(self.approvals)}/{verb}", REASON, self._key())

    def change_trust(self) -> None:
        """Request more trust, or lower it."""
        agent, level = self._agent(), self.random.randrange(1, 4)
        body: dict[str, Any] = {"to_level": level, "justification": "it went well"}
        if self.random.random() < 0.1:
            body = {"request": "trust_reduction", "to_level": level - 1}
        answer = self.ask("POST", f"/agents/{agent}/trust", body, self._key())
        if answer.body.get("approval_id"):
            self.approvals = [*self.approvals[-12:], answer.body["approval_id"]]

    def stop_or_go_on(self) -> None:
        """Suspend, reactivate, complain about or rotate the token of an agent."""
        agent = self._agent()
        verb = self.random.choice(["suspend", "complaint", *["reactivate"] * 6, "rotate-token"])
        answer = self.ask("POST", f"/agents/{agent}/{verb}", REASON, self._key())
        if answer.body.get("agent_token"):
            self.tokens[agent].append(answer.body["agent_token"])

    def halt(self) -> None:
        """Turn the kill switch on, decide once, and turn it off again."""
        self.ask("POST", "/suspend-all", REASON, self._owner())
        self.verify()
        self.ask("POST", "/reactivate-all", REASON, self._owner())

    def report_execution(self) -> None:
        """Report the execution of an action."""
        if self.actions:
            agent, action = self.random.choice(self.actions)
            body = {"success": self.random.random() < 0.8}
            self.ask("POST", f"/agents/{agent}/actions/{action}/execution", body, self._credential(agent))

    def send_message(self) -> None:
        """Send a message, mostly between two agents."""
        names = [*self.agents[-3:], "shop"]
        body: dict[str, Any] = {
            "sender_agent_id": self.random.choice(names),
            "receiver_agent_id": self.random.choice(names),
            "payload_type": "general",
            "payload": {"text": self.random.choice(["hello", "good bye", "12.00"])},
        }
        if self.random.random() < 0.5:
            body["metadata"] = {"conversation_id": "messages"}
        self.ask("POST", "/a2a/intercept", body, self._key())

    def change_lists(self) -> None:
        """Change the access lists for messages."""
        method, agent = self.random.choice(["PUT", "DELETE", "DELETE"]), self._agent()
        name = self.random.choice(["blocks", "pairs", "trusted"])
        body = {"sender": agent, "receiver": self._agent()} if name == "pairs" else {"agent_id": agent}
        self.ask(method, f"/a2a/{name}", body, self._owner())

    def revoke_attestation(self) -> None:
        """Revoke an attestation."""
        if self.attestations:
            name = self.random.choice(self.attestations)
            self.ask("POST", f"/attestation/{name}/revoke", REASON, self._key())

    def erase(self) -> None:
        """Erase what is stored about a person."""
        self.ask("POST", "/audit/erase", {"subject": self.random.choice(_PRINCIPALS)}, self._owner())

    def pass_time(self) -> None:
        """Move the clock, sometimes to another day."""
        self.clock.advance(self.random.choice([60, 600, 3_600, 3_600, RULES.approval_seconds, 25 * 3_600]))

    def read(self) -> None:
        """Read what a dashboard shows."""
        agent = self._agent()
        paths = [
            *(f"/agents/{agent}", f"/agents/{agent}/budget", f"/agents/{agent}/activity?limit=20&kind=all"),
            *("/approvals?limit=20", "/changes?limit=20", "/tools"),
        ]
        if self.actions:
            agent, action = self.random.choice(self.actions)
            paths.append(f"/agents/{agent}/actions/{action}")
        self.ask("GET", self.random.choice(paths), None, self._owner())

    # Rows

    def require_equal_rows(self) -> None:
        """Raise DifferenceError unless both databases have the same rows."""
        for opened in self._opened:
            opened.services.store.durable().wait_result(30)
        with ExitStack() as stack:
            file = sqlite3.connect(f"file:{self._directory / 'sqlite' / FILE_NAME}?mode=ro", uri=True)
            here = SqliteTables(stack.enter_context(closing(file)))
            there = stack.enter_context(open_tables(self._url))
            for table in sorted(tables(), key=lambda each: (each.name not in _ORDERS, each.name)):
                if table.name not in _SKIPPED_TABLES:
                    self._require_equal_table(table, here, there)

    def _require_equal_table(self, table: TableSchema, here: Tables, there: Tables) -> None:
        order = _ORDERS.get(table.name)
        ones, others = (self._rows(table, each, order) for each in (here, there))
        if order is None:
            # An id that only this table has is paired by the rest of its row.
            ones.sort(key=lambda row: self.pairs.translated_or_blank(_sort_key(row)))
            others.sort(key=lambda row: self.pairs.paired_or_blank(_sort_key(row)))
        self.pairs.require_equal(ones, others, table.name, _OPAQUE_IN_ROWS)

    def _rows(self, table: TableSchema, source: Tables, order: str | None) -> list[dict[str, Any]]:
        columns = [name for name in table.columns if name != "rowid"]
        listed = ", ".join(f'"{name}"' for name in columns)
        statement = f"SELECT {listed} FROM {table.name}" + (f" ORDER BY {order}" if order else "")
        rows = (dict(zip(columns, row, strict=True)) for row in source.rows(statement, ()))
        return [row for row in map(_comparable, rows) if row.get("expires_at", self.clock.now + 1) > self.clock.now]


_ORDERS = {"activities": "organisation_id, log_index"}
"""Tables whose order pairs the ids in their rows; they are compared first."""


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    if "leaf" in row:
        row["leaf"] = json.loads(row["leaf"])
    return row


def _sort_key(row: dict[str, Any]) -> str:
    return repr([(name, value) for name, value in row.items() if name not in _OPAQUE_IN_ROWS])


def _settings(directory: Path, url: str) -> Settings:
    return settings_from(
        {},
        data_dir=directory,
        database_url=url,
        rate_limit_per_key=0,
        approval_ttl_seconds=RULES.approval_seconds,
        max_open_approvals=RULES.open_approvals,
        trust_min_days=RULES.min_days,
        trust_min_actions=RULES.min_actions,
        trust_max_denial_rate=RULES.max_denial_percent / 100,
    )


_WEIGHTS: dict[Callable[[TwoStores], None], int] = {
    TwoStores.verify: 40,
    TwoStores.repeat: 14,
    TwoStores.call_tool: 6,
    TwoStores.read: 8,
    TwoStores.resolve: 8,
    TwoStores.change_policies: 3,
    TwoStores.send_message: 6,
    TwoStores.report_execution: 4,
    TwoStores.change_trust: 4,
    TwoStores.stop_or_go_on: 4,
    TwoStores.pass_time: 4,
    TwoStores.register_tool: 2,
    TwoStores.change_lists: 2,
    TwoStores.revoke_attestation: 2,
    TwoStores.add_or_revoke_key: 2,
    TwoStores.halt: 1,
    TwoStores.register: 3,
    TwoStores.erase: 1,
}


def operations(drawn: random.Random) -> Iterator[Callable[[TwoStores], None]]:
    """Yield operations for ever, by their weights."""
    while True:
        yield from drawn.choices([*_WEIGHTS], [*_WEIGHTS.values()], k=100)

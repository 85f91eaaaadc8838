"""Ruling 4.18: another organisation's id is indistinguishable from one that does not exist, on every route.

`Bravo` has data of every kind, and its name is in every text of it. `Alpha` calls each route with ids of Bravo and with
unknown ids: the answers are the same, nothing of Bravo is in any of them, and nothing of Bravo changes.
"""

import itertools
import random
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from qwed.api.openapi.document import document
from qwed.api.routes import ROUTES, Route
from tests.support.campaign_table import Figure, campaign
from tests.support.full_organisations import (
    BODIES,
    ROLES,
    SHARED_TOOL,
    Tenant,
    auth_headers,
    body_of,
    create_tenant,
    fill_tenant,
    shape_of,
)
from tests.support.policy_calls import policy, rule
from tests.support.route_caller import answer_to
from tests.support.server import Server

_IN_PATH = re.compile(r"{(\w+)}")
OPERATIONS = {
    (method.upper(), path): operation["operationId"]
    for path, operations in document()["paths"].items()
    for method, operation in operations.items()
}
CREDENTIALS = (*ROLES, "token", "member and token")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(Path(tmp_path_factory.mktemp("tenants")) / "data", QWED_RATE_LIMIT_PER_KEY="0")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base_url, timeout=30) as opened:
        yield opened


def _filled(client: httpx.Client, server: Server, marker: str) -> Tenant:
    """Create an organisation with data of every kind, and with a policy that none of its requests meets."""
    tenant = fill_tenant(create_tenant(client, server.owner_key, marker))
    tenant.others.append(f"rules-{marker.lower()}")
    text = policy(rule(f'shell.hosts == ["{marker.lower()}.example.com"]'), name=tenant.others[-1])
    tenant.ask("PUT", f"/policies/{tenant.others[-1]}", {"text": text}, **{"If-Match": "*"})
    return tenant


def _dump(tenant: Tenant) -> dict[str, Any]:
    """Return everything its owner can read, policies included."""
    return tenant.dump() | {path: tenant.ask("GET", path) for path in ("/policies", "/policies/versions")}


class Tenants(NamedTuple):
    alpha: Tenant
    bravo: Tenant


@pytest.fixture(scope="module")
def tenants(server: Server, client: httpx.Client) -> Tenants:
    both = [_filled(client, server, marker) for marker in ("Alpha4711", "Bravo0815")]
    return Tenants(*both)


class CrossTenantRequest(NamedTuple):
    """One request of Alpha: with ids of Bravo, and the same with unknown ids."""

    route: Route
    shown: dict[str, str]
    foreign: dict[str, str]
    missing: dict[str, str]
    """Unknown ids by the name of the path or query parameter."""
    query: dict[str, str]
    body: Any

    @property
    def same(self) -> bool:
        """Return True if both requests must get the same answer: one id is Bravo's, the other unknown."""
        return self.foreign != self.missing


class CrossTenantRequests:
    """Random requests of Alpha over the whole table of routes."""

    def __init__(self, alpha: Tenant, bravo: Tenant, seed: int) -> None:
        self.alpha, self.bravo = alpha, bravo
        self.lot = random.Random(seed)
        self.asked: Counter[str] = Counter()

    def draw(self) -> CrossTenantRequest:
        route = self.lot.choice(ROUTES)
        operation = OPERATIONS[route.method, route.path]
        self.asked[operation] += 1
        names = _IN_PATH.findall(route.path)
        own = self.lot.choice([None, *names]) if len(names) > 1 else None
        foreign, missing = {}, {}
        for name in names:
            foreign[name], missing[name] = self._ids(name, own=name == own)
        query = {name: self._query(name) for name in route.query if self.lot.random() < 0.4}
        for name in ("agent_id", "activity_id"):
            if query.pop(name, None) is not None:
                foreign[name], missing[name] = self._ids(name, own=False)
        body = body_of(operation)
        if isinstance(body, dict) and operation in ("verify", "verify_tool", "change_trust"):
            body = body | self.lot.choice([{}, {"agent_id": foreign.get("agent_id")}])
        return CrossTenantRequest(route, self._shown(operation), foreign, missing, query, body)

    def _shown(self, operation: str) -> dict[str, str]:
        who = self.lot.choice(CREDENTIALS)
        alpha = self.alpha
        # Alpha's own agents would store the first of the two requests under it.
        more = {"Idempotency-Key": f"retry-{self.bravo.marker}"} if operation == "verify" else {}
        if who == "token":
            return auth_headers(token=alpha.tokens[0]) | more
        if who in ROLES:
            return auth_headers(alpha.keys[who]) | more
        return auth_headers(alpha.keys["member"], alpha.tokens[0]) | more

    def _ids(self, name: str, *, own: bool) -> tuple[str, str]:
        if name == "name":
            return SHARED_TOOL, SHARED_TOOL
        if name == "tool":
            marked = self.bravo.others[0]
            return self.lot.choice([(marked, "lookup_nobody000"), (SHARED_TOOL, SHARED_TOOL)])
        if name == "policy_id":
            return self.bravo.others[-1], "rules-nobody000"
        kinds = {"agent_id": "agents", "action_id": "actions", "activity_id": "actions", "approval_id": "approvals"}
        kinds["attestation_id"] = "attestations"
        if name in kinds:
            theirs = self.lot.choice(getattr(self.bravo, kinds[name]))
            mine = getattr(self.alpha, kinds[name])[0]
        else:
            theirs = self.lot.choice(sorted(self.bravo.key_ids.values()))
            mine = theirs
        return (mine, mine) if own else (theirs, unknown_id_like(theirs, self.lot))

    def _query(self, name: str) -> str:
        bravo = self.bravo
        values = {
            "agent_id": bravo.agents[:1],
            "cursor": [*bravo.agents, *bravo.approvals, "1", "20", "40"],
            "limit": ["1", "2", "1000"],
            "status": ["current", "suspended", "all", "rumour"],
            "version": ["0", "1", "99"],
            "state": ["pending", "approved", "rejected", "expired"],
            "decision": ["APPROVED", "PENDING"],
            "kind": ["change", "all"],
            "wait": ["0"],
            "from": ["2020-01-01"],
            "to": ["2099-01-01"],
            "activity_id": bravo.actions[:1],
            "format": ["json", "csv", "rumour"],
            "from_index": ["0", "1", "99"],
            "index": ["0", "1", "99"],
            "size": ["1", "5", "99"],
            "type": ["decision", "approval,trust", "rumour"],
        }
        return self.lot.choice(values[name])


def unknown_id_like(known: str, lot: random.Random) -> str:
    """Return an unknown id of the same shape."""
    prefix, _, digits = known.rpartition("_")
    return f"{prefix}_{lot.getrandbits(4 * len(digits)):0{len(digits)}x}"


def _ask(client: httpx.Client, question: CrossTenantRequest, ids: dict[str, str]) -> httpx.Response:
    path = _IN_PATH.sub(lambda found: ids[found[1]], question.route.path)
    content = {} if question.body is None else {"json": _with_ids(question, ids)}
    asked = {name: ids[name] for name in question.route.query if name in ids}
    query = question.query | asked
    return answer_to(client, question.route.method, path, params=query, headers=question.shown, **content)


def _with_ids(question: CrossTenantRequest, ids: dict[str, str]) -> Any:
    if isinstance(question.body, dict) and question.body.get("agent_id") is not None and "agent_id" in ids:
        return question.body | {"agent_id": ids["agent_id"]}
    return question.body


def _campaign(client: httpx.Client, tenants: Tenants, requests: int, seed: int) -> Counter[str]:
    alpha, bravo = tenants
    questions = CrossTenantRequests(alpha, bravo, seed)
    before, sent = _dump(bravo), 0
    while sent < requests:
        question = questions.draw()
        if question.route.path == "/suspend-all":
            question = question._replace(shown=auth_headers(alpha.keys["approver"]))
        first = _ask(client, question, question.foreign)
        second = _ask(client, question, question.missing)
        sent += 2
        where = f"seed {seed}: {question.route.method} {first.request.url} {question.shown}"
        for response, ids in ((first, question.foreign), (second, question.missing)):
            leaked = [each for each in bravo.ids if each in response.text and each not in _said(question, ids)]
            assert leaked == [], (where, response.text)
        if question.same:
            assert shape_of(first, *question.foreign.values()) == shape_of(second, *question.missing.values()), where
        if question.route.path == "/suspend-all":
            alpha.ask("POST", "/reactivate-all", {"reason": "the campaign goes on"})
    assert _dump(bravo) == before, f"seed {seed}"
    return questions.asked


def _said(question: CrossTenantRequest, ids: dict[str, str]) -> str:
    """Return the texts of Alpha's own request, which the answer may repeat."""
    return " ".join([*ids.values(), *question.query.values()])


def test_every_route_has_something_to_say() -> None:
    assert [name for name in OPERATIONS.values() if name not in BODIES] == []


def test_400_requests_of_one_organisation_find_nothing_of_another(client: httpx.Client, tenants: Tenants) -> None:
    asked = _campaign(client, tenants, 400, seed=4711)
    assert len(asked) > len(ROUTES) * 0.9


@pytest.mark.drill
@campaign("tenants", "one organisation looks for another")
def test_5000_requests_of_one_organisation_find_nothing_of_another(
    client: httpx.Client, tenants: Tenants, figure: Figure
) -> None:
    asked = _campaign(client, tenants, 5_000, seed=secrets.randbits(32))
    figure("requests", 5_000)
    assert sorted(asked) == sorted(OPERATIONS.values())


def test_where_a_page_ends_says_nothing_of_what_others_do(client: httpx.Client, tenants: Tenants) -> None:
    """Bravo acts between two requests of Alpha; Alpha's cursors count Alpha's entries alone."""
    alpha, bravo = tenants
    steps = []
    for busy in (0, 7, 0, 23):
        for _ in range(busy):
            bravo.ask("POST", f"/agents/{bravo.agents[0]}/verify", body_of("verify"))
        alpha.ask("POST", f"/agents/{alpha.agents[0]}/verify", body_of("verify"))
        alpha.ask("POST", f"/agents/{alpha.agents[0]}/verify", body_of("verify"))
        steps.append(alpha.ask("GET", f"/agents/{alpha.agents[0]}/activity?limit=1")["next_cursor"])
    numbers = [int(cursor) for cursor in steps if cursor.isdigit()]
    # Two decisions of Alpha, and their consequences.
    assert [gap for gap in (after - before for before, after in itertools.pairwise(numbers)) if gap > 4] == []


def test_a_cursor_into_what_others_did_leads_nowhere(client: httpx.Client, tenants: Tenants) -> None:
    """No number up to the end of Alpha's log, or far beyond it, is a cursor into Bravo's."""
    alpha, bravo = tenants
    agent = alpha.agents[0]
    alpha.ask("POST", f"/agents/{agent}/verify", body_of("verify"))
    own = [page["log_index"] for page in alpha.ask("GET", f"/agents/{agent}/activity?limit=1000")["activities"]]
    end = own[0] + 1

    def shown(number: int) -> list[int]:
        page = alpha.ask("GET", f"/agents/{agent}/activity?limit=1000&cursor={number}")
        return [each["log_index"] for each in page["activities"]]

    for number in range(1, end):
        assert shown(number) == [index for index in own if index < number]
    before = [shown(number) for number in range(end, end + 60)]
    for _ in range(5):
        bravo.ask("POST", f"/agents/{bravo.agents[0]}/verify", body_of("verify"))
    # Actions of Bravo do not change the meaning of numbers past the end of Alpha's log.
    assert [shown(number) for number in range(end, end + 60)] == before


BUSY = (0, 5, 10, 15)


def test_ids_do_not_count_what_others_do(client: httpx.Client, tenants: Tenants) -> None:
    alpha, bravo = tenants
    gaps = []
    for busy in BUSY:
        first = alpha.ask("POST", f"/agents/{alpha.agents[0]}/verify", body_of("verify"))["action_id"]
        for _ in range(busy):
            bravo.ask("POST", f"/agents/{bravo.agents[0]}/verify", body_of("verify"))
        second = alpha.ask("POST", f"/agents/{alpha.agents[0]}/verify", body_of("verify"))["action_id"]
        # After the time in milliseconds (twelve digits) comes the random part of an id.
        gaps.append([int(second[end - 6 : end], 16) - int(first[end - 6 : end], 16) for end in range(22, 31)])
    counting = [gap for gap in zip(*gaps, strict=True) if all(0 < g - b < 9 for g, b in zip(gap, BUSY, strict=True))]
    assert counting == []


_OF_THE_NODE = frozenset({"ready", "jwks", "metrics"})
SCRIPT: tuple[tuple[str, str, str | None], ...] = tuple(
    (route.method, route.path, role)
    for route in ROUTES
    if OPERATIONS[route.method, route.path] not in _OF_THE_NODE
    for role in (None, *ROLES, "token")
)
"""Every call that Alpha can make on its own data, in the order of the table."""

_SHORT = {"limit": "3"}
_QUERIES = {
    "list_changes": _SHORT,
    "get_activity": _SHORT,
    "list_approvals": _SHORT,
    # A year without an entry: durations in leaves differ every time.
    "get_compliance_report": {"format": "json", "from": "2000-01-01", "to": "2000-12-31"},
}


def _play(client: httpx.Client, alpha: Tenant) -> list[Any]:
    ids = {"agent_id": alpha.agents[0], "action_id": alpha.actions[0], "approval_id": alpha.approvals[2]}
    spare = alpha.ask("POST", "/keys", {"name": "spare", "role": "member"})["id"]
    ids |= {"tool": SHARED_TOOL, "name": SHARED_TOOL, "key_id": spare, "job_id": alpha.jobs[0]}
    ids |= {"attestation_id": alpha.attestations[0], "policy_id": alpha.others[-1]}
    told = []
    for method, path, role in SCRIPT:
        shown = auth_headers(token=alpha.tokens[0]) if role == "token" else auth_headers(alpha.keys.get(role or ""))
        operation = OPERATIONS[method, path]
        body = body_of(operation)
        content = {} if body is None else {"json": body}
        url = _IN_PATH.sub(lambda found: ids[found[1]], path)
        response = answer_to(client, method, url, headers=shown, params=_QUERIES.get(operation, {}), **content)
        text = re.sub(r"conv \d+|Alpha4711 \d+|another one \d+", "conv", shape_of(response)[2])
        # An ETag begins with the digest of the name, which has a number.
        text = re.sub(r'"etag":"\\"[\w-]+\.', '"etag":"', text)
        if operation == "list_agents":  # in the order of their random ids
            text = "".join(sorted(text))
        told.append((method, path, role, response.status_code, text))
    return told


def _answers_to_alpha(folder: Path, *, crowded: bool) -> list[Any]:
    server = Server(folder / "data", QWED_RATE_LIMIT_PER_KEY="0")
    try:
        with httpx.Client(base_url=server.base_url, timeout=30) as client:
            if crowded:
                _filled(client, server, "Bravo0815")
            alpha = _filled(client, server, "Alpha4711")
            if crowded:
                _filled(client, server, "Charlie99")
            return _play(client, alpha)
    finally:
        server.stop()


def test_an_organisation_is_answered_alike_whether_or_not_another_exists(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "crowded").mkdir()
    alone = _answers_to_alpha(tmp_path / "alone", crowded=False)
    crowded = _answers_to_alpha(tmp_path / "crowded", crowded=True)
    assert [pair for pair in zip(alone, crowded, strict=True) if pair[0] != pair[1]] == []

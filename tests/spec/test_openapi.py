"""Appendix B, tested by machine: valid requests are answered as documented, invalid ones are refused."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case, CheckContext, Response
from schemathesis.checks import not_a_server_error
from schemathesis.config import GenerationConfig
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from qwed.api.openapi.document import document
from qwed.api.openapi.examples import EXAMPLES, Example
from qwed.api.routes import ROUTES
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.document_examples import ExampleChecker
from tests.support.schemathesis_cases import Cases
from tests.support.server import Server
from tests.support.temp_directories import make_directory_in

DOCUMENT = msgspec.json.decode(msgspec.json.encode(document()))


def _schema(*, coverage: bool) -> BaseSchema:
    # A stream of events has no end to wait for: tests/spec/test_events.py reads it.
    schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path="/events")
    schema.config.generation = GenerationConfig(with_security_parameters=False)
    schema.config.checks.not_a_server_error.expected_statuses = ["2xx", "3xx", "4xx", "503"]
    schema.config.phases.coverage.enabled = coverage
    schema.config.phases.coverage.unexpected_methods = set()
    return schema


FULL = Cases(_schema(coverage=True))
"""Every boundary of every field, then random data."""
BRIEF = Cases(_schema(coverage=False))
"""Random data only, for callers that are mostly refused at authentication."""

QUICK = settings(max_examples=6, derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck])
BRIEFLY = settings(QUICK, max_examples=3)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

BEYOND_A_SCHEMA = (
    "the policies are refused",  # the text of a policy
    "`action`",  # of an explanation, which takes what a decision takes
    "`action.",
    "unknown option",  # of an explanation
    "send If-Match with",  # the header is required
    "approves nothing",  # groups of a key whose role does not approve
    "must be a list of at most",  # names of groups
    "the text states the policy",
    "has more than six decimals",
    "is not the agent in QWED-Agent-Id",
    "must be readable, without control characters",  # an image of one colour
    "must be 1 to 256 printable characters",
    "missing required action context",  # a conversation_id of blanks
    "must be given together",  # one of them null
    "not deterministic JSON",
    "differ: give one",
    "is given twice",
    "must be a plain name of at most",  # of a tool: it depends on how it reads beside the built-in ones
    "stays there",
    "cannot be changed",
    "is for tools that",  # a dialect of a tool that another engine verifies
    "`from` and `to` must be RFC 3339",
    "`from` must be before `to`",
    "a report covers at most",
    "one level at a time",
    "below the agent's level",
    "above the agent's level",
    "trust is restored up to level",
    "is not the hash of `result`",
    "`result`:",  # not deterministic JSON
    "must be a readable text",  # an image without content
    "must be the `next_cursor` of an earlier page",
    "is in the body and in `params`",
    "`query` is required",  # or premises and a conclusion
    "`context` is required",  # or in `params`
    "`content_base64` is required",  # or in `params`
    "carries a secret",
    "engine reads this and takes no",
    "unknown field `operation`",  # of an engine that has none
    "in `params`: unknown field",  # the accepted form depends on the engine
    "item ",
    "the size of the log",
    "where the log ends",
    "has none at index",
    "the size it is compared with",
    "`from` is required",
    "give `index` or `activity_id`",
)
"""Refusals of valid data that JSON Schema cannot express."""


NOWHERE = "https://127.0.0.1:65535/notices"
"""Target of every webhook, so that no notice leaves this machine."""


class Visitor:
    """A caller of a dedicated server: the owner, an agent, or an unauthenticated client."""

    def __init__(self, server: Server) -> None:
        self.base_url = server.base_url
        self._owner = {"X-API-Key": server.owner_key}
        # One for all: each new client reads the system's certificates again.
        self._client = httpx.Client(base_url=server.base_url, headers=self._owner, timeout=30)
        # And one connection for all cases; otherwise the proxy settings are read before each request.
        self._session = requests.Session()
        self._session.trust_env = False
        self._agent: dict[str, Any] = {}

    def register(self) -> None:
        """Register a new agent, because the last one may be suspended or have another token."""
        self._client.post("/reactivate-all", json={"reason": "the next visitor"})
        body = {"name": unique_name("visitor"), "principal_id": "user_123", "type": "autonomous"}
        response = self._client.post("/agents/register", json=body)
        assert response.status_code == 201, response.text
        self._agent = response.json()

    def leave(self) -> None:
        """Close the connections."""
        self._session.close()
        self._client.close()

    def ask(self, case: Case, who: str) -> Response:
        """Send a case and return the answer; a positive case is sent for the current agent."""
        if not _is_negative(case):
            # The token authenticates the agent.
            own = {name: self._agent[name] for name in ("agent_id", "agent_token")[: 1 if who == "nobody" else 2]}
            names = {name: unquote(str(value)) for name, value in case.path_parameters.items()} | own
            names |= {"tool_name": names.get("tool", ""), "url": NOWHERE}
            case.path_parameters = _agreeing(case.path_parameters, own)
            case.body = _agreeing(case.body, names)
        token = {"Authorization": f"Bearer {self._agent['agent_token']}"}
        shown = {"owner": self._owner, "agent": token, "nobody": {}}
        return case.call(base_url=self.base_url, headers=shown[who], session=self._session)


def _is_negative(case: Case) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_negative


def _agreeing(sent: Any, names: dict[str, str]) -> Any:
    """Return the request with equal ids in path and body, and integers without a decimal point.

    A schema takes 1.0 for an integer; ruling 4.6 does not.
    """
    if isinstance(sent, float) and sent.is_integer():
        return int(sent)
    if isinstance(sent, list):
        return [_agreeing(each, names) for each in sent]
    if not isinstance(sent, dict):
        return sent
    named = {name: value for name, value in names.items() if isinstance(sent.get(name), str)}
    return {name: _agreeing(value, names) for name, value in sent.items()} | named


@pytest.fixture(scope="module")
def visited(memory: Path) -> Iterator[Visitor]:
    server = Server(make_directory_in(memory) / "data", QWED_WEBHOOK_ALLOW_PRIVATE="true")
    visitor = Visitor(server)
    yield visitor
    visitor.leave()
    assert server.stop() == 0


@pytest.fixture
def visitor(visited: Visitor) -> Visitor:
    visited.register()
    return visited


def require_truth(case: Case, response: Response, who: str) -> None:
    """Assert that the response matches the document."""
    refused = response.status_code >= 400 or _says_no(response)
    checks = CHECKS if refused else [*CHECKS, negative_data_rejection]
    case.validate_response(response, checks=checks, additional_checks=[accepts_what_fits])
    if who == "nobody" and case.operation.definition.raw["security"]:
        assert response.status_code >= 400


def accepts_what_fits(_context: CheckContext, response: Response, case: Case) -> None:
    """Assert that data valid by the document is not refused as malformed."""
    if not _is_negative(case) and response.status_code == 400:
        message = response.json()["error"]["message"]
        assert any(words in message for words in BEYOND_A_SCHEMA), message


def _says_no(response: Response) -> bool:
    if "json" not in response.headers.get("content-type", [""])[0]:
        return False
    body = response.json()
    return isinstance(body, dict) and body.get("decision") == "DENIED"


each_operation = pytest.mark.parametrize("operation", FULL.labels)


@spec("B")
@each_operation
def test_the_owner_is_answered_as_the_document_says(operation: str, visitor: Visitor) -> None:
    FULL.ask(operation, QUICK, lambda case: require_truth(case, visitor.ask(case, "owner"), "owner"))


@spec("B")
@pytest.mark.parametrize("who", ["agent", "nobody"])
@each_operation
def test_an_agent_and_a_stranger_are_answered_as_the_document_says(operation: str, visitor: Visitor, who: str) -> None:
    BRIEF.ask(operation, BRIEFLY, lambda case: require_truth(case, visitor.ask(case, who), who))


Told = dict[tuple[str, str], list[str]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Return the faults of each example; sample again if the hour changed meanwhile."""
    started = datetime.now(UTC).hour
    found = _sampled(Path(tmp_path_factory.mktemp("sampled")) / "data")
    if any(found.values()) and datetime.now(UTC).hour != started:
        found = _sampled(Path(tmp_path_factory.mktemp("sampled")) / "data")
    return found


def _sampled(place: Path) -> Told:
    routes = {route.name: route for route in ROUTES}
    server = Server(place)
    found: Told = {}
    with httpx.Client(base_url=server.base_url, timeout=30) as client:
        sampler = ExampleChecker(client, server.owner_key)
        sampler.wait_until_ready()
        for name, operation in EXAMPLES.items():
            for example in operation.examples:
                response = sampler.send(routes[name], example)
                wrong = [] if response.status_code == example.status else [f"the status is {response.status_code}"]
                found[name, example.name] = wrong + sampler.wrong_claims(example, response)
    server.stop()
    return found


SENT = [(name, example) for name, operation in EXAMPLES.items() for example in operation.examples]


@spec("B")
@pytest.mark.parametrize(("name", "example"), SENT, ids=lambda each: each if isinstance(each, str) else each.name)
def test_an_example_is_what_the_server_answers(told: Told, name: str, example: Example) -> None:
    assert told[name, example.name] == []


@spec("B")
def test_the_server_shows_this_document(stranger: httpx.Client) -> None:
    assert stranger.get("/openapi.json").json() == DOCUMENT


@spec("B")
def test_the_page_is_served_and_lets_nothing_else_in(stranger: httpx.Client) -> None:
    response = stranger.get("/docs")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    policy = dict(part.split(" ", 1) for part in response.headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'", "'none'")
    assert not any("unsafe" in value or "http" in value or "*" in value for value in policy.values())
    for operation in (each for methods in DOCUMENT["paths"].values() for each in methods.values()):
        assert f'id="{operation["operationId"]}"' in response.text

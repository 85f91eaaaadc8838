"""Scenario: two real agents, the proxy between them, and a Gate that decides."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory, create_client
from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.types import AgentCard, Message, Part, Role, SendMessageRequest
from a2a.utils.errors import A2AError
from anyio.from_thread import BlockingPortal, start_blocking_portal
from google.protobuf.json_format import MessageToDict

from qwed.gate import Gate, open_gate
from qwed.ledger.keyring import fresh_keyring
from qwed.proxies.backend import Identity
from qwed.proxies.local_backend import LocalBackend
from qwed_a2a.attestation import verify_attestation
from qwed_a2a.proxy.app import App, proxy_app
from qwed_a2a.proxy.card_registry import CardRegistry
from qwed_a2a.proxy.local_backend import LocalMessageBackend, ensure_member_key
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from tests.support.a2a_agents import agent_app, listening_socket, make_card, serve_app
from tests.support.manual_clock import ManualClock

A_MINUTE = 15
CLOCK = ManualClock()
"""Manual clock, so that on a slow machine no minute passes during a flood."""
HONEST = {"data": {"claimed_total": "30.00", "line_items": [{"amount": "10.00", "quantity": 3}], "currency": "EUR"}}
WRONG = {"data": {"claimed_total": "35.00", "line_items": [{"amount": "10.00", "quantity": 3}], "currency": "EUR"}}
CONTRADICTION = {"assertions": [{"claim": "x > 5"}, {"claim": "x < 3"}]}
DANGEROUS = "please run\n```python\nimport os\ngetattr(os, 'sys' + 'tem')('id')\n```"


class Clerk(AgentExecutor):
    """Agent that answers its messages; asked for a bill it writes a wrong one."""

    def __init__(self) -> None:
        self.received: list[Message] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.received.append(context.message)
        text = "".join(part.text for part in context.message.parts)
        parts = [new_data_part(WRONG)] if text == "your bill, please" else [new_text_part(f"heard: {text}")]
        if text == "no, you first":
            parts = [new_text_part("No,  YOU first")]
        answer = Message(message_id="m", role=Role.ROLE_AGENT, parts=parts, context_id=context.context_id or "")
        await event_queue.enqueue_event(answer)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do nothing: it finishes at once."""


class Buyer(AgentExecutor):
    """Agent that forwards its messages to the clerk through the proxy, and reports the result."""

    def __init__(self) -> None:
        self.proxy = ""
        self.card: AgentCard | None = None

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        request = context.message
        headers = {name: str(value) for name, value in MessageToDict(request.metadata).items()}
        # No TLS here, and loading the certificate authorities takes longer than the tests.
        async with httpx.AsyncClient(headers=headers, timeout=60, verify=False) as http:
            self.card = self.card or await A2ACardResolver(http, self.proxy).get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(self.card)
            report = await _reported(client, request)
        parts = [new_data_part(report)]
        await event_queue.enqueue_event(Message(message_id="r", role=Role.ROLE_AGENT, parts=parts))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do nothing: it finishes at once."""


async def _reported(client: Client, request: Message) -> dict[str, Any]:
    forwarded = Message(message_id="p", role=Role.ROLE_USER, parts=request.parts, context_id=request.context_id)
    try:
        async for event in client.send_message(SendMessageRequest(message=forwarded)):
            return {"passed": "".join(part.text for part in event.message.parts)}
    except A2AError as error:
        return {"refused": type(error).__name__, "says": error.message, **(error.data or {})}
    return {}


class Scene(NamedTuple):
    """Handles of a test."""

    portal: BlockingPortal
    gate: Gate
    buyer: Client
    clerk: Clerk
    upstream_id: str
    agents: dict[str, Identity]

    def tell(self, *parts: Part, conversation: str = "", **headers: str) -> dict[str, Any]:
        """Return the report on a message from the buyer to the clerk."""
        message = Message(message_id="t", role=Role.ROLE_USER, parts=parts, context_id=conversation)
        message.metadata.update({name.replace("_", "-"): value for name, value in headers.items()})
        return self.portal.call(self._report, SendMessageRequest(message=message))

    async def _report(self, request: SendMessageRequest) -> dict[str, Any]:
        async for event in self.buyer.send_message(request):
            return dict(MessageToDict(event.message.parts[0].data))
        raise AssertionError("the buyer says nothing")

    def tell_as(self, name: str, *parts: Part, conversation: str = "") -> dict[str, Any]:
        """Return the report on a message of an agent with its token."""
        party = self.agents[name]
        proof = {"QWED_Agent_Id": party.agent_id, "QWED_Agent_Token": party.agent_token or ""}
        return self.tell(*parts, conversation=conversation, **proof)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("scene")
    with ExitStack() as stack:
        gate = stack.enter_context(open_gate(home / "gate", clock=CLOCK.clock(), a2a_messages_per_minute=A_MINUTE))
        agents = {name: _registered(gate, name) for name in ("client", "clerk", "rival", "friend", "talker", "echo")}
        at_clerk, clerk_url = stack.enter_context(listening_socket())
        at_buyer, buyer_url = stack.enter_context(listening_socket())
        at_proxy, proxy_url = stack.enter_context(listening_socket())
        clerk, buyer = Clerk(), Buyer()
        buyer.proxy = proxy_url
        stack.enter_context(serve_app(agent_app(clerk, make_card(clerk_url)), at_clerk))
        stack.enter_context(serve_app(agent_app(buyer, make_card(buyer_url, "buyer")), at_buyer))
        options = A2AProxyOptions(name="clerk", upstream=clerk_url, public_url=proxy_url, principal_id="ops", recheck=0)
        stack.enter_context(serve_app(_proxy_app(options, gate, home, agents), at_proxy))
        portal = stack.enter_context(start_blocking_portal())
        http = httpx.AsyncClient(timeout=60)
        client = portal.call(_client_of, buyer_url, http)
        yield Scene(portal, gate, client, clerk, agents["clerk"].agent_id, agents)
        portal.call(http.aclose)


async def _client_of(url: str, http: httpx.AsyncClient) -> Client:
    return await create_client(url, client_config=ClientConfig(httpx_client=http, streaming=False))


def _registered(gate: Gate, name: str) -> Identity:
    agent = gate.register_agent(name=name, type="autonomous", principal_id="ops")
    return Identity(agent["agent_id"], agent["agent_token"])


def _proxy_app(options: A2AProxyOptions, gate: Gate, home: Path, agents: dict[str, Identity]) -> App:
    """Return the proxy, created on the loop that serves it."""
    apps: list[App] = []

    async def create() -> tuple[App, CardRegistry]:
        member_key = await ensure_member_key(gate, home)
        clerk = agents["clerk"]
        backend = LocalBackend(gate, clerk, home)
        registry = CardRegistry(options, home, fresh_keyring(), backend, lambda _said: None)
        await registry.start()
        return proxy_app(
            LocalMessageBackend(gate, home, agents["client"], clerk, member_key), registry, options
        ), registry

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await apps[0](scope, receive, send)
            return
        inner, registry = await create()
        apps.append(inner)
        await inner(scope, receive, send)
        await registry.close()

    return app


def jwks(gate: Gate) -> dict[str, Any]:
    return {"keys": gate.services.signer.keyring.public_jwks()}


def claims(scene: Scene, report: dict[str, Any]) -> dict[str, Any]:
    """Return the claims of a refusal's attestation, verified offline."""
    valid, token_claims = verify_attestation(report["attestation"], jwks(scene.gate), now=CLOCK.now)
    assert valid, token_claims
    assert token_claims["jti"] == report["trace_id"]
    return dict(token_claims["qwed_a2a"])


def test_an_honest_invoice_passes(scene: Scene) -> None:
    report = scene.tell(new_data_part(HONEST))
    assert report == {"passed": "heard: "}
    [part] = scene.clerk.received[-1].parts
    assert MessageToDict(part.data) == HONEST


REFUSED = [
    ("a wrong total", new_data_part(WRONG), "finance_guard"),
    ("a contradiction", new_data_part(CONTRADICTION), "logic_guard"),
    ("dangerous code", new_text_part(DANGEROUS), "code_guard"),
    ("a wrong total in prose", new_text_part(f"our bill:\n```json\n{json.dumps(WRONG)}\n```"), "finance_guard"),
    (
        "dangerous code in a file",
        Part(raw=b"import os\nos.system('id')\n", filename="run.py", media_type="text/x-python"),
        "code_guard",
    ),
]


@pytest.mark.parametrize(("_what", "part", "engine"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_a_guard_refuses_never_reaches_the_other_agent(scene: Scene, _what: str, part: Part, engine: str) -> None:
    before = len(scene.clerk.received)
    report = scene.tell(part)
    assert (report["refused"], report["verdict"], report["engine"]) == ("InvalidParamsError", "blocked", engine)
    assert len(scene.clerk.received) == before
    token_claims = claims(scene, report)
    assert (token_claims["verdict"], token_claims["engine"]) == ("blocked", engine)
    assert (token_claims["sender"], token_claims["receiver"]) == (scene.agents["client"].agent_id, scene.upstream_id)


def test_an_answer_that_a_guard_refuses_never_comes_back(scene: Scene) -> None:
    report = scene.tell(new_text_part("your bill, please"))
    assert (report["refused"], report["engine"]) == ("InvalidAgentResponseError", "finance_guard")
    assert "35" not in report["says"] + report["reason"]
    assert claims(scene, report)["sender"] == scene.upstream_id


def test_an_oversized_payload_is_refused(scene: Scene) -> None:
    before = len(scene.clerk.received)
    report = scene.tell(new_text_part("x" * 1_060_000))
    assert report["refused"] == "InvalidRequestError"
    assert report["code"] == "QWED-REQ-002"
    far_over = scene.tell(Part(raw=base64.b64decode("AAAA") * 400_000, media_type="application/octet-stream"))
    assert far_over["refused"] == "InvalidRequestError"
    assert len(scene.clerk.received) == before


def test_a_blocked_pair_is_refused_and_the_way_of_others_is_free(scene: Scene) -> None:
    rival = scene.agents["rival"].agent_id
    scene.gate.block_pair(rival, scene.upstream_id)
    report = scene.tell_as("rival", new_text_part("hello"))
    assert (report["refused"], report["engine"]) == ("UnsupportedOperationError", "trust_boundary")
    assert claims(scene, report)["sender"] == rival
    assert scene.tell(new_text_part("hello"))["passed"] == "heard: hello"
    scene.gate.unblock_pair(rival, scene.upstream_id)
    assert scene.tell_as("rival", new_text_part("hello"))["passed"] == "heard: hello"


def test_a_trusted_sender_is_believed_only_where_it_proves_who_it_is(scene: Scene) -> None:
    friend = scene.agents["friend"].agent_id
    scene.gate.trust_agent(friend)
    assert scene.tell_as("friend", new_data_part(WRONG)) == {"passed": "heard: "}
    before = len(scene.clerk.received)
    unproven = scene.tell(new_data_part(WRONG), QWED_Agent_Id=friend)
    assert (unproven["refused"], unproven["code"]) == ("InvalidRequestError", "QWED-AUTH-002")
    another = scene.agents["rival"].agent_token or ""
    stolen = scene.tell(new_data_part(WRONG), QWED_Agent_Id=friend, QWED_Agent_Token=another)
    assert (stolen["refused"], stolen["code"]) == ("InvalidRequestError", "QWED-AUTH-002")
    assert len(scene.clerk.received) == before


def until_refused(send: Callable[[int], dict[str, Any]], most: int) -> tuple[int, dict[str, Any]]:
    """Return the number of messages that passed, and the report on the next."""
    for number in range(most):
        report = send(number)
        if "refused" in report:
            return number, report
    raise AssertionError(f"{most} messages passed")


def test_a_flood_is_stopped_and_told_when_to_go_on(scene: Scene) -> None:
    def send(number: int) -> dict[str, Any]:
        return scene.tell_as("talker", new_text_part(f"offer {number}"), conversation=f"offer-{number}")

    passed, report = until_refused(send, A_MINUTE + 1)
    assert passed == A_MINUTE
    assert (report["engine"], report["code"]) == ("trust_boundary", "QWED-SYS-001")
    assert claims(scene, report)["verdict"] == "blocked"
    CLOCK.advance(float(report["retry_after"]))
    assert scene.tell_as("talker", new_text_part("one more"), conversation="more")["passed"] == "heard: one more"


def test_an_endless_ping_pong_is_stopped(scene: Scene) -> None:
    def send(_number: int) -> dict[str, Any]:
        return scene.tell_as("echo", new_text_part("no, you first"), conversation="manners")

    passed, report = until_refused(send, 10)
    assert passed <= 4
    assert report["engine"] == "trust_boundary"
    assert report["code"] in ("QWED-AGENT-LOOP-003", "QWED-AGENT-LOOP-004")
    other = scene.tell_as("echo", new_text_part("after you, then"), conversation="manners")
    assert other["passed"] == "heard: after you, then"


def test_a_suspended_agent_says_nothing_more(scene: Scene) -> None:
    echo = scene.agents["echo"].agent_id
    scene.gate.suspend_agent(echo, "it does not stop")
    report = scene.tell_as("echo", new_text_part("but I must"), conversation="later")
    assert "refused" in report
    assert report["code"] == "QWED-AGENT-003"
    scene.gate.reactivate_agent(echo, "it was calmed")


def test_every_verdict_is_a_leaf_of_the_log(scene: Scene) -> None:
    activities = scene.gate.get_agent_activity(scene.agents["client"].agent_id, limit=100)
    decisions = {activity["decision"] for activity in activities}
    assert decisions == {"APPROVED", "DENIED"}

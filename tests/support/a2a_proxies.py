"""Backend with simple rules that records its messages, and a proxy with it in front of a real agent."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.types import AgentCard, SendMessageRequest, StreamResponse
from anyio.from_thread import BlockingPortal, start_blocking_portal

from qwed.proxies.backend import Identity
from qwed_a2a.message import AgentMessage, PayloadType
from qwed_a2a.proxy.app import proxy_app
from qwed_a2a.proxy.proxy_options import A2AProxyOptions
from qwed_a2a.proxy.upstream import UpstreamLimits
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict
from qwed_sdk.errors import QWEDConnectionError, QWEDError
from tests.support.a2a_agents import ScriptedAgent, agent_app, listening_socket, make_card, serve_app

TOKEN = "qwed_agent_the_right_one"
_RULES = (
    ("poison", EngineName.CODE_GUARD, "`poison` is dangerous", {}),
    ("flood", EngineName.TRUST_BOUNDARY, "too many messages", {"code": "QWED-SYS-001", "retry_after": 6.2}),
    ("endless", EngineName.TRUST_BOUNDARY, "conversation step limit exceeded", {"code": "QWED-AGENT-LOOP-001"}),
)


class RecordedMessage(NamedTuple):
    message: AgentMessage
    sender: Identity


class RuleBackend:
    """Backend with a few rules; `mallory` is known and proves nothing."""

    location = "rules"
    client = Identity("visitor", TOKEN)
    upstream = Identity("clerk", TOKEN)

    def __init__(self) -> None:
        self.messages: list[RecordedMessage] = []

    async def intercept(self, message: AgentMessage, sender: Identity) -> VerificationVerdict:
        self.messages.append(RecordedMessage(message, sender))
        text = str(message.payload)
        if sender.agent_id == "mallory" and sender.agent_token != TOKEN:
            raise QWEDError("this agent is not proven", code="QWED-AUTH-002", status=401)
        if "unreachable" in text:
            raise QWEDConnectionError("the server was not reached", sent=False)
        if "hang" in text:
            await asyncio.Event().wait()
        for word, engine, reason, details in _RULES:
            if word in text and message.payload_type is not PayloadType.DATA_QUERY:
                return _verdict(VerdictStatus.BLOCKED, engine, reason, len(self.messages), details)
        return _verdict(VerdictStatus.FORWARDED, EngineName.PASSTHROUGH, "passed", len(self.messages), {})

    async def close(self) -> None:
        """Do nothing."""

    def texts(self, sender: str) -> list[str]:
        """Return the texts of this sender."""
        return [
            item.message.payload.get("text", "") for item in self.messages if item.message.sender_agent_id == sender
        ]


def _verdict(
    status: VerdictStatus, engine: EngineName, reason: str, number: int, details: Mapping[str, Any]
) -> VerificationVerdict:
    return VerificationVerdict(
        status=status,
        reason=reason,
        audit_trace_id=f"a2a_{number:012x}",
        attestation_jwt="a.b.c",
        engine_used=engine,
        verified_at=datetime.now(UTC),
        details=details,
    )


class FakeCardRegistry:
    """Unsigned card registry."""

    def __init__(self, upstream: AgentCard, public_url: str) -> None:
        self._upstream = upstream
        self._published = make_card(public_url)
        for interface in self._published.supported_interfaces:
            interface.url = public_url
        self.refusal_text: str | None = None

    async def start(self) -> None:
        """Do nothing."""

    async def card(self) -> AgentCard:
        return self._published

    async def extended(self, headers: Mapping[str, str]) -> AgentCard | str:
        return self._published if headers.get("authorization") == "Bearer insider" else "there is none for you"

    def upstream(self) -> AgentCard:
        return self._upstream

    def refusal(self) -> str | None:
        return self.refusal_text

    def jwks(self) -> dict[str, Any]:
        return {"keys": []}

    async def close(self) -> None:
        """Do nothing."""


class ProxyEnvironment:
    """Client, proxy and agent for synchronous tests."""

    def __init__(
        self,
        portal: BlockingPortal,
        public_url: str,
        backend: RuleBackend,
        cards: FakeCardRegistry,
        agent: ScriptedAgent,
    ) -> None:
        self.portal, self.url, self.backend, self.cards, self.agent = portal, public_url, backend, cards, agent
        self._clients: dict[Any, Client] = {}
        self._http_clients: list[httpx.AsyncClient] = []
        # No TLS here, and loading the certificate authorities takes longer than the tests.
        self.http = httpx.Client(timeout=60, verify=False)

    def clear(self) -> None:
        self.backend.messages.clear()
        self.agent.received.clear()
        self.agent.headers.clear()
        self.cards.refusal_text = None

    def add_http_client(self, http: httpx.AsyncClient) -> None:
        """Close this client at the end."""
        self._http_clients.append(http)

    def close(self) -> None:
        for client in self._http_clients:
            self.portal.call(client.aclose)
        self.http.close()

    def client(self, binding: str = "JSONRPC", *, streaming: bool = False, **headers: str) -> Client:
        key = binding, streaming, tuple(sorted(headers.items()))
        if key not in self._clients:
            self._clients[key] = self.portal.call(self._create_client, binding, streaming, headers)
        return self._clients[key]

    async def _create_client(self, binding: str, streaming: bool, headers: Mapping[str, str]) -> Client:
        header_values = {name.replace("_", "-"): value for name, value in headers.items()}
        http = httpx.AsyncClient(headers=header_values, timeout=60, verify=False)
        self.add_http_client(http)
        config = ClientConfig(supported_protocol_bindings=[binding], streaming=streaming, httpx_client=http)
        return await create_client(self.url, client_config=config)

    def send(self, client: Client, message: Any, **more: Any) -> list[StreamResponse]:
        """Return all events of the answer."""
        request = SendMessageRequest(message=message, **more)
        return self.portal.call(_collect, client.send_message(request))

    def post(self, path: str, **request: Any) -> httpx.Response:
        headers = {"A2A-Version": "1.0", **request.pop("headers", {})}
        return self.http.post(self.url + path, headers=headers, **request)

    def rpc(self, method: str, params: Any, **headers: str) -> Any:
        body = {"jsonrpc": "2.0", "id": "7", "method": method, "params": params}
        return self.post("/", json=body, headers=headers).json()


async def _collect(events: AsyncIterator[StreamResponse]) -> list[StreamResponse]:
    return [event async for event in events]


@contextmanager
def proxy_environment(
    *, bindings: tuple[str, ...] = ("JSONRPC", "HTTP+JSON"), compat: bool = True
) -> Iterator[ProxyEnvironment]:
    """Start agent and proxy, and yield the environment."""
    with ExitStack() as stack:
        behind, upstream_url = stack.enter_context(listening_socket())
        before, public_url = stack.enter_context(listening_socket())
        agent, card = ScriptedAgent(), make_card(upstream_url, bindings=bindings)
        backend, cards = RuleBackend(), FakeCardRegistry(card, public_url)
        options = A2AProxyOptions(
            name="clerk", upstream=upstream_url, public_url=public_url, principal_id="tests", compat=compat
        )
        stack.enter_context(serve_app(agent_app(agent, card), behind))
        limits = UpstreamLimits(seconds=10, verdict_seconds=0.3, answer_bytes=200_000)
        stack.enter_context(serve_app(proxy_app(backend, cards, options, limits=limits), before))
        portal = stack.enter_context(start_blocking_portal())
        environment = ProxyEnvironment(portal, public_url, backend, cards, agent)
        yield environment
        environment.close()


def texts_of(event: Any) -> str:
    """Return every text in an event."""
    return "|".join(re.findall(r'text: "([^"]*)"', str(event)))

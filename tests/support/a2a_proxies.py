"""A kernel that refuses by rule and remembers what it was asked, and a proxy with it before a real agent."""

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

from qwed_a2a.message import AgentMessage, PayloadType
from qwed_a2a.proxy.app import proxy_app
from qwed_a2a.proxy.kernel import Party
from qwed_a2a.proxy.options import Options
from qwed_a2a.proxy.upstream import Bounds
from qwed_a2a.verdict import EngineName, VerdictStatus, VerificationVerdict
from qwed_sdk.errors import QWEDConnectionError, QWEDError
from tests.support.a2a_agents import Scripted, agent_app, card_of, listening, served

TOKEN = "qwed_agent_the_right_one"
_RULES = (
    ("poison", EngineName.CODE_GUARD, "`poison` is dangerous", {}),
    ("flood", EngineName.TRUST_BOUNDARY, "too many messages", {"code": "QWED-SYS-001", "retry_after": 6.2}),
    ("endless", EngineName.TRUST_BOUNDARY, "conversation step limit exceeded", {"code": "QWED-AGENT-LOOP-001"}),
)


class Asked(NamedTuple):
    message: AgentMessage
    sender: Party


class Rules:
    """A kernel of a few rules; `mallory` is known and proves nothing, `words` refuses what they match."""

    place = "rules"
    client = Party("visitor", TOKEN)
    upstream = Party("clerk", TOKEN)

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    async def intercept(self, message: AgentMessage, sender: Party) -> VerificationVerdict:
        self.asked.append(Asked(message, sender))
        text = str(message.payload)
        if sender.agent_id == "mallory" and sender.token != TOKEN:
            raise QWEDError("this agent is not proven", code="QWED-AUTH-002", status=401)
        if "unreachable" in text:
            raise QWEDConnectionError("the server was not reached", sent=False)
        if "hang" in text:
            await asyncio.Event().wait()
        for word, engine, reason, details in _RULES:
            if word in text and message.payload_type is not PayloadType.DATA_QUERY:
                return _verdict(VerdictStatus.BLOCKED, engine, reason, len(self.asked), details)
        return _verdict(VerdictStatus.FORWARDED, EngineName.PASSTHROUGH, "passed", len(self.asked), {})

    async def close(self) -> None:
        """Nothing is held."""

    def texts(self, sender: str) -> list[str]:
        """What this sender has said, as text."""
        return [each.message.payload.get("text", "") for each in self.asked if each.message.sender_agent_id == sender]


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


class Book:
    """Shows a card of ours for that of an agent, unsigned."""

    def __init__(self, upstream: AgentCard, public_url: str) -> None:
        self._upstream = upstream
        self._shown = card_of(public_url)
        for each in self._shown.supported_interfaces:
            each.url = public_url
        self.held: str | None = None

    async def start(self) -> None:
        """It is known."""

    async def card(self) -> AgentCard:
        return self._shown

    async def extended(self, headers: Mapping[str, str]) -> AgentCard | str:
        return self._shown if headers.get("authorization") == "Bearer insider" else "there is none for you"

    def upstream(self) -> AgentCard:
        return self._upstream

    def refusal(self) -> str | None:
        return self.held

    def jwks(self) -> dict[str, Any]:
        return {"keys": []}

    async def close(self) -> None:
        """Nothing is held."""


class Scene:
    """A client, the proxy and the agent, to be used from a test that does not await."""

    def __init__(self, portal: BlockingPortal, public_url: str, kernel: Rules, book: Book, agent: Scripted) -> None:
        self.portal, self.url, self.kernel, self.book, self.agent = portal, public_url, kernel, book, agent
        self._clients: dict[Any, Client] = {}
        self._http: list[httpx.AsyncClient] = []
        # Nothing is encrypted here, and reading every authority there is takes longer than the rest.
        self.plain = httpx.Client(timeout=60, verify=False)

    def clear(self) -> None:
        self.kernel.asked.clear()
        self.agent.heard.clear()
        self.agent.headers.clear()
        self.book.held = None

    def keep(self, http: httpx.AsyncClient) -> None:
        """Closed with the rest."""
        self._http.append(http)

    def close(self) -> None:
        for each in self._http:
            self.portal.call(each.aclose)
        self.plain.close()

    def client(self, binding: str = "JSONRPC", *, streaming: bool = False, **headers: str) -> Client:
        key = binding, streaming, tuple(sorted(headers.items()))
        if key not in self._clients:
            self._clients[key] = self.portal.call(self._made, binding, streaming, headers)
        return self._clients[key]

    async def _made(self, binding: str, streaming: bool, headers: Mapping[str, str]) -> Client:
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        http = httpx.AsyncClient(headers=spelt, timeout=60, verify=False)
        self.keep(http)
        config = ClientConfig(supported_protocol_bindings=[binding], streaming=streaming, httpx_client=http)
        return await create_client(self.url, client_config=config)

    def send(self, client: Client, message: Any, **more: Any) -> list[StreamResponse]:
        """Everything that comes back."""
        request = SendMessageRequest(message=message, **more)
        return self.portal.call(_collected, client.send_message(request))

    def post(self, path: str, **given: Any) -> httpx.Response:
        headers = {"A2A-Version": "1.0", **given.pop("headers", {})}
        return self.plain.post(self.url + path, headers=headers, **given)

    def rpc(self, method: str, params: Any, **headers: str) -> Any:
        body = {"jsonrpc": "2.0", "id": "7", "method": method, "params": params}
        return self.post("/", json=body, headers=headers).json()


async def _collected(events: AsyncIterator[StreamResponse]) -> list[StreamResponse]:
    return [event async for event in events]


@contextmanager
def scene(*, bindings: tuple[str, ...] = ("JSONRPC", "HTTP+JSON"), compat: bool = True) -> Iterator[Scene]:
    """Everything, started."""
    with ExitStack() as stack:
        behind, upstream_url = stack.enter_context(listening())
        before, public_url = stack.enter_context(listening())
        agent, card = Scripted(), card_of(upstream_url, bindings=bindings)
        kernel, book = Rules(), Book(card, public_url)
        options = Options(
            name="clerk", upstream=upstream_url, public_url=public_url, principal_id="tests", compat=compat
        )
        stack.enter_context(served(agent_app(agent, card), behind))
        bounds = Bounds(seconds=10, verdict_seconds=0.3, answer_bytes=200_000)
        stack.enter_context(served(proxy_app(kernel, book, options, bounds=bounds), before))
        portal = stack.enter_context(start_blocking_portal())
        found = Scene(portal, public_url, kernel, book, agent)
        yield found
        found.close()


def words_of(event: Any) -> str:
    """Every text in it."""
    return "|".join(re.findall(r'text: "([^"]*)"', str(event)))

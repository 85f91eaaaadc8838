"""Client that fetches the agent's card from the configured address, with limits on size and time."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from urllib.parse import quote

import httpx
from a2a.types import AgentCard

from qwed_a2a.proxy.agent_card import CURRENT_VERSION, JSONRPC, MAX_CARD_BYTES, REST, InvalidCardError, parse_card
from qwed_a2a.proxy.proxy_options import CARD_PATH, OLD_CARD_PATH

TIMEOUT_SECONDS = 10.0
"""Seconds for a card, including all paths that are tried."""
_OK, _NOT_THERE = 200, (404, 405)


class CardUnreachableError(Exception):
    """No answer; the message says why."""


async def fetch_card(upstream: str, headers: Mapping[str, str]) -> AgentCard:
    """Return the card from the path of 1.x or the older one; raise InvalidCardError or CardUnreachableError."""
    async with _open_client(headers) as client:
        for path in (CARD_PATH, OLD_CARD_PATH):
            data = await _read(client, "GET", upstream.rstrip("/") + path)
            if data is not None:
                return parse_card(data)
    raise InvalidCardError(f"there is none at {CARD_PATH}")


async def fetch_extended_card(card: AgentCard, headers: Mapping[str, str]) -> AgentCard:
    """Return the extended card of the agent; the headers authenticate the request."""
    if not card.capabilities.extended_agent_card:
        raise InvalidCardError("the agent has none")
    interfaces = {interface.protocol_binding: interface for interface in reversed(card.supported_interfaces)}
    async with _open_client({**headers, "a2a-version": CURRENT_VERSION}) as client:
        if JSONRPC in interfaces:
            params = {"tenant": interfaces[JSONRPC].tenant} if interfaces[JSONRPC].tenant else {}
            request = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": params}
            data = _rpc_result(await _read(client, "POST", interfaces[JSONRPC].url, request))
        else:
            prefix = f"/{quote(interfaces[REST].tenant, safe='')}" if interfaces[REST].tenant else ""
            data = await _read(client, "GET", f"{interfaces[REST].url.rstrip('/')}{prefix}/extendedAgentCard")
    if data is None:
        raise InvalidCardError("the agent does not show it")
    return parse_card(data)


def _rpc_result(data: bytes | None) -> bytes | None:
    try:
        answer = json.loads(data or b"null")
    except (ValueError, RecursionError):
        return None
    result = answer.get("result") if isinstance(answer, dict) else None
    return json.dumps(result).encode() if isinstance(result, dict) else None


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context, created once: it takes longer than the rest and blocks the event loop."""
    return httpx.create_ssl_context()


@asynccontextmanager
async def _open_client(headers: Mapping[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    # A compressed body can be a thousand times as large once it is read.
    all_headers = {**headers, "accept": "application/json", "accept-encoding": "identity"}
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            httpx.AsyncClient(
                headers=all_headers, timeout=TIMEOUT_SECONDS, follow_redirects=False, verify=_tls_context()
            ) as client,
        ):
            yield client
    except TimeoutError:
        raise CardUnreachableError(f"no answer within {TIMEOUT_SECONDS:g} seconds") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CardUnreachableError(str(error) or type(error).__name__) from None


async def _read(client: httpx.AsyncClient, method: str, address: str, body: object = None) -> bytes | None:
    """Return the body at this address, or None if there is none."""
    async with client.stream(method, address, json=body) as response:
        if response.status_code in _NOT_THERE:
            return None
        if response.status_code != _OK:
            raise InvalidCardError(f"{address} answers {response.status_code}")
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise InvalidCardError("it is compressed although `Accept-Encoding: identity` was sent")
        data = b""
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > MAX_CARD_BYTES:
                raise InvalidCardError(f"it is longer than {MAX_CARD_BYTES:,} bytes")
        return data

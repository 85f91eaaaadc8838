"""Client that fetches the agent's card from the configured address, with limits on size and time."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote

from a2a.types import AgentCard

from qwed.http_client.pool import HttpError, ResponseLimitError, open_response
from qwed_a2a.proxy.agent_card import CURRENT_VERSION, JSONRPC, MAX_CARD_BYTES, REST, InvalidCardError, parse_card
from qwed_a2a.proxy.proxy_options import CARD_PATH, OLD_CARD_PATH

TIMEOUT_SECONDS = 10.0
"""Seconds for a card, including all paths that are tried."""
_OK, _NOT_THERE = 200, (404, 405)


class CardUnreachableError(Exception):
    """No answer; the message says why."""


async def fetch_card(upstream: str, headers: Mapping[str, str]) -> AgentCard:
    """Return the card from the path of 1.x or the older one; raise InvalidCardError or CardUnreachableError."""
    async with _bounded_time():
        for path in (CARD_PATH, OLD_CARD_PATH):
            data = await _read("GET", upstream.rstrip("/") + path, headers)
            if data is not None:
                return parse_card(data)
    raise InvalidCardError(f"there is none at {CARD_PATH}")


async def fetch_extended_card(card: AgentCard, headers: Mapping[str, str]) -> AgentCard:
    """Return the extended card of the agent; the headers authenticate the request."""
    if not card.capabilities.extended_agent_card:
        raise InvalidCardError("the agent has none")
    interfaces = {interface.protocol_binding: interface for interface in reversed(card.supported_interfaces)}
    all_headers = {**headers, "a2a-version": CURRENT_VERSION}
    async with _bounded_time():
        if JSONRPC in interfaces:
            params = {"tenant": interfaces[JSONRPC].tenant} if interfaces[JSONRPC].tenant else {}
            request = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": params}
            data = _rpc_result(await _read("POST", interfaces[JSONRPC].url, all_headers, json.dumps(request).encode()))
        else:
            prefix = f"/{quote(interfaces[REST].tenant, safe='')}" if interfaces[REST].tenant else ""
            data = await _read("GET", f"{interfaces[REST].url.rstrip('/')}{prefix}/extendedAgentCard", all_headers)
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


@asynccontextmanager
async def _bounded_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            yield
    except TimeoutError:
        raise CardUnreachableError(f"no answer within {TIMEOUT_SECONDS:g} seconds") from None
    except (HttpError, ValueError) as error:
        if isinstance(error, InvalidCardError):
            raise
        raise CardUnreachableError(str(error)) from None


async def _read(method: str, address: str, headers: Mapping[str, str], body: bytes = b"") -> bytes | None:
    """Return the body at this address, or None if there is none."""
    lines = tuple((name.encode(), value.encode()) for name, value in {**headers, "accept": "application/json"}.items())
    async with open_response(method, address, lines, body, TIMEOUT_SECONDS) as response:
        status = response.head.status
        if status in _NOT_THERE:
            return None
        if status != _OK:
            raise InvalidCardError(f"{address} answers {status}")
        if response.head.is_compressed:
            raise InvalidCardError("it is compressed although `Accept-Encoding: identity` was sent")
        try:
            return await response.read(MAX_CARD_BYTES)
        except ResponseLimitError:
            raise InvalidCardError(f"it is longer than {MAX_CARD_BYTES:,} bytes") from None

"""The agent's card from where it stands: bounded in size and time, from the address we were told and no other."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from urllib.parse import quote

import httpx
from a2a.types import AgentCard

from qwed_a2a.proxy.card import JSONRPC, LARGEST, NEWEST, REST, NoCard, read_card
from qwed_a2a.proxy.options import CARD_PATH, OLD_CARD_PATH

PATIENCE = 10.0
"""Seconds for a card, wherever it stands."""
_OK, _NOT_THERE = 200, (404, 405)


class Unreached(Exception):
    """Nobody answered; the message says why."""


async def fetch_card(upstream: str, headers: Mapping[str, str]) -> AgentCard:
    """The card, from where 1.x has it or where it was before; NoCard or Unreached where it cannot be had."""
    async with _asking(headers) as client:
        for path in (CARD_PATH, OLD_CARD_PATH):
            data = await _read(client, "GET", upstream.rstrip("/") + path)
            if data is not None:
                return read_card(data)
    raise NoCard(f"there is none at {CARD_PATH}")


async def fetch_extended(card: AgentCard, headers: Mapping[str, str]) -> AgentCard:
    """The extended card of the agent whose card this is, likewise; the headers say who asks."""
    if not card.capabilities.extended_agent_card:
        raise NoCard("the agent has none")
    found = {each.protocol_binding: each for each in reversed(card.supported_interfaces)}
    async with _asking({**headers, "a2a-version": NEWEST}) as client:
        if JSONRPC in found:
            told = {"tenant": found[JSONRPC].tenant} if found[JSONRPC].tenant else {}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": told}
            data = _result(await _read(client, "POST", found[JSONRPC].url, asked))
        else:
            below = f"/{quote(found[REST].tenant, safe='')}" if found[REST].tenant else ""
            data = await _read(client, "GET", f"{found[REST].url.rstrip('/')}{below}/extendedAgentCard")
    if data is None:
        raise NoCard("the agent does not show it")
    return read_card(data)


def _result(data: bytes | None) -> bytes | None:
    try:
        answer = json.loads(data or b"null")
    except (ValueError, RecursionError):
        return None
    result = answer.get("result") if isinstance(answer, dict) else None
    return json.dumps(result).encode() if isinstance(result, dict) else None


@cache
def _authorities() -> ssl.SSLContext:
    """Read once: it takes longer than all the rest, and everybody would wait for it."""
    return httpx.create_ssl_context()


@asynccontextmanager
async def _asking(headers: Mapping[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    # What is packed can be a thousand times as large once it is read.
    sent = {**headers, "accept": "application/json", "accept-encoding": "identity"}
    try:
        async with (
            asyncio.timeout(PATIENCE),
            httpx.AsyncClient(headers=sent, timeout=PATIENCE, follow_redirects=False, verify=_authorities()) as client,
        ):
            yield client
    except TimeoutError:
        raise Unreached(f"no answer within {PATIENCE:g} seconds") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unreached(str(error) or type(error).__name__) from None


async def _read(client: httpx.AsyncClient, method: str, address: str, body: object = None) -> bytes | None:
    """What stands there; None where nothing does."""
    async with client.stream(method, address, json=body) as response:
        if response.status_code in _NOT_THERE:
            return None
        if response.status_code != _OK:
            raise NoCard(f"{address} answers {response.status_code}")
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise NoCard("it is packed, which was asked not to be")
        data = b""
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > LARGEST:
                raise NoCard(f"it is longer than {LARGEST:,} bytes")
        return data

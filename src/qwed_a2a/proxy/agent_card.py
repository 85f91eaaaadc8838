"""Agent card: parsing, digest, and the version published to clients with the addresses of the proxy."""

import hashlib
import json
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard, AgentInterface
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseError

from qwed.model.canonical import CanonicalJsonError, canonical
from qwed_a2a.proxy.proxy_options import RPC_PATH

MAX_CARD_BYTES = 128 << 10
"""Size limit of a card; even with every character escaped it fits into the pin file."""
JSONRPC, REST = "JSONRPC", "HTTP+JSON"
CURRENT_VERSION, COMPAT_VERSION = "1.0", "0.3"


class InvalidCardError(ValueError):
    """Card that cannot be used; the message says why."""


def parse_card(data: bytes) -> AgentCard:
    """Return the card of A2A 1.x or 0.3 in `data`; raise InvalidCardError if there is none with a canonical form."""
    try:
        value = json.loads(data)
        # Before protobuf parses it: it fails on lone surrogates.
        canonical(value)
        card = parse_agent_card(value)
        canonical_card(card)
    except (ParseError, ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
        raise InvalidCardError(f"it cannot be read ({type(error).__name__})") from None
    if not card.name or not card.supported_interfaces:
        raise InvalidCardError("it has no agent name or no interface")
    return card


def card_members(card: AgentCard) -> dict[str, Any]:
    """Return the non-empty members of a card without its signatures, which differ each time it is signed."""
    members = MessageToDict(card)
    members.pop("signatures", None)
    cleaned: dict[str, Any] = _without_empty(members) or {}
    return cleaned


def canonical_card(card: AgentCard) -> bytes:
    """Return the bytes that are signed (A2A 1.x, 8.4.1); raise CanonicalJsonError if the card has no canonical form."""
    return canonical(card_members(card))


def card_digest(card: AgentCard) -> str:
    """Return the SHA-256 of the canonical card."""
    return hashlib.sha256(canonical_card(card)).hexdigest()


def _without_empty(value: Any, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        raise CanonicalJsonError(f"nested deeper than {_MAX_DEPTH}")
    if isinstance(value, dict):
        members = {key: _without_empty(member, depth + 1) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not None} or None
    if isinstance(value, list):
        return [member for member in (_without_empty(item, depth + 1) for item in value) if member is not None] or None
    return None if value == "" else value


_MAX_DEPTH = 64


def proxy_card(card: AgentCard, public_url: str, *, compat: bool) -> AgentCard:
    """Return the unsigned card for clients: at the proxy's address, without features that bypass it."""
    published = AgentCard()
    published.CopyFrom(card)
    del published.supported_interfaces[:], published.signatures[:]
    rpc, rest = public_url + RPC_PATH, public_url
    for url, binding, version in (
        (rpc, JSONRPC, CURRENT_VERSION),
        (rest, REST, CURRENT_VERSION),
        *(((rpc, JSONRPC, COMPAT_VERSION),) * compat),
    ):
        published.supported_interfaces.append(
            AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
        )
    published.capabilities.push_notifications = False
    return published


def survives_v0_3_round_trip(published: AgentCard) -> bool:
    """Return True if clients of 1.x still read the same card when it also has the members of 0.3.

    Raises InvalidCardError if it has no such form. Some members of 1.x collide with those of 0.3, and the official
    package then reads neither.
    """
    from a2a.server.request_handlers.response_helpers import agent_card_to_dict

    try:
        written = json.loads(json.dumps(agent_card_to_dict(published)))
        return canonical_card(parse_agent_card(written)) == canonical_card(published)
    except (A2AError, ParseError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise InvalidCardError(f"it has no form for clients of 0.3 ({type(error).__name__})") from None


def restrict_interfaces(card: AgentCard, upstream: str) -> AgentCard:
    """Return the card with only the interfaces that the proxy may use, at the address of the operator."""
    restricted = AgentCard()
    restricted.CopyFrom(card)
    del restricted.supported_interfaces[:]
    for named in card.supported_interfaces:
        at = _address_below(upstream, named.url)
        if named.protocol_binding in (JSONRPC, REST) and _is_version_1(named.protocol_version) and at is not None:
            interface = AgentInterface()
            interface.CopyFrom(named)
            interface.url = at
            restricted.supported_interfaces.append(interface)
    if not restricted.supported_interfaces:
        raise InvalidCardError(f"it names no address below {upstream} that speaks {JSONRPC} or {REST} of A2A 1.x")
    return restricted


def _is_version_1(version: str) -> bool:
    return version.partition(".")[0] in ("", "1")


def _address_below(upstream: str, named: str) -> str | None:
    """Return the path of a card's URL on the operator's host, or None if it leads outside the operator's path."""
    base = urlsplit(upstream)
    try:
        path = urlsplit(named).path or "/"
    except ValueError:
        return None
    above = base.path.rstrip("/") + "/"
    climbs = any(unquote(step) in ("..", ".") for step in path.split("/"))
    if climbs or not (path + "/").startswith(above):
        return None
    return urlunsplit((base.scheme, base.netloc, path, "", ""))

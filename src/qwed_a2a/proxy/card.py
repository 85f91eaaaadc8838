"""An agent's card: read from its JSON, known by its digest, and shown to clients with our addresses in it."""

import hashlib
import json
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard, AgentInterface
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseError

from qwed.words.canonical import NotCanonical, canonical
from qwed_a2a.proxy.options import RPC_PATH

LARGEST = 128 << 10
"""Bytes of a card; written with every sign escaped, it still fits into the file of the pins."""
JSONRPC, REST = "JSONRPC", "HTTP+JSON"
NEWEST, OLD = "1.0", "0.3"


class NoCard(ValueError):
    """It is no card that can be used; the message says why."""


def read_card(data: bytes) -> AgentCard:
    """The card that stands there, of 1.x or of 0.3; NoCard where it is none, or has no form of its own."""
    try:
        said = json.loads(data)
        # Before anybody parses it: halves of characters are more than the parser of messages bears.
        canonical(said)
        card = parse_agent_card(said)
        canonical_card(card)
    except (ParseError, ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
        raise NoCard(f"it cannot be read ({type(error).__name__})") from None
    if not card.name or not card.supported_interfaces:
        raise NoCard("it names no agent, or no address of it")
    return card


def members_of(card: AgentCard) -> dict[str, Any]:
    """What a card says, without what is empty and without its signatures, which differ each time it is signed."""
    members = MessageToDict(card)
    members.pop("signatures", None)
    cleaned: dict[str, Any] = _without_empty(members) or {}
    return cleaned


def canonical_card(card: AgentCard) -> bytes:
    """A2A 1.x, 8.4.1: the bytes that are signed; NotCanonical where it has none."""
    return canonical(members_of(card))


def digest_of(card: AgentCard) -> str:
    """What a card is known by: two that say the same have the same."""
    return hashlib.sha256(canonical_card(card)).hexdigest()


def _without_empty(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise NotCanonical(f"nested deeper than {_DEEPEST}")
    if isinstance(value, dict):
        kept = {key: _without_empty(each, depth + 1) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each is not None} or None
    if isinstance(value, list):
        return [each for each in (_without_empty(item, depth + 1) for item in value) if each is not None] or None
    return None if value == "" else value


_DEEPEST = 64


def ours(card: AgentCard, public_url: str, *, compat: bool) -> AgentCard:
    """The card as clients are shown it, unsigned: at our address, and without what would pass us by."""
    shown = AgentCard()
    shown.CopyFrom(card)
    del shown.supported_interfaces[:], shown.signatures[:]
    rpc, rest = public_url + RPC_PATH, public_url
    for url, binding, version in ((rpc, JSONRPC, NEWEST), (rest, REST, NEWEST), *(((rpc, JSONRPC, OLD),) * compat)):
        shown.supported_interfaces.append(AgentInterface(url=url, protocol_binding=binding, protocol_version=version))
    shown.capabilities.push_notifications = False
    return shown


def reads_back(shown: AgentCard) -> bool:
    """Whether clients of 1.x still read the same card where 0.3 has its members in it; NoCard if it has no such form.

    Some members of 1.x stand where 0.3 has others, and the official package then reads neither.
    """
    from a2a.server.request_handlers.response_helpers import agent_card_to_dict

    try:
        written = json.loads(json.dumps(agent_card_to_dict(shown)))
        return canonical_card(parse_agent_card(written)) == canonical_card(shown)
    except (A2AError, ParseError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise NoCard(f"it has no form for clients of 0.3 ({type(error).__name__})") from None


def reachable(card: AgentCard, upstream: str) -> AgentCard:
    """The card with those interfaces alone that we may speak to, at the address that we were told."""
    found = AgentCard()
    found.CopyFrom(card)
    del found.supported_interfaces[:]
    for each in card.supported_interfaces:
        at = _below(upstream, each.url)
        if each.protocol_binding in (JSONRPC, REST) and _is_newest(each.protocol_version) and at is not None:
            interface = AgentInterface()
            interface.CopyFrom(each)
            interface.url = at
            found.supported_interfaces.append(interface)
    if not found.supported_interfaces:
        raise NoCard(f"it names no address below {upstream} that speaks {JSONRPC} or {REST} of A2A 1.x")
    return found


def _is_newest(version: str) -> bool:
    return version.partition(".")[0] in ("", "1")


def _below(upstream: str, named: str) -> str | None:
    """The path that a card names, on the host that the operator named; None where it leads out of what was named."""
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

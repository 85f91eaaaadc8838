"""Random agent cards are refused, or our signature of them verifies with the official helper."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import MessageToDict
from jwt.api_jwk import PyJWK

from qwed.ledger.keyring import fresh_keyring
from qwed_a2a.proxy.agent_card import InvalidCardError, card_digest, parse_card, proxy_card, restrict_interfaces
from qwed_a2a.proxy.card_pin import describe_changes, load_pin, make_pin, save_pin
from qwed_a2a.proxy.quarantined_card import QuarantinedCard, screen_card
from qwed_a2a.proxy.signatures import sign_card

GOOD = {
    "name": "a",
    "description": "d",
    "version": "1",
    "supportedInterfaces": [{"url": "http://h/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"]}],
    "capabilities": {},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}
MEMBERS = [
    *GOOD,
    *("provider", "documentationUrl", "securitySchemes", "securityRequirements", "security", "signatures", "iconUrl"),
    *("url", "preferredTransport", "additionalInterfaces", "protocolVersion", "supportsAuthenticatedExtendedCard"),
]
INNER = [
    *("url", "protocolBinding", "protocolVersion", "tenant", "id", "name", "description", "tags", "examples", "uri"),
    *("streaming", "pushNotifications", "extensions", "extendedAgentCard", "params", "required", "type", "in", "list"),
    *("schemes", "flows", "protected", "signature", "header", "organization", "transport", "security", "scheme"),
]
ATOMS = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    10**400,
    "",
    "x",
    "http://h/",
    "JSONRPC",
    "1.0",
    "\ud800",
    "\0",
    "é",
    [],
    {},
]


def anything(chance: random.Random, depth: int) -> Any:
    kind = chance.random()
    if depth <= 0 or kind < 0.45:
        return chance.choice([*ATOMS, float("nan"), float("inf")])
    if kind < 0.7:
        return [anything(chance, depth - 1) for _ in range(chance.randrange(3))]
    return {chance.choice(INNER): anything(chance, depth - 1) for _ in range(chance.randrange(5))}


def random_card(chance: random.Random) -> bytes:
    """Return a card with some members replaced by random values."""
    card = dict(GOOD)
    for _ in range(chance.randrange(4)):
        card[chance.choice(MEMBERS)] = anything(chance, 5)
    if chance.random() < 0.3:
        card["skills"] = [{chance.choice(INNER): anything(chance, 4) for _ in range(5)}]
    return json.dumps(card).encode()


@pytest.mark.parametrize("cases", [100, pytest.param(5_000, marks=pytest.mark.drill)])
def test_what_is_shown_for_a_card_is_refused_or_read_pinned_and_signed(cases: int, tmp_path: Path) -> None:
    key, chance, first, read = fresh_keyring().current, random.Random(cases), parse_card(json.dumps(GOOD).encode()), 0
    verify = create_signature_verifier(lambda _kid, _jku: PyJWK(key.jwk), ["ES256"])
    for _ in range(cases):
        try:
            card = parse_card(random_card(chance))
            restrict_interfaces(card, "http://127.0.0.1:9")
        except InvalidCardError:
            continue
        read += 1
        reasons = (*describe_changes(first, card), *(each.reason for each in screen_card(card)))
        held = QuarantinedCard("clerk", "http://127.0.0.1:9", card, card_digest(card), reasons)
        assert len(json.dumps(held.request)) < 8_192
        written = MessageToDict(sign_card(proxy_card(card, "http://proxy", compat=False), key, "http://proxy/keys"))
        verify(parse_agent_card(json.loads(json.dumps(written))))
        save_pin(tmp_path, make_pin("here", card))
        assert load_pin(tmp_path, "here") == make_pin("here", card)
    assert read > cases // 10

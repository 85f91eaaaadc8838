"""Whatever an agent shows for its card: it is refused, or what we sign of it verifies with the official helper."""

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
from qwed_a2a.proxy.card import NoCard, digest_of, ours, reachable, read_card
from qwed_a2a.proxy.held import HeldCard, findings
from qwed_a2a.proxy.pins import changes, keep, kept, pin_of
from qwed_a2a.proxy.signatures import signed

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


def shown(chance: random.Random) -> bytes:
    """A card with some of its members replaced by anything."""
    card = dict(GOOD)
    for _ in range(chance.randrange(4)):
        card[chance.choice(MEMBERS)] = anything(chance, 5)
    if chance.random() < 0.3:
        card["skills"] = [{chance.choice(INNER): anything(chance, 4) for _ in range(5)}]
    return json.dumps(card).encode()


@pytest.mark.parametrize("cases", [100, pytest.param(5_000, marks=pytest.mark.drill)])
def test_what_is_shown_for_a_card_is_refused_or_read_pinned_and_signed(cases: int, tmp_path: Path) -> None:
    key, chance, first, read = fresh_keyring().current, random.Random(cases), read_card(json.dumps(GOOD).encode()), 0
    verify = create_signature_verifier(lambda _kid, _jku: PyJWK(key.jwk), ["ES256"])
    for _ in range(cases):
        try:
            card = read_card(shown(chance))
            reachable(card, "http://127.0.0.1:9")
        except NoCard:
            continue
        read += 1
        reasons = (*changes(first, card), *(each.reason for each in findings(card)))
        held = HeldCard("clerk", "http://127.0.0.1:9", card, digest_of(card), reasons)
        assert len(json.dumps(held.request)) < 8_192
        written = MessageToDict(signed(ours(card, "http://proxy", compat=False), key, "http://proxy/keys"))
        verify(parse_agent_card(json.loads(json.dumps(written))))
        keep(tmp_path, pin_of("here", card))
        assert kept(tmp_path, "here") == pin_of("here", card)
    assert read > cases // 10

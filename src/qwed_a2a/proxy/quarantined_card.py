"""Quarantined agent card: its findings, and the request that an approver gets."""

import json
from typing import Any, NamedTuple

from a2a.types import AgentCard

from qwed.guards.prompt_injection import InjectionFinding, find_instructions
from qwed.guards.safe_display import plain_name, visible, visible_name, visible_texts
from qwed.guards.text_scan import strings_in
from qwed_a2a.proxy.agent_card import card_members

CARD, EXTENDED = "card", "extended card"
MAX_EXCERPT = 1_900
MAX_FINDINGS = 10
_FIRST_MEMBERS = ("name", "description", "skills")
_MAX_PATH_DEPTH = 4


class QuarantinedCard(NamedTuple):
    """Card that is not published until an approver releases exactly this one."""

    name: str
    """Name of the agent in the proxy."""
    upstream: str
    card: AgentCard
    digest: str
    reasons: tuple[str, ...]
    previous: str = ""
    """Digest of the pinned card, or empty."""
    found: tuple[str, ...] = ()
    """Suspicious words in the card: for the approver, never for a model."""
    what: str = CARD
    releasable: bool = True

    @property
    def request(self) -> dict[str, Any]:
        """Parameters of the action that an approver decides: plain, short, without hidden text or secrets."""
        return {
            "agent": self.name,
            "upstream": visible_name(self.upstream),
            "kind": self.what,
            "digest": self.digest,
            "previous_digest": self.previous,
            "reasons": visible_texts(self.reasons),
            "found": visible_texts(self.found),
            "card": _excerpt(self.card),
        }


def _excerpt(card: AgentCard) -> str:
    """Return the beginning of a card, with the members that a model reads first."""
    members = card_members(card)
    ordered = {key: members.pop(key) for key in _FIRST_MEMBERS if key in members}
    return visible(json.dumps({**ordered, **members}, ensure_ascii=False), MAX_EXCERPT)


def screen_card(card: AgentCard) -> tuple[InjectionFinding, ...]:
    """Return suspicious texts in a card, which clients may pass to their models."""
    strings = strings_in(card_members(card))
    unique: dict[str, InjectionFinding] = {}
    if not strings.complete:
        unique["long"] = InjectionFinding("it contains more texts than are screened")
    for finding in find_instructions(dict.fromkeys(strings.pairs), _describe_path, lambda _path: False):
        unique.setdefault(finding.reason, finding)
        if len(unique) == MAX_FINDINGS:
            break
    return tuple(unique.values())


def _describe_path(path: str) -> str:
    return f"its {'.'.join(map(plain_name, path.split('.')[:_MAX_PATH_DEPTH]))}"

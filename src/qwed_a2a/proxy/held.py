"""A card that is held: why, and what an approver is shown of it."""

import json
from typing import Any, NamedTuple

from a2a.types import AgentCard

from qwed.guards.instructions import Finding, instructions_in
from qwed.guards.text import strings_in
from qwed.guards.visible import plain_name, visible, visible_name, visible_texts
from qwed_a2a.proxy.card import members_of

CARD, EXTENDED = "card", "extended card"
MAX_EXCERPT = 1_900
MAX_FINDINGS = 10
_FIRST = ("name", "description", "skills")
_DEEPEST = 4


class HeldCard(NamedTuple):
    """A card that no client is shown until an approver releases exactly this one."""

    name: str
    """What the proxy calls the agent."""
    upstream: str
    card: AgentCard
    digest: str
    reasons: tuple[str, ...]
    previous: str = ""
    """The digest of the card that is pinned; empty where there is none."""
    found: tuple[str, ...] = ()
    """The words it is held for, as they stand in it: for the approver, never for a model."""
    what: str = CARD
    releasable: bool = True

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of the action an approver decides about: plain, short, with nothing hidden and no secret."""
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
    """The beginning of a card, what a model reads of it first."""
    members = members_of(card)
    ordered = {key: members.pop(key) for key in _FIRST if key in members}
    return visible(json.dumps({**ordered, **members}, ensure_ascii=False), MAX_EXCERPT)


def findings(card: AgentCard) -> tuple[Finding, ...]:
    """What no honest card holds: clients put its texts before their models."""
    strings = strings_in(members_of(card))
    found: dict[str, Finding] = {}
    if not strings.complete:
        found["long"] = Finding("it holds more texts than are read")
    for each in instructions_in(dict.fromkeys(strings.pairs), _place, lambda _path: False):
        found.setdefault(each.reason, each)
        if len(found) == MAX_FINDINGS:
            break
    return tuple(found.values())


def _place(path: str) -> str:
    return f"its {'.'.join(map(plain_name, path.split('.')[:_DEEPEST]))}"

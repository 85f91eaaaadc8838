"""Pinned agent card: the first one seen, or one released since by an approver, and its changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from a2a.types import AgentCard
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from qwed.proxies.state_directory import read_json_object, write_json_object
from qwed_a2a.proxy.agent_card import card_digest, card_members
from qwed_sdk.errors import UsageError, quote_text

FILE = "card.json"
MAX_EXTENDED = 32
"""Extended cards that are released at the same time; the oldest is dropped first."""
FIRST_SIGHT = "first sight"
_MAX_LISTED = 5


class CardPin(NamedTuple):
    """Pinned cards of one agent."""

    upstream: str
    card: AgentCard
    digest: str
    by: str
    """Approver who released it, or that it was the first one seen."""
    extended: tuple[str, ...] = ()
    """Digests of the extended cards that may be shown."""

    def with_extended(self, digest: str) -> "CardPin":
        """Return the pin with one more extended card."""
        return self._replace(extended=(*self.extended, digest)[-MAX_EXTENDED:])


def make_pin(upstream: str, card: AgentCard, by: str = FIRST_SIGHT, extended: tuple[str, ...] = ()) -> CardPin:
    """Return the pin of this card."""
    return CardPin(upstream, card, card_digest(card), by, extended)


def load_pin(directory: Path, upstream: str) -> CardPin | None:
    """Return the pin of the agent at this address, or None if it is new; raise UsageError if the file is unreadable."""
    file = directory / FILE
    members = read_json_object(file)
    if members is None:
        if file.exists() or file.is_symlink():
            raise UsageError(f"{file} cannot be read: restore it, or remove it to pin the card the agent has now")
        return None
    return _parse_pin(file, members) if members.get("upstream") == upstream else None


def _parse_pin(file: Path, members: dict[str, Any]) -> CardPin:
    try:
        card = ParseDict(members["card"], AgentCard())
        extended = tuple(str(digest) for digest in members["extended"])
        pin = make_pin(members["upstream"], card, str(members["by"]), extended)
    except (KeyError, TypeError, ValueError, ParseError):
        pin = None
    if pin is None or pin.digest != members.get("digest"):
        raise UsageError(f"{file} was changed or damaged: restore it, or remove it to pin the card the agent has now")
    return pin


def save_pin(directory: Path, pin: CardPin) -> None:
    """Write the pin; raise UsageError if it cannot be written."""
    members = {"upstream": pin.upstream, "digest": pin.digest, "by": pin.by, "extended": list(pin.extended)}
    # With its empty members: clients may require them, and must get the same card after a restart.
    write_json_object(directory / FILE, {**members, "card": MessageToDict(pin.card)})


def describe_changes(before: AgentCard, after: AgentCard) -> tuple[str, ...]:
    """Return the names of the changed members, without their values."""
    old, new = card_members(before), card_members(after)
    return tuple(
        f"its {name} changed"
        if name != "skills"
        else f"its skills changed ({'; '.join(_describe_skill_changes(old, new))})"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _describe_skill_changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    old, new = _skills_by_id(before), _skills_by_id(after)
    changed = {
        "new": new.keys() - old.keys(),
        "gone": old.keys() - new.keys(),
        "different": {skill_id for skill_id in new.keys() & old.keys() if new[skill_id] != old[skill_id]},
    }
    for word, ids in changed.items():
        if ids:
            more = f" and {len(ids) - _MAX_LISTED} more" if len(ids) > _MAX_LISTED else ""
            yield f"{word}: {', '.join(quote_text(skill_id) for skill_id in sorted(ids)[:_MAX_LISTED])}{more}"
    if not any(changed.values()):
        yield "their order"


def _skills_by_id(members: dict[str, Any]) -> dict[str, Any]:
    return {str(skill.get("id", "")): skill for skill in members.get("skills", ())}

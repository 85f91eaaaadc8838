"""The card that an agent had when it was first seen, or that a person released since: kept, and told from others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from a2a.types import AgentCard
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from qwed.proxies.place import read_object, write_object
from qwed_a2a.proxy.card import digest_of, members_of
from qwed_sdk.hook.call import Unusable, quoted

FILE = "card.json"
MOST_EXTENDED = 32
"""Extended cards that are released at a time; the oldest gives way."""
FIRST_SIGHT = "first sight"
_MOST_NAMED = 5


class Pin(NamedTuple):
    """What is pinned of one agent."""

    upstream: str
    card: AgentCard
    digest: str
    by: str
    """Who released it, or that it was the first that was seen."""
    extended: tuple[str, ...] = ()
    """Digests of the extended cards that may be shown."""

    def with_extended(self, digest: str) -> "Pin":
        """The same with one more extended card."""
        return self._replace(extended=(*self.extended, digest)[-MOST_EXTENDED:])


def pin_of(upstream: str, card: AgentCard, by: str = FIRST_SIGHT, extended: tuple[str, ...] = ()) -> Pin:
    """The pin of this card."""
    return Pin(upstream, card, digest_of(card), by, extended)


def kept(place: Path, upstream: str) -> Pin | None:
    """What was pinned of the agent at this address; None where it was never seen, Unusable where nobody can say."""
    file = place / FILE
    found = read_object(file)
    if found is None:
        if file.exists() or file.is_symlink():
            raise Unusable(f"{file} cannot be read: restore it, or remove it to pin the card the agent has now")
        return None
    return _read(file, found) if found.get("upstream") == upstream else None


def _read(file: Path, found: dict[str, Any]) -> Pin:
    try:
        card = ParseDict(found["card"], AgentCard())
        extended = tuple(str(each) for each in found["extended"])
        pin = pin_of(found["upstream"], card, str(found["by"]), extended)
    except (KeyError, TypeError, ValueError, ParseError):
        pin = None
    if pin is None or pin.digest != found.get("digest"):
        raise Unusable(f"{file} was changed or damaged: restore it, or remove it to pin the card the agent has now")
    return pin


def keep(place: Path, pin: Pin) -> None:
    """Keep it; Unusable where it cannot be."""
    said = {"upstream": pin.upstream, "digest": pin.digest, "by": pin.by, "extended": list(pin.extended)}
    # With what is empty in it: clients may require it, and are to be shown the same card after the next start.
    write_object(place / FILE, {**said, "card": MessageToDict(pin.card)})


def changes(before: AgentCard, after: AgentCard) -> tuple[str, ...]:
    """What differs, by the names that cards have for it and without a word of what it says."""
    old, new = members_of(before), members_of(after)
    return tuple(
        f"its {name} changed" if name != "skills" else f"its skills changed ({'; '.join(_skills(old, new))})"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _skills(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    old, new = _by_id(before), _by_id(after)
    told = {
        "new": new.keys() - old.keys(),
        "gone": old.keys() - new.keys(),
        "different": {each for each in new.keys() & old.keys() if new[each] != old[each]},
    }
    for word, ids in told.items():
        if ids:
            more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
            yield f"{word}: {', '.join(quoted(each) for each in sorted(ids)[:_MOST_NAMED])}{more}"
    if not any(told.values()):
        yield "their order"


def _by_id(members: dict[str, Any]) -> dict[str, Any]:
    return {str(skill.get("id", "")): skill for skill in members.get("skills", ())}

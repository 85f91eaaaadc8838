"""Whether a law and a forum can be chosen by these parties, and what somebody should look at."""

from collections.abc import Iterator
from typing import NamedTuple

from qwed.packs.wording import counted
from qwed_legal._jurisdiction.places import EUROPEAN_UNION, SEVERAL_LAWS, Place

RULE = (
    "parties choose the law of their contract freely, for the whole or for a part of it (Rome I Regulation 593/2008, "
    "article 3; Restatement (Second) of Conflict of Laws s. 187; Hague Principles 2015, article 2); consumers and "
    "employees keep the courts and the protection of their own country (Rome I, articles 6 and 8; Brussels I "
    "Regulation 1215/2012, articles 17 to 23)"
)
_ROME = EUROPEAN_UNION - {"DK"}
"""Denmark is not bound by Rome I."""
_WITHOUT_CONNECTION = {
    "New York": "N.Y. Gen. Oblig. Law s. 5-1401 allows that from 250,000 dollars",
    "Delaware": "Del. Code Ann. tit. 6, s. 2708 allows that from 100,000 dollars",
    "California": "Cal. Civ. Code s. 1646.5 allows that from 250,000 dollars",
}
_PARTS = {
    "US": "contracts are governed by the law of a state, name one such as New York",
    "GB": "England and Wales, Scotland and Northern Ireland have each their own law, name one",
    "CA": "the provinces have each their own law, name one such as Ontario",
    "AU": "the states have each their own law, name one such as New South Wales",
}


class Choice(NamedTuple):
    """What the contract says."""

    parties: tuple[Place, ...]
    law: Place | None
    laws: tuple[Place, ...]
    """Where it names more than one law."""
    forum: Place | None
    kind: str | None
    weaker: Place | None


def conflicts_of(choice: Choice) -> list[str]:
    """What makes the choice void or impossible to follow."""
    found = []
    if len({(law.country, law.part) for law in choice.laws}) > 1:
        named = " and ".join(law.name for law in choice.laws)
        found.append(f"two laws are named for the whole contract ({named}), and no part of it for each")
    if (
        choice.kind
        and choice.weaker
        and choice.forum
        and _protected(choice.weaker)
        and choice.forum.country != choice.weaker.country
    ):
        rule = "articles 17 to 19" if choice.kind == "consumer" else "articles 20 to 23"
        who = "consumer" if choice.kind == "consumer" else "employee"
        found.append(
            f"a {who} in {choice.weaker.name} cannot be bound beforehand to the courts of {choice.forum.name} "
            f"(Brussels I Regulation 1215/2012, {rule})"
        )
    return found


def _protected(place: Place) -> bool:
    return place.country in EUROPEAN_UNION


def warnings_of(choice: Choice) -> list[str]:
    """What is allowed, and unusual or incomplete."""
    return [*_unclear(choice), *_unconnected(choice), *_apart(choice), *_mandatory(choice)]


def _unclear(choice: Choice) -> Iterator[str]:
    if choice.law and choice.law.part is None and choice.law.country in SEVERAL_LAWS:
        yield f"there is no single law of {choice.law.name}: {_PARTS[choice.law.country]}"


def _unconnected(choice: Choice) -> Iterator[str]:
    law = choice.law
    if law is None or any(_touches(party, law) for party in choice.parties):
        return
    beside = _WITHOUT_CONNECTION.get(
        law.part or "", "courts may ask for a reason (Restatement (Second) of Conflict of Laws s. 187)"
    )
    yield f"the law of {law.name} has no connection to the parties: {beside}"


def _touches(party: Place, law: Place) -> bool:
    return party.country == law.country and (party.part is None or law.part is None or party.part == law.part)


def _apart(choice: Choice) -> Iterator[str]:
    law, forum = choice.law, choice.forum
    if law is None or forum is None or _touches(forum, law):
        return
    yield f"the courts of {forum.name} would have to apply the law of {law.name}: forum and law differ"


def _mandatory(choice: Choice) -> Iterator[str]:
    law = choice.law
    if law is None:
        return
    homes = {party.country for party in choice.parties}
    if len(homes) == 1 and law.country not in homes and homes <= _ROME and len(choice.parties) > 1:
        yield "all parties are in one country: its mandatory rules apply in any case (Rome I, article 3(3))"
    elif homes <= EUROPEAN_UNION and law.country not in EUROPEAN_UNION:
        yield "all parties are in the European Union: its mandatory rules apply in any case (Rome I, article 3(4))"
    if choice.kind and choice.weaker and choice.weaker.country in _ROME and law.country != choice.weaker.country:
        article = "6(2)" if choice.kind == "consumer" else "8(1)"
        yield f"the mandatory protection of {choice.weaker.name} stays in force (Rome I, article {article})"


def steps_of(choice: Choice, conflicts: list[str], warnings: list[str]) -> tuple[str, ...]:
    """How to come to the same by hand."""
    laws = " and ".join(law.name for law in choice.laws) or (choice.law.name if choice.law else "")
    return (
        f"the parties are in {', '.join(party.name for party in choice.parties)}",
        f"the law is that of {laws}" + (f", the forum {choice.forum.name}" if choice.forum else ", no forum is named"),
        *(f"conflict: {each}" for each in conflicts),
        *(f"warning: {each}" for each in warnings),
        f"{counted(len(conflicts), 'conflict')}: the choice {'does not hold' if conflicts else 'holds'}",
    )

"""Choice-of-law checks: conflicts, and warnings for human review."""

from collections.abc import Iterator
from typing import NamedTuple

from qwed.packs.plural import pluralize
from qwed_legal._jurisdiction.places import EUROPEAN_UNION, SEVERAL_LAWS, Place

RULE = (
    "parties choose the law of their contract freely, for the whole or for a part of it (Rome I Regulation 593/2008, "
    "article 3; Restatement (Second) of Conflict of Laws s. 187; Hague Principles 2015, article 2); consumers and "
    "employees keep the courts and the protection of their own country (Rome I, articles 6 and 8; Brussels I "
    "Regulation 1215/2012, articles 17 to 23)"
)
_ROME = EUROPEAN_UNION - {"DK"}
"""Countries bound by Rome I; Denmark is not."""
_WITHOUT_CONNECTION = {
    "New York": "N.Y. Gen. Oblig. Law s. 5-1401 allows that from 250,000 dollars",
    "Delaware": "Del. Code Ann. tit. 6, s. 2708 allows that from 100,000 dollars",
    "California": "Cal. Civ. Code s. 1646.5 allows that from 250,000 dollars",
}
_SEVERAL_LAWS_HINTS = {
    "US": "contracts are governed by the law of a state, name one such as New York",
    "GB": "England and Wales, Scotland and Northern Ireland have each their own law, name one",
    "CA": "the provinces have each their own law, name one such as Ontario",
    "AU": "the states have each their own law, name one such as New South Wales",
}


class LawChoice(NamedTuple):
    """Choice of law and forum in a contract."""

    parties: tuple[Place, ...]
    law: Place | None
    laws: tuple[Place, ...]
    """The laws, if more than one is named."""
    forum: Place | None
    kind: str | None
    weaker: Place | None


def find_conflicts(choice: LawChoice) -> list[str]:
    """Return what makes the choice void or impossible to follow."""
    conflicts = []
    if len({(law.country, law.part) for law in choice.laws}) > 1:
        names = " and ".join(law.name for law in choice.laws)
        conflicts.append(f"two laws are named for the whole contract ({names}), and no part of it for each")
    if (
        choice.kind
        and choice.weaker
        and choice.forum
        and _is_protected(choice.weaker)
        and choice.forum.country != choice.weaker.country
    ):
        rule = "articles 17 to 19" if choice.kind == "consumer" else "articles 20 to 23"
        who = "consumer" if choice.kind == "consumer" else "employee"
        conflicts.append(
            f"a {who} in {choice.weaker.name} cannot be bound beforehand to the courts of {choice.forum.name} "
            f"(Brussels I Regulation 1215/2012, {rule})"
        )
    return conflicts


def _is_protected(place: Place) -> bool:
    return place.country in EUROPEAN_UNION


def find_warnings(choice: LawChoice) -> list[str]:
    """Return what is allowed but unusual or incomplete."""
    return [
        *_unclear_law_warnings(choice),
        *_connection_warnings(choice),
        *_forum_warnings(choice),
        *_mandatory_rule_warnings(choice),
    ]


def _unclear_law_warnings(choice: LawChoice) -> Iterator[str]:
    if choice.law and choice.law.part is None and choice.law.country in SEVERAL_LAWS:
        yield f"there is no single law of {choice.law.name}: {_SEVERAL_LAWS_HINTS[choice.law.country]}"


def _connection_warnings(choice: LawChoice) -> Iterator[str]:
    law = choice.law
    if law is None or any(_is_connected(party, law) for party in choice.parties):
        return
    reason = _WITHOUT_CONNECTION.get(
        law.part or "", "courts may ask for a reason (Restatement (Second) of Conflict of Laws s. 187)"
    )
    yield f"the law of {law.name} has no connection to the parties: {reason}"


def _is_connected(party: Place, law: Place) -> bool:
    return party.country == law.country and (party.part is None or law.part is None or party.part == law.part)


def _forum_warnings(choice: LawChoice) -> Iterator[str]:
    law, forum = choice.law, choice.forum
    if law is None or forum is None or _is_connected(forum, law):
        return
    yield f"the courts of {forum.name} would have to apply the law of {law.name}: forum and law differ"


def _mandatory_rule_warnings(choice: LawChoice) -> Iterator[str]:
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


def describe_steps(choice: LawChoice, conflicts: list[str], warnings: list[str]) -> tuple[str, ...]:
    """Return the steps to reproduce the result by hand."""
    laws = " and ".join(law.name for law in choice.laws) or (choice.law.name if choice.law else "")
    return (
        f"the parties are in {', '.join(party.name for party in choice.parties)}",
        f"the law is that of {laws}" + (f", the forum {choice.forum.name}" if choice.forum else ", no forum is named"),
        *(f"conflict: {entry}" for entry in conflicts),
        *(f"warning: {entry}" for entry in warnings),
        f"{pluralize(len(conflicts), 'conflict')}: the choice {'does not hold' if conflicts else 'holds'}",
    )

"""What a logic payload asserts; whatever is missing or shaped otherwise is named."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

MAX_ASSERTIONS = 100
MAX_CHARACTERS = 2_000
MAX_IN_ALL = 20_000
"""What the logic engine looks at in one question."""

_HALF = re.compile("[\ud800-\udfff]")
_OURS = {
    **dict.fromkeys(("assertion", "assertions", "claims"), "assertions"),
    **dict.fromkeys(("claim",), "claim"),
    **dict.fromkeys(("denied", "negate", "negated", "negation"), "negated"),
}


class Unverifiable(Exception):
    """The payload cannot be verified; the text says what to change."""


class Assertion(NamedTuple):
    """One claim, and whether it is denied."""

    claim: str
    negated: bool


def read_assertions(payload: Mapping[str, Any]) -> tuple[Assertion, ...]:
    """The assertions of `payload`; Unverifiable says what is wrong."""
    _refuse_other_spellings(payload, "assertions")
    given = payload.get("assertions")
    if given is None:
        raise Unverifiable("`assertions` is missing: give a list of objects with a `claim`")
    if not isinstance(given, list):
        raise Unverifiable("`assertions` must be a list of objects with a `claim`")
    if not given:
        raise Unverifiable("`assertions` is empty: give what is to be verified")
    if len(given) > MAX_ASSERTIONS:
        raise Unverifiable(f"`assertions` has more than {MAX_ASSERTIONS} claims, split the message")
    read = tuple(_assertion(each, index) for index, each in enumerate(given))
    if sum(len(each.claim) for each in read) > MAX_IN_ALL:
        raise Unverifiable(f"`assertions` has more than {MAX_IN_ALL} characters in all, split the message")
    return read


def _assertion(given: Any, index: int) -> Assertion:
    place = f"`assertions[{index}]`"
    if not isinstance(given, Mapping):
        raise Unverifiable(f"{place} must be an object with a `claim`")
    _refuse_other_spellings(given, "claim", "negated")
    claim, negated = given.get("claim"), given.get("negated", False)
    if not isinstance(claim, str) or not claim.strip():
        raise Unverifiable(f"{place} needs a `claim` that is a text and not blank")
    if _HALF.search(claim):
        raise Unverifiable(f"the `claim` of {place} has half of a surrogate pair, write whole characters")
    if len(claim) > MAX_CHARACTERS:
        raise Unverifiable(f"the `claim` of {place} has more than {MAX_CHARACTERS} characters, split it")
    if not isinstance(negated, bool):
        raise Unverifiable(f"`negated` of {place} must be true or false")
    return Assertion(claim, negated)


def _refuse_other_spellings(members: Mapping[Any, Any], *known: str) -> None:
    """`Negated` is read by some and not by others: such a message would say two things."""
    for name in members:
        plain = "".join(filter(str.isalpha, str(name)[:64])).casefold()
        if name not in known and plain in _OURS:
            raise Unverifiable(f"a member is spelt like `{_OURS[plain]}`, write that once and where it belongs")

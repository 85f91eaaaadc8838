"""Parser for logic payloads; errors name the missing or invalid field."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

MAX_ASSERTIONS = 100
MAX_CHARACTERS = 2_000
MAX_TOTAL_CHARACTERS = 20_000
"""Characters that the logic engine accepts in one request."""

_HALF = re.compile("[\ud800-\udfff]")
_SPELLINGS = {
    **dict.fromkeys(("assertion", "assertions", "claims"), "assertions"),
    **dict.fromkeys(("claim",), "claim"),
    **dict.fromkeys(("denied", "negate", "negated", "negation"), "negated"),
}


class AssertionFormatError(Exception):
    """Payload that cannot be verified; the text says what to change."""


class Assertion(NamedTuple):
    """One claim, and True if it is negated."""

    claim: str
    negated: bool


def read_assertions(payload: Mapping[str, Any]) -> tuple[Assertion, ...]:
    """Return the assertions of `payload`; raise AssertionFormatError if it is invalid."""
    _refuse_other_spellings(payload, "assertions")
    items = payload.get("assertions")
    if items is None:
        raise AssertionFormatError("`assertions` is missing: give a list of objects with a `claim`")
    if not isinstance(items, list):
        raise AssertionFormatError("`assertions` must be a list of objects with a `claim`")
    if not items:
        raise AssertionFormatError("`assertions` is empty: give what is to be verified")
    if len(items) > MAX_ASSERTIONS:
        raise AssertionFormatError(f"`assertions` has more than {MAX_ASSERTIONS} claims, split the message")
    assertions = tuple(_assertion(item, index) for index, item in enumerate(items))
    if sum(len(item.claim) for item in assertions) > MAX_TOTAL_CHARACTERS:
        raise AssertionFormatError(
            f"`assertions` has more than {MAX_TOTAL_CHARACTERS} characters in all, split the message"
        )
    return assertions


def _assertion(item: Any, index: int) -> Assertion:
    label = f"`assertions[{index}]`"
    if not isinstance(item, Mapping):
        raise AssertionFormatError(f"{label} must be an object with a `claim`")
    _refuse_other_spellings(item, "claim", "negated")
    claim, negated = item.get("claim"), item.get("negated", False)
    if not isinstance(claim, str) or not claim.strip():
        raise AssertionFormatError(f"{label} needs a `claim` that is a text and not blank")
    if _HALF.search(claim):
        raise AssertionFormatError(f"the `claim` of {label} has half of a surrogate pair, write whole characters")
    if len(claim) > MAX_CHARACTERS:
        raise AssertionFormatError(f"the `claim` of {label} has more than {MAX_CHARACTERS} characters, split it")
    if not isinstance(negated, bool):
        raise AssertionFormatError(f"`negated` of {label} must be true or false")
    return Assertion(claim, negated)


def _refuse_other_spellings(members: Mapping[Any, Any], *known: str) -> None:
    """Refuse variants such as `Negated`, which some readers accept and others ignore."""
    for name in members:
        plain = "".join(filter(str.isalpha, str(name)[:64])).casefold()
        if name not in known and plain in _SPELLINGS:
            raise AssertionFormatError(
                f"a member is spelt like `{_SPELLINGS[plain]}`, write that once and where it belongs"
            )

"""Whether a message has the elements of its type, in their order, as often as allowed, with values of their types."""

from collections import Counter
from itertools import pairwise

from qwed.words.currency import CURRENCIES, CurrencyError, decimals_of
from qwed_finance import bic, iban
from qwed_finance._iso.mod97 import Check, examine_lei
from qwed_finance._iso.node import Findings, Node
from qwed_finance._iso.schema import Complex, Part, Simple, Type, Valued, type_of

PAST = dict.fromkeys(("ANG", "BGN", "CUC", "EEK", "HRK", "LTL", "LVL", "SKK", "SLL", "ZWL"), 2)
"""Currencies that are no more, with the decimals that they had: statements of their time still name them."""

_CODES = {"iban": ("iban", iban.examine), "bic": ("bic", bic.examine), "bic2009": ("bic", bic.examine)}
_CODES |= {"lei": ("lei", examine_lei)}


def examine(node: Node, kind: Type, found: Findings) -> None:
    """Collect everything that is wrong with an element and what is in it."""
    waiting = [(node, kind)]
    while waiting and not found.full:
        here, of = waiting.pop()
        if isinstance(of, Complex):
            _no_attributes(here, found)
            waiting.extend(_complex(here, of, found))
        elif isinstance(of, Simple):
            _no_attributes(here, found)
            _value(here, of, found)
        elif isinstance(of, Valued):
            _valued(here, of, found)


def _complex(node: Node, of: Complex, found: Findings) -> list[tuple[Node, Type]]:
    if node.text.strip(" \t\r\n"):
        found.fail(node, "structure", f"`{node.name}` holds elements, not the text `{node.text[:40]}`")
    known: list[tuple[Node, Part]] = []
    for child in node.children:
        part = of.parts.get(child.name)
        if part is None and found.full:
            break
        if part is None:
            allowed = ", ".join(list(of.parts)[:40])
            found.fail(child, "structure", f"`{node.name}` has no element `{child.name[:40]}`, only {allowed}")
        else:
            known.append((child, part))
    if of.choice:
        _one(node, of, known, found)
    else:
        _order(known, found)
    _often(node, of, known, found)
    return [(child, type_of(part.kind)) for child, part in reversed(known)]


def _order(known: list[tuple[Node, Part]], found: Findings) -> None:
    for (before, first), (after, second) in pairwise(known):
        if second.place < first.place:
            found.fail(after, "structure", f"`{after.name}` must stand before `{before.name}`")


def _one(node: Node, of: Complex, known: list[tuple[Node, Part]], found: Findings) -> None:
    chosen = {part.name for _, part in known}
    if len(chosen) > 1 or (not chosen and all(part.least for part in of.parts.values())):
        found.fail(node, "structure", f"`{node.name}` must hold one of {', '.join(of.parts)}")


def _often(node: Node, of: Complex, known: list[tuple[Node, Part]], found: Findings) -> None:
    many = Counter(part.name for _, part in known)
    for name in of.required:
        if many[name] < of.parts[name].least:
            found.fail(node, "structure", f"`{node.name}` lacks `{name}`")
    for name, times in many.items():
        most = of.parts[name].most
        if most is not None and times > most:
            last = next(child for child, part in reversed(known) if part.name == name)
            found.fail(last, "structure", f"`{name}` stands {times} times, {most} allowed")


def _no_attributes(node: Node, found: Findings) -> None:
    for name in node.attributes:
        found.fail(node, "structure", f"`{node.name}` has no attribute `{name[:40]}`")


def _value(node: Node, of: Simple, found: Findings) -> bool:
    if node.children:
        found.fail(node, "structure", f"`{node.name}` holds a value, not the element `{node.children[0].name[:40]}`")
        return False
    wrong = of.check(node.text)
    if wrong:
        found.fail(node, "value", f"`{node.name}` {wrong}", f"read what stands there: `{node.text[:40]}`")
        return False
    if of.name in _CODES:
        rule, check = _CODES[of.name]
        return _code(node, rule, check(node.text), found)
    if of.name == "country" and not bic.exists(node.text):
        found.fail(node, "country", f"`{node.text}` is no country of ISO 3166-1")
        return False
    return of.name != "currency" or _currency(node, node.text, found) is not None


def _code(node: Node, rule: str, check: Check, found: Findings) -> bool:
    if not check.holds:
        found.fail(node, rule, check.says, *check.by_hand)
    return check.holds


def _currency(node: Node, code: str, found: Findings) -> int | None:
    """The decimals of a currency, where it is known."""
    if code in PAST:
        return PAST[code]
    try:
        return decimals_of(code)
    except CurrencyError as wrong:
        listed = f"known are {', '.join(list(CURRENCIES)[:12])} and {len(CURRENCIES) - 12} more"
        found.wonder(node, "currency", f"{wrong}", f"look `{code}` up in ISO 4217: {listed}")
        return None


def _valued(node: Node, of: Valued, found: Findings) -> None:
    for name in node.attributes:
        if name not in of.attributes:
            found.fail(node, "structure", f"`{node.name}` has no attribute `{name[:40]}`")
    sound = _value(node, of.value, found)
    for name, kind in of.attributes.items():
        given = node.attributes.get(name)
        wrong = "is missing" if given is None else kind.check(given)
        if given is None or wrong:
            found.fail(node, "currency", f"`{name}` of `{node.name}` {wrong}")
        elif kind.name == "currency":
            decimals = _currency(node, given, found)
            if sound and decimals is not None:
                _decimals(node, given, decimals, found)


def _decimals(node: Node, currency: str, decimals: int, found: Findings) -> None:
    written = len(node.text.partition(".")[2])
    if written > decimals:
        found.fail(
            node,
            "decimals",
            f"`{node.text}` has {written} decimals, amounts in `{currency}` have {decimals or 'none'}",
            f"count the digits after the point of {node.text}: {written}; ISO 4217 gives {currency} {decimals}",
        )

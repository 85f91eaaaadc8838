"""Structure check: the elements of the message type, in order, in allowed numbers, with values of their types."""

from collections import Counter
from itertools import pairwise

from qwed.model.currency import CURRENCIES, CurrencyError, decimals_of
from qwed_finance import bic, iban
from qwed_finance._iso.mod97 import CodeCheck, examine_lei
from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.schema import ComplexType, ElementSpec, SchemaType, SimpleType, ValueWithAttributes, type_of

PAST_CURRENCIES = dict.fromkeys(("ANG", "BGN", "CUC", "EEK", "HRK", "LTL", "LVL", "SKK", "SLL", "ZWL"), 2)
"""Withdrawn currencies with their decimals; statements of their time still name them."""

_CODES = {"iban": ("iban", iban.examine_iban), "bic": ("bic", bic.examine_bic), "bic2009": ("bic", bic.examine_bic)}
_CODES |= {"lei": ("lei", examine_lei)}


def check_structure(node: Element, kind: SchemaType, issues: MessageIssues) -> None:
    """Collect every error of an element and its content."""
    waiting = [(node, kind)]
    while waiting and not issues.is_full:
        current, schema_type = waiting.pop()
        if isinstance(schema_type, ComplexType):
            _reject_attributes(current, issues)
            waiting.extend(_check_complex(current, schema_type, issues))
        elif isinstance(schema_type, SimpleType):
            _reject_attributes(current, issues)
            _check_value(current, schema_type, issues)
        elif isinstance(schema_type, ValueWithAttributes):
            _check_amount(current, schema_type, issues)


def _check_complex(node: Element, schema_type: ComplexType, issues: MessageIssues) -> list[tuple[Element, SchemaType]]:
    if node.text.strip(" \t\r\n"):
        issues.fail(node, "structure", f"`{node.name}` holds elements, not the text `{node.text[:40]}`")
    members: list[tuple[Element, ElementSpec]] = []
    for child in node.children:
        part = schema_type.parts.get(child.name)
        if part is None and issues.is_full:
            break
        if part is None:
            allowed = ", ".join(list(schema_type.parts)[:40])
            issues.fail(child, "structure", f"`{node.name}` has no element `{child.name[:40]}`, only {allowed}")
        else:
            members.append((child, part))
    if schema_type.choice:
        _check_choice(node, schema_type, members, issues)
    else:
        _check_order(members, issues)
    _check_occurrences(node, schema_type, members, issues)
    return [(child, type_of(part.kind)) for child, part in reversed(members)]


def _check_order(members: list[tuple[Element, ElementSpec]], issues: MessageIssues) -> None:
    for (before, first), (after, second) in pairwise(members):
        if second.place < first.place:
            issues.fail(after, "structure", f"`{after.name}` must stand before `{before.name}`")


def _check_choice(
    node: Element, schema_type: ComplexType, members: list[tuple[Element, ElementSpec]], issues: MessageIssues
) -> None:
    chosen = {part.name for _, part in members}
    if len(chosen) > 1 or (not chosen and all(part.least for part in schema_type.parts.values())):
        issues.fail(node, "structure", f"`{node.name}` must hold one of {', '.join(schema_type.parts)}")


def _check_occurrences(
    node: Element, schema_type: ComplexType, members: list[tuple[Element, ElementSpec]], issues: MessageIssues
) -> None:
    counts = Counter(part.name for _, part in members)
    for name in schema_type.required:
        if counts[name] < schema_type.parts[name].least:
            issues.fail(node, "structure", f"`{node.name}` lacks `{name}`")
    for name, times in counts.items():
        most = schema_type.parts[name].most
        if most is not None and times > most:
            last = next(child for child, part in reversed(members) if part.name == name)
            issues.fail(last, "structure", f"`{name}` stands {times} times, {most} allowed")


def _reject_attributes(node: Element, issues: MessageIssues) -> None:
    for name in node.attributes:
        issues.fail(node, "structure", f"`{node.name}` has no attribute `{name[:40]}`")


def _check_value(node: Element, schema_type: SimpleType, issues: MessageIssues) -> bool:
    if node.children:
        issues.fail(node, "structure", f"`{node.name}` holds a value, not the element `{node.children[0].name[:40]}`")
        return False
    problem = schema_type.check(node.text)
    if problem:
        issues.fail(node, "value", f"`{node.name}` {problem}", f"read what stands there: `{node.text[:40]}`")
        return False
    if schema_type.name in _CODES:
        rule, check = _CODES[schema_type.name]
        return _check_code(node, rule, check(node.text), issues)
    if schema_type.name == "country" and not bic.is_country(node.text):
        issues.fail(node, "country", f"`{node.text}` is not a country of ISO 3166-1")
        return False
    return schema_type.name != "currency" or _currency_decimals(node, node.text, issues) is not None


def _check_code(node: Element, rule: str, check: CodeCheck, issues: MessageIssues) -> bool:
    if not check.holds:
        issues.fail(node, rule, check.message, *check.by_hand)
    return check.holds


def _currency_decimals(node: Element, code: str, issues: MessageIssues) -> int | None:
    """Return the decimals of a currency, or None if it is unknown."""
    if code in PAST_CURRENCIES:
        return PAST_CURRENCIES[code]
    try:
        return decimals_of(code)
    except CurrencyError as error:
        listed = f"known are {', '.join(list(CURRENCIES)[:12])} and {len(CURRENCIES) - 12} more"
        issues.add_undecided(node, "currency", f"{error}", f"look `{code}` up in ISO 4217: {listed}")
        return None


def _check_amount(node: Element, schema_type: ValueWithAttributes, issues: MessageIssues) -> None:
    for name in node.attributes:
        if name not in schema_type.attributes:
            issues.fail(node, "structure", f"`{node.name}` has no attribute `{name[:40]}`")
    is_valid = _check_value(node, schema_type.value, issues)
    for name, kind in schema_type.attributes.items():
        value = node.attributes.get(name)
        problem = "is missing" if value is None else kind.check(value)
        if value is None or problem:
            issues.fail(node, "currency", f"`{name}` of `{node.name}` {problem}")
        elif kind.name == "currency":
            decimals = _currency_decimals(node, value, issues)
            if is_valid and decimals is not None:
                _check_decimals(node, value, decimals, issues)


def _check_decimals(node: Element, currency: str, decimals: int, issues: MessageIssues) -> None:
    count = len(node.text.partition(".")[2])
    if count > decimals:
        issues.fail(
            node,
            "decimals",
            f"`{node.text}` has {count} decimals, amounts in `{currency}` have {decimals or 'none'}",
            f"count the digits after the point of {node.text}: {count}; ISO 4217 gives {currency} {decimals}",
        )

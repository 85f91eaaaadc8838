"""Claims about quantities: units become exact factors of base units, dimensions must agree, and the rest is algebra."""

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from qwed.engines._math.answers import failed
from qwed.engines._math.claims import settle
from qwed.engines._math.judge import judge
from qwed.engines._math.resolve import has_forms
from qwed.engines._math.syntax import parse
from qwed.engines._math.tree import (
    Claim,
    Node,
    Refused,
    added,
    call,
    clip,
    named,
    names_in,
    negated,
    number,
    over,
    power,
    times,
    walk,
)
from qwed.engines._math.unit_table import Unit, unit_of
from qwed.engines.arithmetic import NotQuick, rational
from qwed.words import Status, Verdict

_SPOKEN = (
    (re.compile(r"\b(?:square|sq)\.?\s+([A-Za-z]+)"), r"\1^2"),
    (re.compile(r"\b(?:cubic|cu)\.?\s+([A-Za-z]+)"), r"\1^3"),
    (re.compile(r"\bnautical\s+mile"), "nautical_mile"),
    (re.compile(r"\blight[ -]year"), "lightyear"),
    (re.compile(r"\s+per\s+"), "/"),
    (re.compile(r"\b([kcdm]?m)([23])\b"), r"\1^\2"),
)
"""Units of several words, as they are written here."""
_AMOUNT = r"[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+"
_COMPOUND = re.compile(rf"{_AMOUNT}(?:\s+(?:and\s+)?{_AMOUNT})+")
"""`5 ft 6 in`, which is a sum."""
_DEGREES = re.compile(r"(?:\u00b0|deg(?:rees)?\s*)\s*(C|F|K|Celsius|Fahrenheit)\b")
_TEMPERATURES = {
    "degC": (Fraction(1), Fraction("273.15")),
    "degF": (Fraction(5, 9), Fraction("459.67") * Fraction(5, 9)),
    "K": (Fraction(1), Fraction(0)),
}
_TONS = frozenset({"ton", "tons"})
_OFFSET = frozenset({"degC", "degF"})


class Quantity(NamedTuple):
    """A tree in base units and the powers of the base dimensions it has."""

    node: Node
    dimension: Mapping[str, Fraction]


def judge_units(text: str, parameters: Mapping[str, Any]) -> Verdict | None:
    """The verdict on a claim whose names are all units, or None for any other text."""
    wanted = parameters.get("unit")
    if wanted is not None and not isinstance(wanted, str):
        raise Refused("parameters_valid", "`unit` must be the name of a unit such as `km`")
    text = _DEGREES.sub(lambda found: f" deg{found[1][0]} ", text)
    for spoken, written in _SPOKEN:
        text = spoken.sub(written, text)
    text = _COMPOUND.sub(lambda found: _summed(found[0]), text)
    claim = _parsed(text, wanted, parameters.get("claimed_result"))
    if claim is None:
        return None
    names = names_in(claim.left, claim.right)
    if _OFFSET.intersection(names):
        return _temperatures(claim, parameters)
    if wanted is None and all(len(name) == 1 for name in names):
        return _letters(claim, parameters)
    return _chain(claim, parameters)


def _summed(compound: str) -> str:
    amounts = re.findall(_AMOUNT, compound)
    units = {amount.strip("0123456789. ") for amount in amounts}
    return f"({' + '.join(amounts)})" if len(units) == len(amounts) else compound


def _parsed(text: str, wanted: str | None, claimed: object) -> Claim | None:
    """The claim, if it is about units at all."""
    try:
        if wanted is not None and claimed is not None:
            text = f"{text} = {claimed if isinstance(claimed, str) else repr(claimed)}"
        claim = parse(text, in_units=True)
    except Refused:
        return None
    links = (claim, *claim.also)
    names = names_in(*(side for link in links for side in (link.left, link.right)))
    if not names or any(has_forms(side) for link in links for side in (link.left, link.right) if side is not None):
        return None
    if _TONS.intersection(names) and any(_has_quantity(link) for link in links):
        raise Refused("decidable", "a ton has two sizes: write `tonne` for 1000 kg or `2000 lb`")
    known = all(name in _OFFSET or unit_of(name) is not None for name in names)
    if not known or (wanted is None and not any(_has_quantity(link) for link in links)):
        return None
    return claim if wanted is None else _in_unit(claim, wanted)


def _has_quantity(claim: Claim) -> bool:
    """Whether a number stands directly before a name somewhere."""
    return any(
        part.kind == "product"
        and any(
            (a.args[0] if a.kind == "negative" else a).kind == "number" and _is_unit_factor(b)
            for a, b in zip(part.args, part.args[1:], strict=False)
        )
        for side in (claim.left, claim.right)
        if side is not None
        for part in walk(side)
    )


def _is_unit_factor(node: Node) -> bool:
    base = node.args[0] if node.kind == "power" else node
    return base.kind == "name" and base.name not in ("pi", "e", "E", "i", "I")


def _in_unit(claim: Claim, wanted: str) -> Claim:
    """The claim with `wanted` as the unit of a right side that is a plain number."""
    unit = parse(wanted, in_units=True).left
    if any(unit_of(name) is None and name not in _OFFSET for name in names_in(unit)):
        raise Refused("parameters_valid", f"unknown unit {clip(wanted)}: write one such as `km`")
    if claim.right is None:
        return claim._replace(sign="in", right=unit, right_text=wanted)
    if names_in(claim.right):
        return claim
    return claim._replace(right=times(claim.right, unit), right_text=f"{claim.right_text} {wanted}")


def _letters(claim: Claim, parameters: Mapping[str, Any]) -> Verdict | None:
    """Names of one letter may be variables: units speak only where they agree and the variables do not settle it."""
    if claim.right is None or _settled_by_variables(claim, parameters):
        return None
    try:
        verdict = _chain(claim, parameters)
    except Refused:
        return None
    return verdict if "dimensions" not in verdict.result else None


def _settled_by_variables(claim: Claim, parameters: Mapping[str, Any]) -> bool:
    try:
        parse(claim.text)
        return judge(claim, parameters.get("tolerance")).status is Status.VERIFIED
    except Refused:
        return False


def _chain(claim: Claim, parameters: Mapping[str, Any]) -> Verdict:
    verdicts = [_compared(link, parameters) for link in (claim._replace(also=()), *claim.also)]
    return next((verdict for verdict in verdicts if verdict.status is not Status.VERIFIED), verdicts[-1])


def _compared(claim: Claim, parameters: Mapping[str, Any]) -> Verdict:
    left = _quantity(claim.left)
    if claim.right is None:
        first = claim.left.args[0] if claim.left.kind == "sum" else claim.left
        unit = Quantity(_unit_only(first), left.dimension)
        found = judge(Claim(claim.text, times(left.node, over(unit.node)), claim.text))
        return replace(found, result={**found.result, "unit": _unit_text(claim.left_text)})
    right = _quantity(claim.right)
    if not _agree(left, right):
        shown = {"dimensions": [_shown(left.dimension), _shown(right.dimension)]}
        return failed(f"{clip(claim.text)} compares {shown['dimensions'][0]} with {shown['dimensions'][1]}", shown)
    scale = over(_unit_only(claim.right))
    sides = times(left.node, scale), times(right.node, scale)
    if claim.sign == "in":
        return judge(Claim(f"{claim.left_text} in {claim.right_text}", sides[0], claim.left_text))
    plain = claim._replace(left=sides[0], right=_number_side(sides[1]))
    return _repaired(claim, settle(plain, parameters.get("tolerance")))


def _agree(left: Quantity, right: Quantity) -> bool:
    return left.dimension == right.dimension or number(0) in (left.node, right.node)


def _number_side(node: Node) -> Node:
    try:
        return number(rational(node))
    except NotQuick:
        return node


def _repaired(claim: Claim, verdict: Verdict) -> Verdict:
    """The repair with its unit, where the right side is a number and a unit."""
    expected = verdict.result.get("expected")
    if expected is None or claim.right is None or claim.right.kind != "product" or claim.right.args[0].kind != "number":
        return replace(verdict, corrected=None)
    unit = _unit_text(claim.right_text)
    result = {**verdict.result, "expected": f"{expected} {unit}"}
    rational_value = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(expected))
    corrected = {"query": f"{claim.left_text} = {expected} {unit}"} if rational_value else None
    return replace(verdict, result=result, corrected=corrected)


def _unit_text(text: str) -> str:
    """The unit that the first number of a text stands before."""
    found = re.search(
        r"[A-Za-z\u00b0](?:[A-Za-z0-9_^/*.()\u00b0]|-(?=[0-9]))*", re.sub(r"[0-9.]+[eE][+-]?[0-9]+", "", text)
    )
    return found[0] if found else ""


def _unit_only(node: Node) -> Node:
    """The unit of a side, in base units: its numbers as ones."""
    if node.kind == "product":
        units = [arg for arg in node.args if names_in(arg)]
        return times(*(_quantity(arg).node for arg in units)) if units else number(1)
    return _quantity(node).node if node.kind in ("name", "power") and names_in(node) else number(1)


def _quantity(node: Node) -> Quantity:
    if node.kind == "name" and names_in(node):
        unit = unit_of(node.name)
        if unit is None:
            raise Refused("syntax_valid", f"unknown unit {clip(node.name)}")
        return Quantity(_factor(unit), unit.dimension)
    if not names_in(node):
        return Quantity(node, {})
    rules = {"sum": _sum, "product": _product, "power": _power, "inverse": _inverse, "negative": _negative}
    if node.kind not in rules:
        return _called(node)
    return rules[node.kind](node)


def _factor(unit: Unit) -> Node:
    factor = number(unit.factor)
    return times(factor, named("pi")) if unit.half_turns else factor


def _sum(node: Node) -> Quantity:
    parts = [_quantity(arg) for arg in node.args]
    for part in parts[1:]:
        if not _agree(parts[0], part):
            shown = f"{_shown(parts[0].dimension)} and {_shown(part.dimension)}"
            raise Refused("defined", f"{shown} cannot be added: use units of the same kind")
    return Quantity(added(*(part.node for part in parts)), parts[0].dimension)


def _product(node: Node) -> Quantity:
    parts = [_quantity(arg) for arg in node.args]
    total: dict[str, Fraction] = {}
    for part in parts:
        for base, exponent in part.dimension.items():
            total[base] = total.get(base, Fraction(0)) + exponent
    return Quantity(times(*(part.node for part in parts)), {base: count for base, count in total.items() if count})


def _raised(part: Quantity, exponent: Fraction) -> dict[str, Fraction]:
    return {base: count * exponent for base, count in part.dimension.items() if exponent}


def _power(node: Node) -> Quantity:
    base = _quantity(node.args[0])
    try:
        exponent = Fraction(rational(node.args[1]))
    except NotQuick:
        raise Refused("defined", "a quantity is raised to a plain number") from None
    return Quantity(power(base.node, node.args[1]), _raised(base, exponent))


def _inverse(node: Node) -> Quantity:
    part = _quantity(node.args[0])
    return Quantity(over(part.node), _raised(part, Fraction(-1)))


def _negative(node: Node) -> Quantity:
    part = _quantity(node.args[0])
    return Quantity(negated(part.node), part.dimension)


def _called(node: Node) -> Quantity:
    parts = [_quantity(arg) for arg in node.args]
    if node.name == "sqrt":
        return Quantity(call("sqrt", parts[0].node), _raised(parts[0], Fraction(1, 2)))
    if node.name in ("abs", "min", "max") and all(_agree(parts[0], part) for part in parts):
        return Quantity(call(node.name, *(part.node for part in parts)), parts[0].dimension)
    if any(part.dimension for part in parts):
        raise Refused("defined", f"`{node.name or node.kind}` of a quantity with a unit is not defined")
    return Quantity(Node(node.kind, tuple(part.node for part in parts), node.name), {})


@cache
def _ordered() -> tuple[str, ...]:
    return ("length", "mass", "time", "current", "temperature", "substance", "luminosity", "information", "calendar")


def _shown(dimension: Mapping[str, Fraction]) -> str:
    if not dimension:
        return "a plain number"
    found = [base for base in _ordered() if base in dimension]
    return "*".join(base if dimension[base] == 1 else f"{base}^{dimension[base]}" for base in found)


def _temperatures(claim: Claim, parameters: Mapping[str, Any]) -> Verdict:
    """Scales with an offset: only whole readings are compared, since a sum of them has no agreed meaning."""
    if claim.right is None or claim.also:
        raise Refused("defined", "compare one temperature with another, such as `32 degF = 0 degC`")
    if claim.sign == "in":
        claim = claim._replace(right=times(number(1), claim.right))
    scale, shift = _TEMPERATURES[_scale_of(claim.right)]
    left = _kelvin(claim.left)
    # Both in the scale of the right side, so that a tolerance is in its degrees.
    seen = times(added(left, number(-shift)), over(number(scale)))
    if claim.sign == "in":
        return judge(Claim(f"{claim.left_text} in {claim.right_text}", seen, claim.left_text))
    right = times(added(_kelvin(claim.right), number(-shift)), over(number(scale)))
    plain = claim._replace(left=seen, right=_number_side(right))
    return _repaired(claim, settle(plain, parameters.get("tolerance")))


def _scale_of(node: Node | None) -> str:
    names = names_in(node)
    if len(names) != 1 or names[0] not in _TEMPERATURES:
        raise Refused("defined", "a temperature is compared with a temperature")
    return names[0]


def _kelvin(node: Node | None) -> Node:
    scale = _scale_of(node)
    factor, shift = _TEMPERATURES[scale]
    sign = 1
    while node is not None and node.kind == "negative":
        node, sign = node.args[0], -sign
    plain = node is not None and node.kind == "product" and node.args[-1] == named(scale)
    if node is None or not plain or len(node.args) != 2 or names_in(node.args[0]):
        raise Refused("defined", "a sum or multiple of temperatures has two readings: compare single ones")
    return added(times(number(sign * factor), *node.args[:-1]), number(shift))

"""Claims about quantities: units become exact factors of base units, and dimensions must agree."""

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from qwed.engines._math.claims import decide_claim
from qwed.engines._math.messages import failed_verdict
from qwed.engines._math.parser import parse
from qwed.engines._math.resolve import needs_resolving
from qwed.engines._math.syntax_tree import (
    Claim,
    MathNode,
    MathRefusalError,
    add,
    call,
    clip,
    free_names,
    iter_nodes,
    multiply,
    name_node,
    negate,
    number,
    power,
    reciprocal,
)
from qwed.engines._math.unit_table import Unit, unit_of
from qwed.engines._math.verify_claim import verify_claim
from qwed.engines.arithmetic import NotPlainArithmeticError, evaluate_rational
from qwed.model import Status, Verdict

_UNIT_PHRASES = (
    (re.compile(r"\b(?:square|sq)\.?\s+([A-Za-z]+)"), r"\1^2"),
    (re.compile(r"\b(?:cubic|cu)\.?\s+([A-Za-z]+)"), r"\1^3"),
    (re.compile(r"\bnautical\s+mile"), "nautical_mile"),
    (re.compile(r"\blight[ -]year"), "lightyear"),
    (re.compile(r"\s+per\s+"), "/"),
    (re.compile(r"\b([kcdm]?m)([23])\b"), r"\1^\2"),
)
"""Units of several words, and their notation here."""
_AMOUNT = r"[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+"
_COMPOUND = re.compile(rf"{_AMOUNT}(?:\s+(?:and\s+)?{_AMOUNT})+")
"""Sum of quantities written without a sign, such as `5 ft 6 in`."""
_DEGREES = re.compile(r"(?:\u00b0|deg(?:rees)?\s*)\s*(C|F|K|Celsius|Fahrenheit)\b")
_TEMPERATURES = {
    "degC": (Fraction(1), Fraction("273.15")),
    "degF": (Fraction(5, 9), Fraction("459.67") * Fraction(5, 9)),
    "K": (Fraction(1), Fraction(0)),
}
_TONS = frozenset({"ton", "tons"})
_OFFSET_SCALES = frozenset({"degC", "degF"})


class Quantity(NamedTuple):
    """Tree in base units, and its powers of the base dimensions."""

    node: MathNode
    dimension: Mapping[str, Fraction]


def verify_units(text: str, parameters: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict on a claim whose names are all units, or None for any other text."""
    unit_name = parameters.get("unit")
    if unit_name is not None and not isinstance(unit_name, str):
        raise MathRefusalError("parameters_valid", "`unit` must be the name of a unit such as `km`")
    text = _DEGREES.sub(lambda match: f" deg{match[1][0]} ", text)
    for spoken, written in _UNIT_PHRASES:
        text = spoken.sub(written, text)
    text = _COMPOUND.sub(lambda match: _join_amounts(match[0]), text)
    claim = _parse_claim(text, unit_name, parameters.get("claimed_result"))
    if claim is None:
        return None
    names = free_names(claim.left, claim.right)
    if _OFFSET_SCALES.intersection(names):
        return _verify_temperatures(claim, parameters)
    if unit_name is None and all(len(name) == 1 for name in names):
        return _verify_single_letters(claim, parameters)
    return _verify_chain(claim, parameters)


def _join_amounts(compound: str) -> str:
    amounts = re.findall(_AMOUNT, compound)
    units = {amount.strip("0123456789. ") for amount in amounts}
    return f"({' + '.join(amounts)})" if len(units) == len(amounts) else compound


def _parse_claim(text: str, unit_name: str | None, claimed: object) -> Claim | None:
    """Return the parsed claim, or None if it is not about units."""
    try:
        if unit_name is not None and claimed is not None:
            text = f"{text} = {claimed if isinstance(claimed, str) else repr(claimed)}"
        claim = parse(text, in_units=True)
    except MathRefusalError:
        return None
    links = (claim, *claim.also)
    names = free_names(*(side for link in links for side in (link.left, link.right)))
    if not names or any(
        needs_resolving(side) for link in links for side in (link.left, link.right) if side is not None
    ):
        return None
    if _TONS.intersection(names) and any(_has_quantity(link) for link in links):
        raise MathRefusalError("decidable", "a ton has two sizes: write `tonne` for 1000 kg or `2000 lb`")
    all_units = all(name in _OFFSET_SCALES or unit_of(name) is not None for name in names)
    if not all_units or (unit_name is None and not any(_has_quantity(link) for link in links)):
        return None
    return claim if unit_name is None else _in_unit(claim, unit_name)


def _has_quantity(claim: Claim) -> bool:
    """Return True if a number stands directly before a name anywhere."""
    return any(
        part.kind == "product"
        and any(
            (a.args[0] if a.kind == "negative" else a).kind == "number" and _is_unit_factor(b)
            for a, b in zip(part.args, part.args[1:], strict=False)
        )
        for side in (claim.left, claim.right)
        if side is not None
        for part in iter_nodes(side)
    )


def _is_unit_factor(node: MathNode) -> bool:
    base = node.args[0] if node.kind == "power" else node
    return base.kind == "name" and base.name not in ("pi", "e", "E", "i", "I")


def _in_unit(claim: Claim, unit_name: str) -> Claim:
    """Add `unit_name` as the unit of a right side that is a plain number."""
    unit = parse(unit_name, in_units=True).left
    if any(unit_of(name) is None and name not in _OFFSET_SCALES for name in free_names(unit)):
        raise MathRefusalError("parameters_valid", f"unknown unit {clip(unit_name)}: write one such as `km`")
    if claim.right is None:
        return claim._replace(sign="in", right=unit, right_text=unit_name)
    if free_names(claim.right):
        return claim
    return claim._replace(right=multiply(claim.right, unit), right_text=f"{claim.right_text} {unit_name}")


def _verify_single_letters(claim: Claim, parameters: Mapping[str, Any]) -> Verdict | None:
    """Verify a claim whose names have one letter, which may be variables or units.

    Units decide only if their dimensions agree and the claim does not hold for variables.
    """
    if claim.right is None or _holds_for_variables(claim, parameters):
        return None
    try:
        verdict = _verify_chain(claim, parameters)
    except MathRefusalError:
        return None
    return verdict if "dimensions" not in verdict.result else None


def _holds_for_variables(claim: Claim, parameters: Mapping[str, Any]) -> bool:
    try:
        parse(claim.text)
        return verify_claim(claim, parameters.get("tolerance")).status is Status.VERIFIED
    except MathRefusalError:
        return False


def _verify_chain(claim: Claim, parameters: Mapping[str, Any]) -> Verdict:
    verdicts = [_compare_quantities(link, parameters) for link in (claim._replace(also=()), *claim.also)]
    return next((verdict for verdict in verdicts if verdict.status is not Status.VERIFIED), verdicts[-1])


def _compare_quantities(claim: Claim, parameters: Mapping[str, Any]) -> Verdict:
    left = _quantity(claim.left)
    if claim.right is None:
        first = claim.left.args[0] if claim.left.kind == "sum" else claim.left
        unit = Quantity(_unit_only(first), left.dimension)
        verdict = verify_claim(Claim(claim.text, multiply(left.node, reciprocal(unit.node)), claim.text))
        return replace(verdict, result={**verdict.result, "unit": _unit_text(claim.left_text)})
    right = _quantity(claim.right)
    if not _agree(left, right):
        details = {"dimensions": [_format_dimension(left.dimension), _format_dimension(right.dimension)]}
        return failed_verdict(
            f"{clip(claim.text)} compares {details['dimensions'][0]} with {details['dimensions'][1]}", details
        )
    scale = reciprocal(_unit_only(claim.right))
    sides = multiply(left.node, scale), multiply(right.node, scale)
    if claim.sign == "in":
        return verify_claim(Claim(f"{claim.left_text} in {claim.right_text}", sides[0], claim.left_text))
    plain = claim._replace(left=sides[0], right=_number_side(sides[1]))
    return _with_unit(claim, decide_claim(plain, parameters.get("tolerance")))


def _agree(left: Quantity, right: Quantity) -> bool:
    return left.dimension == right.dimension or number(0) in (left.node, right.node)


def _number_side(node: MathNode) -> MathNode:
    try:
        return number(evaluate_rational(node))
    except NotPlainArithmeticError:
        return node


def _with_unit(claim: Claim, verdict: Verdict) -> Verdict:
    """Add the unit to the repair if the right side is a number and a unit."""
    expected = verdict.result.get("expected")
    if expected is None or claim.right is None or claim.right.kind != "product" or claim.right.args[0].kind != "number":
        return replace(verdict, corrected=None)
    unit = _unit_text(claim.right_text)
    result = {**verdict.result, "expected": f"{expected} {unit}"}
    rational_value = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(expected))
    corrected = {"query": f"{claim.left_text} = {expected} {unit}"} if rational_value else None
    return replace(verdict, result=result, corrected=corrected)


def _unit_text(text: str) -> str:
    """Return the unit after the first number of a text."""
    match = re.search(
        r"[A-Za-z\u00b0](?:[A-Za-z0-9_^/*.()\u00b0]|-(?=[0-9]))*", re.sub(r"[0-9.]+[eE][+-]?[0-9]+", "", text)
    )
    return match[0] if match else ""


def _unit_only(node: MathNode) -> MathNode:
    """Return the unit of a side, in base units, with its numbers replaced by one."""
    if node.kind == "product":
        units = [arg for arg in node.args if free_names(arg)]
        return multiply(*(_quantity(arg).node for arg in units)) if units else number(1)
    return _quantity(node).node if node.kind in ("name", "power") and free_names(node) else number(1)


def _quantity(node: MathNode) -> Quantity:
    if node.kind == "name" and free_names(node):
        unit = unit_of(node.name)
        if unit is None:
            raise MathRefusalError("syntax_valid", f"unknown unit {clip(node.name)}")
        return Quantity(_factor(unit), unit.dimension)
    if not free_names(node):
        return Quantity(node, {})
    rules = {"sum": _sum, "product": _product, "power": _power, "inverse": _inverse, "negative": _negative}
    if node.kind not in rules:
        return _function_of(node)
    return rules[node.kind](node)


def _factor(unit: Unit) -> MathNode:
    factor = number(unit.factor)
    return multiply(factor, name_node("pi")) if unit.half_turns else factor


def _sum(node: MathNode) -> Quantity:
    parts = [_quantity(arg) for arg in node.args]
    for part in parts[1:]:
        if not _agree(parts[0], part):
            dimensions = f"{_format_dimension(parts[0].dimension)} and {_format_dimension(part.dimension)}"
            raise MathRefusalError("defined", f"{dimensions} cannot be added: use units of the same kind")
    return Quantity(add(*(part.node for part in parts)), parts[0].dimension)


def _product(node: MathNode) -> Quantity:
    parts = [_quantity(arg) for arg in node.args]
    total: dict[str, Fraction] = {}
    for part in parts:
        for base, exponent in part.dimension.items():
            total[base] = total.get(base, Fraction(0)) + exponent
    return Quantity(multiply(*(part.node for part in parts)), {base: count for base, count in total.items() if count})


def _raise_dimension(part: Quantity, exponent: Fraction) -> dict[str, Fraction]:
    return {base: count * exponent for base, count in part.dimension.items() if exponent}


def _power(node: MathNode) -> Quantity:
    base = _quantity(node.args[0])
    try:
        exponent = Fraction(evaluate_rational(node.args[1]))
    except NotPlainArithmeticError:
        raise MathRefusalError("defined", "a quantity is raised to a plain number") from None
    return Quantity(power(base.node, node.args[1]), _raise_dimension(base, exponent))


def _inverse(node: MathNode) -> Quantity:
    part = _quantity(node.args[0])
    return Quantity(reciprocal(part.node), _raise_dimension(part, Fraction(-1)))


def _negative(node: MathNode) -> Quantity:
    part = _quantity(node.args[0])
    return Quantity(negate(part.node), part.dimension)


def _function_of(node: MathNode) -> Quantity:
    parts = [_quantity(arg) for arg in node.args]
    if node.name == "sqrt":
        return Quantity(call("sqrt", parts[0].node), _raise_dimension(parts[0], Fraction(1, 2)))
    if node.name in ("abs", "min", "max") and all(_agree(parts[0], part) for part in parts):
        return Quantity(call(node.name, *(part.node for part in parts)), parts[0].dimension)
    if any(part.dimension for part in parts):
        raise MathRefusalError("defined", f"`{node.name or node.kind}` of a quantity with a unit is not defined")
    return Quantity(MathNode(node.kind, tuple(part.node for part in parts), node.name), {})


@cache
def _dimension_order() -> tuple[str, ...]:
    return ("length", "mass", "time", "current", "temperature", "substance", "luminosity", "information", "calendar")


def _format_dimension(dimension: Mapping[str, Fraction]) -> str:
    if not dimension:
        return "a plain number"
    bases = [base for base in _dimension_order() if base in dimension]
    return "*".join(base if dimension[base] == 1 else f"{base}^{dimension[base]}" for base in bases)


def _verify_temperatures(claim: Claim, parameters: Mapping[str, Any]) -> Verdict:
    """Compare two temperatures on scales with an offset; a sum of such temperatures has no agreed meaning."""
    if claim.right is None or claim.also:
        raise MathRefusalError("defined", "compare one temperature with another, such as `32 degF = 0 degC`")
    if claim.sign == "in":
        claim = claim._replace(right=multiply(number(1), claim.right))
    scale, shift = _TEMPERATURES[_scale_of(claim.right)]
    left = _to_kelvin(claim.left)
    # Both sides use the scale of the right side, so that a tolerance is in its degrees.
    converted = multiply(add(left, number(-shift)), reciprocal(number(scale)))
    if claim.sign == "in":
        return verify_claim(Claim(f"{claim.left_text} in {claim.right_text}", converted, claim.left_text))
    right = multiply(add(_to_kelvin(claim.right), number(-shift)), reciprocal(number(scale)))
    plain = claim._replace(left=converted, right=_number_side(right))
    return _with_unit(claim, decide_claim(plain, parameters.get("tolerance")))


def _scale_of(node: MathNode | None) -> str:
    names = free_names(node)
    if len(names) != 1 or names[0] not in _TEMPERATURES:
        raise MathRefusalError("defined", "a temperature is compared with a temperature")
    return names[0]


def _to_kelvin(node: MathNode | None) -> MathNode:
    scale = _scale_of(node)
    factor, shift = _TEMPERATURES[scale]
    sign = 1
    while node is not None and node.kind == "negative":
        node, sign = node.args[0], -sign
    plain = node is not None and node.kind == "product" and node.args[-1] == name_node(scale)
    if node is None or not plain or len(node.args) != 2 or free_names(node.args[0]):
        raise MathRefusalError("defined", "a sum or multiple of temperatures has two readings: compare single ones")
    return add(multiply(number(sign * factor), *node.args[:-1]), number(shift))

"""Operation `solve`: checks claimed solutions of equations, systems and inequalities."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.assumptions import Facts
from qwed.engines._math.claims import decide_claim, undecided
from qwed.engines._math.messages import FormattedValue, computed_verdict, failed_verdict, verified_verdict
from qwed.engines._math.notation import normalize_notation
from qwed.engines._math.parser import parse
from qwed.engines._math.prover import Sides, compare
from qwed.engines._math.roots import difference_of, polynomial_of, verify_roots
from qwed.engines._math.size_limits import Expr
from qwed.engines._math.smt import are_equivalent
from qwed.engines._math.syntax_tree import (
    CONSTANT_NAMES,
    SMALL_LIMITS,
    ZERO,
    Claim,
    MathNode,
    MathRefusalError,
    clip,
    free_names,
    substitute,
)
from qwed.engines._math.time_limit import run_within
from qwed.engines._math.to_sympy import SympyConverter, value_of
from qwed.model import Status, Verdict

_MAX_SOLUTIONS = 20
_SECONDS = 2
_NO_SOLUTION = re.compile(
    r"(?i)\s*(?:\{\s*\}|\[\s*\]|\(\s*\)|none|no (?:real )?solutions?|empty(?: set)?|\u2205|\\emptyset|)\s*"
)
_ALL_NUMBERS = re.compile(
    r"(?i)\s*(?:all (?:real )?(?:numbers|values|x)|all reals|R|any real number|every real number)\s*"
)
_MAX_BRACKETS = 10
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_SEPARATOR = re.compile(r",(?![^(\[{]*[)\]}])|;|\bor\b|\band\b|\n|\u2228|\u2227")


def solve(query: str, parameters: Mapping[str, Any], facts: Facts) -> Verdict:
    """Check that the claimed solutions are all there are; without a claim, return the solutions."""
    claims = _parse_equations(query)
    claimed = parameters.get("claimed_result")
    names = _unknowns(parameters, claims)
    if any(claim.sign not in ("", "=") for claim in claims):
        return _verify_inequality(query, claims, claimed, facts)
    if len(claims) > 1 or len(names) > 1:
        return _verify_system(query, [difference_of(claim) for claim in claims], names, claimed)
    zero = difference_of(claims[0])
    if claimed is None:
        return _find_solutions(query, zero, names[0])
    if isinstance(claimed, str) and _ALL_NUMBERS.fullmatch(claimed):
        return _verify_everywhere(query, claims[0], facts)
    return verify_roots(query, zero, names[0], _parse_values(claimed, names[0]), facts=facts)


def _parse_equations(query: str) -> list[Claim]:
    claims = [
        parse(normalize_notation(text), SMALL_LIMITS)
        for text in _SEPARATOR.split(_strip_brackets(query, "[{"))
        if text.strip()
    ]
    if not 0 < len(claims) <= 6:
        raise MathRefusalError("parameters_valid", "solve takes 1 to 6 equations parted by commas")
    return [link for claim in claims for link in (claim._replace(also=()), *claim.also)]


def _unknowns(parameters: Mapping[str, Any], claims: Sequence[Claim]) -> tuple[str, ...]:
    names = free_names(*(side for claim in claims for side in (claim.left, claim.right)))
    unknowns = parameters.get("variable", parameters.get("variables"))
    if unknowns is None and (len(names) == 1 or len(claims) > 1 or (len(names) == 2 and not claims[0].sign)):
        return names
    if unknowns is None and "x" in names and isinstance(parameters.get("claimed_result"), str):
        # The claim itself names the unknown: `x = -b/a`.
        unknowns = "x" if parameters["claimed_result"].lstrip().startswith("x =") else None
    chosen = tuple(unknowns) if isinstance(unknowns, list | tuple) else (unknowns,)
    if not all(isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", name) for name in chosen):
        raise MathRefusalError(
            "parameters_valid", f"say which `variable` is meant: one of {', '.join(names) or 'the names'}"
        )
    if CONSTANT_NAMES.intersection(chosen):
        raise MathRefusalError("parameters_valid", f"`{chosen[0]}` is a constant, not a variable")
    return chosen


def _verify_everywhere(query: str, claim: Claim, facts: Facts) -> Verdict:
    verdict = decide_claim(claim if claim.right is not None else claim._replace(sign="=", right=ZERO), None, facts)
    if verdict.status is Status.VERIFIED and verdict.result.get("holds_where", "is real").endswith("is real"):
        return verified_verdict(f"every number solves {clip(query)}", dict(verdict.result))
    if verdict.status is Status.VERIFIED:
        return failed_verdict(f"not every number solves {clip(query)}: only where {verdict.result['holds_where']}", {})
    return replace(verdict, corrected=None)


def _find_solutions(query: str, zero: MathNode, variable: str) -> Verdict:
    polynomial = polynomial_of(zero, variable)
    roots = run_within(_SECONDS, sp.roots, polynomial) if polynomial is not None else None
    if roots is None or polynomial is None or sum(roots.values()) != polynomial.degree():
        raise undecided(query)
    texts = sorted(str(root) for root in roots)
    verdict = computed_verdict(query, FormattedValue(", ".join(texts)))
    return replace(verdict, message=f"{clip(query)} is solved by {', '.join(texts)}")


def _parse_values(claimed: object, variable: str) -> list[MathNode]:
    """Parse the claimed solutions of one unknown."""
    if isinstance(claimed, Mapping):
        claimed = claimed.get(variable, [])
    if isinstance(claimed, list | tuple | set | frozenset):
        parts = [part if isinstance(part, str) else _format_number(part) for part in claimed]
    elif isinstance(claimed, str):
        parts = _split_list(claimed)
    else:
        parts = [_format_number(claimed)]
    if len(parts) > _MAX_SOLUTIONS:
        raise MathRefusalError(
            "parameters_valid", f"`claimed_result` lists at most {_MAX_SOLUTIONS} solutions such as `2, -2`"
        )
    return [_parse_value(part.replace("\u00b1", sign), variable) for part in parts for sign in _signs_in(part)]


def _without_braces(text: str) -> str:
    """Replace the braces that LaTeX writes around a set with brackets; its other braces group."""
    return re.sub(r"(?:\\left\s*)?\\\{", "[", re.sub(r"(?:\\right\s*)?\\\}", "]", text))


def _strip_brackets(text: str, openers: str) -> str:
    """Return the text without the brackets around all of it, and without an unmatched one at either end."""
    text = text.strip()
    for _ in range(_MAX_BRACKETS):
        if not text:
            break
        first, last = text[0] in openers, text[-1] in _CLOSERS and _CLOSERS[text[-1]] in openers
        depth = sum((mark in openers) - (_CLOSERS.get(mark, " ") in openers) for mark in text)
        if first and (depth > 0 or (last and _closes_at_end(text, openers))):
            text = text[1:] if depth > 0 else text[1:-1]
        elif last and depth < 0:
            text = text[:-1]
        else:
            break
        text = text.strip()
    return text


def _closes_at_end(text: str, openers: str) -> bool:
    """Return True if the bracket at the start is closed by the one at the end."""
    depth = 0
    for index, mark in enumerate(text):
        depth += (mark in openers) - (_CLOSERS.get(mark, " ") in openers)
        if depth == 0:
            return index == len(text) - 1
    return False


def _signs_in(part: str) -> tuple[str, ...]:
    """Return both signs if the text contains a plus-minus sign, as in `±2`."""
    if part.count("\u00b1") > 1:
        raise MathRefusalError("unambiguous", f"{clip(part)} has several readings: write one `\u00b1` in each solution")
    return ("+", "-") if "\u00b1" in part else ("",)


def _split_list(claimed: str) -> list[str]:
    if _NO_SOLUTION.fullmatch(claimed):
        return []
    if re.fullmatch(r"(?:[a-z]\s*=)?\s*[1-9][0-9]{0,2},[0-9]{3}", claimed):
        raise MathRefusalError(
            "unambiguous", f"{clip(claimed)} has two readings: write 1000, or a space after the comma"
        )
    text = _without_braces(claimed.strip())
    text = re.sub(r"\+/-|\\pm(?![A-Za-z])", "\u00b1", text)
    text = re.sub(r"^[A-Za-z]\w*\s*(?:in|\u2208|\\in|=)\s*(?=[\[{])", "", text)
    return [part for part in _SEPARATOR.split(_strip_brackets(text, "[{")) if part.strip()]


def _format_number(part: object) -> str:
    if isinstance(part, bool) or not isinstance(part, int | float):
        raise MathRefusalError("parameters_valid", "`claimed_result` must be text, a number or a list of them")
    return repr(part)


def _parse_value(text: str, variable: str) -> MathNode:
    claim = parse(normalize_notation(text), SMALL_LIMITS)
    named = claim.sign == "=" and claim.left == MathNode("name", name=variable) and not claim.also
    if claim.sign and not named:
        raise MathRefusalError("parameters_valid", f"{clip(text)} is not a solution: write a number")
    return claim.right if named and claim.right is not None else claim.left


def _verify_inequality(query: str, claims: list[Claim], claimed: object, facts: Facts) -> Verdict:
    if claimed is None:
        raise MathRefusalError("decidable", "an inequality is checked, not solved: give `claimed_result`")
    if not isinstance(claimed, str):
        raise MathRefusalError("parameters_valid", "the solutions of an inequality are written such as `-2 < x < 2`")
    same = are_equivalent([claims], _parse_alternatives(claimed), facts)
    if same is None:
        raise undecided(query)
    if same:
        return verified_verdict(
            f"{clip(claimed)} are all solutions of {clip(query)}", {"holds_where": "the variables are real"}
        )
    return failed_verdict(f"{clip(claimed)} and {clip(query)} do not have the same solutions", {})


def _parse_alternatives(claimed: str) -> list[list[Claim]]:
    """Parse `x < -2 or x > 2`; each alternative may be a chain or joined by `and`."""
    if _NO_SOLUTION.fullmatch(claimed):
        return []
    if _ALL_NUMBERS.fullmatch(claimed):
        return [[Claim("0 = 0", ZERO, "0", "=", ZERO, "0")]]
    groups = []
    for text in re.split(r"\bor\b|\u2228|\u222a", claimed):
        group: list[Claim] = []
        for part in re.split(r"\band\b|,|\u2227", text):
            claim = parse(normalize_notation(part), SMALL_LIMITS)
            if not claim.sign:
                raise MathRefusalError("parameters_valid", f"{clip(part)} is not a comparison: write `-2 < x < 2`")
            group += [claim._replace(also=()), *claim.also]
        groups.append(group)
    return groups


def _verify_system(query: str, zeros: list[MathNode], names: tuple[str, ...], claimed: object) -> Verdict:
    points = _parse_points(claimed, names) if claimed is not None else None
    solutions = run_within(_SECONDS, _system_solutions, zeros, names)
    if points is None:
        if solutions is None:
            raise undecided(query)
        text = "; ".join(", ".join(f"{n} = {v}" for n, v in zip(names, point, strict=True)) for point in solutions)
        return computed_verdict(query, FormattedValue(text or "no solution"))
    for point in points:
        if not _solves(zeros, names, point, query):
            at = ", ".join(f"{name} = {value_of(value)}" for name, value in zip(names, point, strict=True))
            return failed_verdict(f"{at} does not solve {clip(query)}", {})
    if solutions is None:
        raise undecided(query)
    real = [point for point in solutions if all(value.is_real for value in point)]
    count = len(_distinct([[value_of(value) for value in point] for point in points]))
    if count == len(solutions) or (count == len(real) and all(value_of(v).is_real for point in points for v in point)):
        conditions = {} if count == len(solutions) else {"holds_where": "the variables are real"}
        return verified_verdict(f"these are all solutions of {clip(query)}", conditions)
    return failed_verdict(f"{clip(query)} has {len(real)} real solutions, not {count}", {})


def _system_solutions(zeros: list[MathNode], names: tuple[str, ...]) -> list[tuple[Expr, ...]] | None:
    """Return all solutions, or None if there are infinitely many or they were not found."""
    unknowns = [sp.Symbol(name) for name in names]
    try:
        expressions = [SympyConverter(dict(zip(names, unknowns, strict=True))).convert(zero) for zero in zeros]
        polynomials = [sp.Poly(expression, *unknowns, domain=sp.QQ) for expression in expressions]
        basis = sp.groebner(polynomials, *unknowns, order="grevlex")
        if basis.exprs == [1]:
            return []
        if not basis.is_zero_dimensional:
            return None
        solutions = sp.solve_poly_system(polynomials, *unknowns) or ()
        return [tuple(point) for point in _distinct([list(point) for point in solutions])]
    except (BasePolynomialError, NotImplementedError, KeyError):
        return None


def _solves(zeros: list[MathNode], names: tuple[str, ...], point: list[MathNode], query: str) -> bool:
    for zero in zeros:
        at = zero
        for name, value in zip(names, point, strict=True):
            at = substitute(at, name, value)
        converter = SympyConverter({})
        holds = compare("=", Sides(converter.convert(at), sp.S.Zero, at, converter))
        if holds is None:
            raise undecided(query)
        if not holds:
            return False
    return True


def _distinct(points: list[list[Expr]]) -> list[list[Expr]]:
    unique: list[list[Expr]] = []
    for point in points:
        if not any(all(sp.simplify(a - b) == 0 for a, b in zip(point, other, strict=True)) for other in unique):
            unique.append(point)
    return unique


def _parse_points(claimed: object, names: tuple[str, ...]) -> list[list[MathNode]]:
    """Parse the claimed solutions of a system, each a value for every unknown in order."""
    if isinstance(claimed, Mapping):
        if set(claimed) != set(names):
            raise MathRefusalError("parameters_valid", f"`claimed_result` needs a value for each of {', '.join(names)}")
        return [[_parse_value(_as_text(claimed[name]), name) for name in names]]
    if isinstance(claimed, list | tuple):
        if claimed and not any(isinstance(part, list | tuple | Mapping) for part in claimed):
            return [_parse_point([_as_text(part) for part in claimed], names)]
        return [point for part in claimed for point in _parse_points(part, names)]
    if not isinstance(claimed, str):
        raise MathRefusalError("parameters_valid", "the solutions of a system are written such as `x = 2, y = 1`")
    if _NO_SOLUTION.fullmatch(claimed):
        return []
    points = []
    for text in re.split(r"\bor\b|;|\)\s*,\s*(?=\()", _without_braces(claimed)):
        inside = re.sub(r"^\s*\(?\s*[A-Za-z, ]+\)\s*=", "", text)
        points.append(
            _parse_point(
                [part for part in re.split(r",|\band\b", _strip_brackets(inside, "([{")) if part.strip()], names
            )
        )
    return points


def _as_text(part: object) -> str:
    return part if isinstance(part, str) else _format_number(part)


def _parse_point(parts: list[str], names: tuple[str, ...]) -> list[MathNode]:
    if len(parts) != len(names):
        raise MathRefusalError("parameters_valid", f"a solution has a value for each of {', '.join(names)}")
    values: dict[str, MathNode] = {}
    for index, part in enumerate(parts):
        claim = parse(normalize_notation(part), SMALL_LIMITS)
        name = claim.left.name if claim.sign == "=" and claim.left.kind == "name" else names[index]
        values[name] = _parse_value(part, name)
    if set(values) != set(names):
        raise MathRefusalError("parameters_valid", f"a solution has a value for each of {', '.join(names)}")
    return [values[name] for name in names]

"""The operation solve: equations, systems and inequalities against the solutions somebody claims."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.answers import Shown, computed, failed, held
from qwed.engines._math.claims import settle, undecided
from qwed.engines._math.clock import within
from qwed.engines._math.facts import Facts
from qwed.engines._math.identity import Sides, compare
from qwed.engines._math.notation import plain
from qwed.engines._math.roots import judge_roots, polynomial_of, zero_of
from qwed.engines._math.size import Expr
from qwed.engines._math.smt import are_equivalent
from qwed.engines._math.symbolic import Reading, value_of
from qwed.engines._math.syntax import parse
from qwed.engines._math.tree import CONSTANT_NAMES, SMALL, ZERO, Claim, Node, Refused, clip, names_in, replaced
from qwed.words import Status, Verdict

_MAX_SOLUTIONS = 20
_SECONDS = 2
_NONE = re.compile(
    r"(?i)\s*(?:\{\s*\}|\[\s*\]|\(\s*\)|none|no (?:real )?solutions?|empty(?: set)?|\u2205|\\emptyset|)\s*"
)
_ALL = re.compile(r"(?i)\s*(?:all (?:real )?(?:numbers|values|x)|all reals|R|any real number|every real number)\s*")
_MAX_BRACKETS = 10
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_OUTSIDE = re.compile(r",(?![^(\[{]*[)\]}])|;|\bor\b|\band\b|\n|\u2228|\u2227")


def solve(query: str, parameters: Mapping[str, Any], facts: Facts) -> Verdict:
    """Whether the claimed solutions are all there are; without a claim, the solutions."""
    claims = _equations(query)
    claimed = parameters.get("claimed_result")
    names = _unknowns(parameters, claims)
    if any(claim.sign not in ("", "=") for claim in claims):
        return _inequality(query, claims, claimed, facts)
    if len(claims) > 1 or len(names) > 1:
        return _system(query, [zero_of(claim) for claim in claims], names, claimed)
    zero = zero_of(claims[0])
    if claimed is None:
        return _solutions(query, zero, names[0])
    if isinstance(claimed, str) and _ALL.fullmatch(claimed):
        return _everywhere(query, claims[0], facts)
    return judge_roots(query, zero, names[0], _values(claimed, names[0]), facts=facts)


def _equations(query: str) -> list[Claim]:
    claims = [parse(plain(text), SMALL) for text in _OUTSIDE.split(_bare(query, "[{")) if text.strip()]
    if not 0 < len(claims) <= 6:
        raise Refused("parameters_valid", "solve takes 1 to 6 equations parted by commas")
    return [link for claim in claims for link in (claim._replace(also=()), *claim.also)]


def _unknowns(parameters: Mapping[str, Any], claims: Sequence[Claim]) -> tuple[str, ...]:
    names = names_in(*(side for claim in claims for side in (claim.left, claim.right)))
    given = parameters.get("variable", parameters.get("variables"))
    if given is None and (len(names) == 1 or len(claims) > 1 or (len(names) == 2 and not claims[0].sign)):
        return names
    if given is None and "x" in names and isinstance(parameters.get("claimed_result"), str):
        # The claim itself says which unknown it is about: `x = -b/a`.
        given = "x" if parameters["claimed_result"].lstrip().startswith("x =") else None
    chosen = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not all(isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", name) for name in chosen):
        raise Refused("parameters_valid", f"say which `variable` is meant: one of {', '.join(names) or 'the names'}")
    if CONSTANT_NAMES.intersection(chosen):
        raise Refused("parameters_valid", f"`{chosen[0]}` is a constant, not a variable")
    return chosen


def _everywhere(query: str, claim: Claim, facts: Facts) -> Verdict:
    verdict = settle(claim if claim.right is not None else claim._replace(sign="=", right=ZERO), None, facts)
    if verdict.status is Status.VERIFIED and verdict.result.get("holds_where", "is real").endswith("is real"):
        return held(f"every number solves {clip(query)}", dict(verdict.result))
    if verdict.status is Status.VERIFIED:
        return failed(f"not every number solves {clip(query)}: only where {verdict.result['holds_where']}", {})
    return replace(verdict, corrected=None)


def _solutions(query: str, zero: Node, variable: str) -> Verdict:
    polynomial = polynomial_of(zero, variable)
    roots = within(_SECONDS, sp.roots, polynomial) if polynomial is not None else None
    if roots is None or polynomial is None or sum(roots.values()) != polynomial.degree():
        raise undecided(query)
    texts = sorted(str(root) for root in roots)
    verdict = computed(query, Shown(", ".join(texts)))
    return replace(verdict, message=f"{clip(query)} is solved by {', '.join(texts)}")


def _values(claimed: object, variable: str) -> list[Node]:
    """The claimed solutions of one unknown."""
    if isinstance(claimed, Mapping):
        claimed = claimed.get(variable, [])
    if isinstance(claimed, list | tuple | set | frozenset):
        parts = [part if isinstance(part, str) else _written(part) for part in claimed]
    elif isinstance(claimed, str):
        parts = _listed(claimed)
    else:
        parts = [_written(claimed)]
    if len(parts) > _MAX_SOLUTIONS:
        raise Refused("parameters_valid", f"`claimed_result` lists at most {_MAX_SOLUTIONS} solutions such as `2, -2`")
    return [_value(part.replace("\u00b1", sign), variable) for part in parts for sign in _signs_in(part)]


def _without_braces(text: str) -> str:
    """The braces that LaTeX writes around a set, as brackets: its other braces group."""
    return re.sub(r"(?:\\left\s*)?\\\{", "[", re.sub(r"(?:\\right\s*)?\\\}", "]", text))


def _bare(text: str, openers: str) -> str:
    """The text without the brackets around all of it, and without one that lost its partner."""
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
    """Whether the bracket at the start is closed by the one at the end."""
    depth = 0
    for index, mark in enumerate(text):
        depth += (mark in openers) - (_CLOSERS.get(mark, " ") in openers)
        if depth == 0:
            return index == len(text) - 1
    return False


def _signs_in(part: str) -> tuple[str, ...]:
    """Both signs where the text has one of two, as in `\u00b12`."""
    if part.count("\u00b1") > 1:
        raise Refused("unambiguous", f"{clip(part)} has several readings: write one `\u00b1` in each solution")
    return ("+", "-") if "\u00b1" in part else ("",)


def _listed(claimed: str) -> list[str]:
    if _NONE.fullmatch(claimed):
        return []
    if re.fullmatch(r"(?:[a-z]\s*=)?\s*[1-9][0-9]{0,2},[0-9]{3}", claimed):
        raise Refused("unambiguous", f"{clip(claimed)} has two readings: write 1000, or a space after the comma")
    text = _without_braces(claimed.strip())
    text = re.sub(r"\+/-|\\pm(?![A-Za-z])", "\u00b1", text)
    text = re.sub(r"^[A-Za-z]\w*\s*(?:in|\u2208|\\in|=)\s*(?=[\[{])", "", text)
    return [part for part in _OUTSIDE.split(_bare(text, "[{")) if part.strip()]


def _written(part: object) -> str:
    if isinstance(part, bool) or not isinstance(part, int | float):
        raise Refused("parameters_valid", "`claimed_result` must be text, a number or a list of them")
    return repr(part)


def _value(text: str, variable: str) -> Node:
    claim = parse(plain(text), SMALL)
    named = claim.sign == "=" and claim.left == Node("name", name=variable) and not claim.also
    if claim.sign and not named:
        raise Refused("parameters_valid", f"{clip(text)} is not a solution: write a number")
    return claim.right if named and claim.right is not None else claim.left


def _inequality(query: str, claims: list[Claim], claimed: object, facts: Facts) -> Verdict:
    if claimed is None:
        raise Refused("decidable", "an inequality is checked, not solved: give `claimed_result`")
    if not isinstance(claimed, str):
        raise Refused("parameters_valid", "the solutions of an inequality are written such as `-2 < x < 2`")
    same = are_equivalent([claims], _alternatives(claimed), facts)
    if same is None:
        raise undecided(query)
    if same:
        return held(f"{clip(claimed)} are all solutions of {clip(query)}", {"holds_where": "the variables are real"})
    return failed(f"{clip(claimed)} and {clip(query)} do not have the same solutions", {})


def _alternatives(claimed: str) -> list[list[Claim]]:
    """`x < -2 or x > 2`, each side of which may be a chain or joined by `and`."""
    if _NONE.fullmatch(claimed):
        return []
    if _ALL.fullmatch(claimed):
        return [[Claim("0 = 0", ZERO, "0", "=", ZERO, "0")]]
    groups = []
    for text in re.split(r"\bor\b|\u2228|\u222a", claimed):
        group: list[Claim] = []
        for part in re.split(r"\band\b|,|\u2227", text):
            claim = parse(plain(part), SMALL)
            if not claim.sign:
                raise Refused("parameters_valid", f"{clip(part)} is no comparison: write `-2 < x < 2`")
            group += [claim._replace(also=()), *claim.also]
        groups.append(group)
    return groups


def _system(query: str, zeros: list[Node], names: tuple[str, ...], claimed: object) -> Verdict:
    points = _points(claimed, names) if claimed is not None else None
    every = within(_SECONDS, _system_solutions, zeros, names)
    if points is None:
        if every is None:
            raise undecided(query)
        shown = "; ".join(", ".join(f"{n} = {v}" for n, v in zip(names, point, strict=True)) for point in every)
        return computed(query, Shown(shown or "no solution"))
    for point in points:
        if not _solves(zeros, names, point, query):
            at = ", ".join(f"{name} = {value_of(value)}" for name, value in zip(names, point, strict=True))
            return failed(f"{at} does not solve {clip(query)}", {})
    if every is None:
        raise undecided(query)
    real = [point for point in every if all(value.is_real for value in point)]
    count = len(_distinct([[value_of(value) for value in point] for point in points]))
    if count == len(every) or (count == len(real) and all(value_of(v).is_real for point in points for v in point)):
        where = {} if count == len(every) else {"holds_where": "the variables are real"}
        return held(f"these are all solutions of {clip(query)}", where)
    return failed(f"{clip(query)} has {len(real)} real solutions, not {count}", {})


def _system_solutions(zeros: list[Node], names: tuple[str, ...]) -> list[tuple[Expr, ...]] | None:
    """Every solution, of which there must be finitely many; None where that was not found out."""
    unknowns = [sp.Symbol(name) for name in names]
    try:
        expressions = [Reading(dict(zip(names, unknowns, strict=True))).of(zero) for zero in zeros]
        polynomials = [sp.Poly(expression, *unknowns, domain=sp.QQ) for expression in expressions]
        basis = sp.groebner(polynomials, *unknowns, order="grevlex")
        if basis.exprs == [1]:
            return []
        if not basis.is_zero_dimensional:
            return None
        found = sp.solve_poly_system(polynomials, *unknowns) or ()
        return [tuple(point) for point in _distinct([list(point) for point in found])]
    except (BasePolynomialError, NotImplementedError, KeyError):
        return None


def _solves(zeros: list[Node], names: tuple[str, ...], point: list[Node], query: str) -> bool:
    for zero in zeros:
        at = zero
        for name, value in zip(names, point, strict=True):
            at = replaced(at, name, value)
        reading = Reading({})
        holds = compare("=", Sides(reading.of(at), sp.S.Zero, at, reading))
        if holds is None:
            raise undecided(query)
        if not holds:
            return False
    return True


def _distinct(points: list[list[Expr]]) -> list[list[Expr]]:
    found: list[list[Expr]] = []
    for point in points:
        if not any(all(sp.simplify(a - b) == 0 for a, b in zip(point, other, strict=True)) for other in found):
            found.append(point)
    return found


def _points(claimed: object, names: tuple[str, ...]) -> list[list[Node]]:
    """The claimed solutions of a system, each a value for every unknown in order."""
    if isinstance(claimed, Mapping):
        if set(claimed) != set(names):
            raise Refused("parameters_valid", f"`claimed_result` needs a value for each of {', '.join(names)}")
        return [[_value(_text(claimed[name]), name) for name in names]]
    if isinstance(claimed, list | tuple):
        if claimed and not any(isinstance(part, list | tuple | Mapping) for part in claimed):
            return [_in_order([_text(part) for part in claimed], names)]
        return [point for part in claimed for point in _points(part, names)]
    if not isinstance(claimed, str):
        raise Refused("parameters_valid", "the solutions of a system are written such as `x = 2, y = 1`")
    if _NONE.fullmatch(claimed):
        return []
    points = []
    for text in re.split(r"\bor\b|;|\)\s*,\s*(?=\()", _without_braces(claimed)):
        inside = re.sub(r"^\s*\(?\s*[A-Za-z, ]+\)\s*=", "", text)
        points.append(_in_order([part for part in re.split(r",|\band\b", _bare(inside, "([{")) if part.strip()], names))
    return points


def _text(part: object) -> str:
    return part if isinstance(part, str) else _written(part)


def _in_order(parts: list[str], names: tuple[str, ...]) -> list[Node]:
    if len(parts) != len(names):
        raise Refused("parameters_valid", f"a solution has a value for each of {', '.join(names)}")
    found: dict[str, Node] = {}
    for index, part in enumerate(parts):
        claim = parse(plain(part), SMALL)
        name = claim.left.name if claim.sign == "=" and claim.left.kind == "name" else names[index]
        found[name] = _value(part, name)
    if set(found) != set(names):
        raise Refused("parameters_valid", f"a solution has a value for each of {', '.join(names)}")
    return [found[name] for name in names]

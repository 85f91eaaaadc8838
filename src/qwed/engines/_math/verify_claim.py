"""Verification of a whole claim: link by link, with calls resolved and matrices compared entry by entry."""

from dataclasses import replace

from qwed.engines._math.assumptions import NO_FACTS, Facts
from qwed.engines._math.calculus import derivative
from qwed.engines._math.claims import compute, decide_claim, undecided
from qwed.engines._math.matrix import Matrix, Spectrum, Value, characteristic_polynomial
from qwed.engines._math.messages import FormattedValue, computed_verdict, failed_verdict, verified_verdict
from qwed.engines._math.resolve import Resolver, has_antiderivative, needs_resolving
from qwed.engines._math.roots import verify_roots
from qwed.engines._math.sums import induction_claims, induction_facts, with_integer_bounds
from qwed.engines._math.syntax_tree import (
    INFINITY,
    ZERO,
    Claim,
    MathNode,
    MathRefusalError,
    add,
    clip,
    free_names,
    iter_nodes,
    multiply,
    negate,
)
from qwed.engines._math.to_sympy import format_value, value_of
from qwed.engines._math.tolerance import Tolerance
from qwed.model import Status, Verdict


def verify_claim(claim: Claim, tolerance: Tolerance | None = None, facts: Facts = NO_FACTS) -> Verdict:
    """Return the verdict on a claim or a chain of them; a bare expression is computed."""
    if claim.right is None:
        return evaluate(claim, facts)
    if not claim.also:
        return _verify_link(claim, tolerance, facts)
    return _verify_chain(claim, tolerance, facts)


def _verify_chain(claim: Claim, tolerance: Tolerance | None, facts: Facts) -> Verdict:
    """Verify all links; one that fails decides, regardless of the others."""
    verdicts, refusal = [], None
    for link in (claim._replace(also=()), *claim.also):
        try:
            verdicts.append(_verify_link(link, tolerance, facts))
        except MathRefusalError as refused:
            refusal = refusal or refused
    for verdict in verdicts:
        if verdict.status is not Status.VERIFIED:
            return replace(verdict, corrected=None)
    if refusal is not None:
        raise refusal
    conditions = dict.fromkeys(
        str(verdict.result["holds_where"]) for verdict in verdicts if "holds_where" in verdict.result
    )
    extra = {"holds_where": " and ".join(conditions)} if conditions else {}
    count = len(verdicts)
    return verified_verdict(f"all {count} comparisons hold", extra, verdicts[-1].checks_passed[-1])


def evaluate(claim: Claim, facts: Facts = NO_FACTS) -> Verdict:
    """Return the value of a bare expression."""
    if not needs_resolving(claim.left):
        return compute(claim, facts)
    value = Resolver(facts).resolve(claim.left)
    if isinstance(value, Spectrum):
        raise MathRefusalError(
            "decidable", "eigenvalues are checked, not computed: claim them, as in `eigenvalues(A) = {1, 2}`"
        )
    if isinstance(value, Matrix):
        return computed_verdict(claim.text, FormattedValue(_format_matrix(value)))
    if infinite := _infinity_sign(value):
        return computed_verdict(claim.text, FormattedValue("oo" if infinite > 0 else "-oo"))
    return compute(claim._replace(left=value), facts)


def _format_matrix(table: Matrix) -> str:
    rows = [[format_value(value_of(entry)).exact for entry in row] for row in table.rows]
    if table.vector:
        return f"[{', '.join(row[0] for row in rows)}]"
    return f"[{', '.join('[' + ', '.join(row) + ']' for row in rows)}]"


def _verify_link(claim: Claim, tolerance: Tolerance | None, facts: Facts) -> Verdict:
    if claim.right is None:
        raise undecided(claim.text)
    if not (needs_resolving(claim.left) or needs_resolving(claim.right)):
        _require_plain(claim)
        return decide_claim(claim, tolerance, facts)
    if has_antiderivative(claim.left) or has_antiderivative(claim.right):
        claim = _differentiate_sides(claim)
    try:
        return _verify_resolved(claim, tolerance, facts)
    except MathRefusalError as refusal:
        if refusal.check != "decidable":
            raise
        return _prove_by_induction(claim, facts, refusal)


def _require_plain(claim: Claim) -> None:
    for side in (claim.left, claim.right):
        if side is not None and any(part.kind in ("tuple", "set") for part in iter_nodes(side)):
            raise MathRefusalError("decidable", "sets and tuples are compared only as solutions and eigenvalues")


def _differentiate_sides(claim: Claim) -> Claim:
    """Replace both sides with their derivatives, which is what an integral without bounds claims."""
    if claim.right is None or claim.sign != "=":
        raise MathRefusalError(
            "defined", "an integral without bounds is only known up to a constant: claim an equality"
        )
    variables = {
        part.args[1].name
        for side in (claim.left, claim.right)
        for part in iter_nodes(side)
        if part.kind == "call" and part.name == "integrate" and len(part.args) == 2
    }
    if len(variables) != 1:
        raise MathRefusalError(
            "decidable", "several integrals without bounds by several variables are not decided here"
        )
    (variable,) = variables
    sides = []
    for side in (claim.left, claim.right):
        derived = derivative(side, variable)
        if has_antiderivative(derived):
            raise MathRefusalError(
                "decidable", "an integral without bounds is decided only where it stands alone in a sum"
            )
        sides.append(derived if has_antiderivative(side) else add(derived, multiply(ZERO, side)))
    return claim._replace(left=sides[0], right=sides[1])


def _verify_resolved(claim: Claim, tolerance: Tolerance | None, facts: Facts) -> Verdict:
    resolver = Resolver(facts)
    left = resolver.resolve(claim.left)
    right = resolver.resolve(claim.right if claim.right is not None else claim.left)
    if isinstance(left, MathNode) and isinstance(right, MathNode):
        if _infinity_sign(left) or _infinity_sign(right):
            return _verify_infinite(claim, left, right)
        plain = claim._replace(left=left, right=right)
        _require_plain(plain)
        return decide_claim(plain, tolerance, resolver.facts)
    if claim.sign not in ("=", "!="):
        raise MathRefusalError("defined", "matrices have no order")
    if isinstance(left, Spectrum) or isinstance(right, Spectrum):
        return _verify_eigenvalues(claim, left, right)
    return _verify_entries(claim, left, right, tolerance, resolver.facts)


def _infinity_sign(value: Value) -> int:
    """Return 1 or -1 for plus or minus infinity, else 0."""
    while isinstance(value, MathNode) and value.kind == "sum" and len(value.args) == 1:
        value = value.args[0]
    return 1 if value == INFINITY else -1 if value == negate(INFINITY) else 0


def _verify_infinite(claim: Claim, left: MathNode, right: MathNode) -> Verdict:
    if claim.sign != "=":
        raise MathRefusalError("defined", "infinity is not a number: claim an equality")
    same = _infinity_sign(left) == _infinity_sign(right)
    left_kind = "infinite" if _infinity_sign(left) else "finite"
    if same:
        return verified_verdict(f"{clip(claim.text)} holds: it grows beyond all bounds", {})
    return failed_verdict(
        f"{clip(claim.text)} does not hold: the left side is {left_kind}, the right side is not the same", {}
    )


def _verify_entries(claim: Claim, left: Value, right: Value, tolerance: Tolerance | None, facts: Facts) -> Verdict:
    if not (isinstance(left, Matrix) and isinstance(right, Matrix)):
        return failed_verdict(f"{clip(claim.text)} does not hold: one side is a matrix, the other a number", {})
    if left.size != right.size:
        return failed_verdict(f"{clip(claim.text)} does not hold: the sizes differ", {"expected_size": list(left.size)})
    conditions: dict[str, None] = {}
    for row, pair in enumerate(zip(left.rows, right.rows, strict=True), 1):
        for column, (one, other) in enumerate(zip(*pair, strict=True), 1):
            text = f"entry {row},{column} of {claim.text}"
            verdict = decide_claim(Claim(text, one, f"entry {row},{column}", "=", other, "it"), tolerance, facts)
            if verdict.status is not Status.VERIFIED:
                return _differing_entry_verdict(claim, verdict)
            conditions |= dict.fromkeys([str(verdict.result["holds_where"])] if "holds_where" in verdict.result else [])
    extra = {"holds_where": " and ".join(conditions)} if conditions else {}
    if claim.sign == "!=":
        return failed_verdict(f"both sides of {clip(claim.text)} are the same", extra)
    return verified_verdict(f"{clip(claim.text)} holds: every entry is the same", extra)


def _differing_entry_verdict(claim: Claim, verdict: Verdict) -> Verdict:
    if claim.sign == "!=" and not any(free_names(side) for side in (claim.left, claim.right)):
        return verified_verdict(f"{clip(claim.text)} holds: {verdict.message}", {})
    if claim.sign == "!=":
        raise undecided(claim.text)
    return replace(verdict, corrected=None)


def _verify_eigenvalues(claim: Claim, left: Value, right: Value) -> Verdict:
    spectrum, side = (left, claim.right) if isinstance(left, Spectrum) else (right, claim.left)
    if not isinstance(spectrum, Spectrum) or side is None or claim.sign != "=":
        raise undecided(claim.text)
    values = side.args if side.kind in ("list", "set", "tuple") else (side,)
    return verify_roots(claim.text, characteristic_polynomial(spectrum.matrix, "_t"), "_t", values, multiple=True)


def _prove_by_induction(claim: Claim, facts: Facts, refusal: MathRefusalError) -> Verdict:
    """Prove a claimed closed form of a sum without a known one."""
    for node, other in ((claim.left, claim.right), (claim.right, claim.left)):
        if node is None or other is None or claim.sign != "=" or needs_resolving(other):
            continue
        if node.kind == "call" and node.name in ("sum", "product"):
            claims = induction_claims(node, other, claim.text)
            if claims is not None:
                return _induction_verdict(node, claims, facts)
    raise refusal


def _induction_verdict(node: MathNode, claims: tuple[Claim, Claim], facts: Facts) -> Verdict:
    verdicts = [decide_claim(claim, None, induction_facts(facts, node)) for claim in claims]
    if all(verdict.status is Status.VERIFIED for verdict in verdicts):
        where = with_integer_bounds(facts, node).text
        return verified_verdict(f"{clip(claims[0].text)} holds where {where}", {"holds_where": where})
    reason = "it is wrong at the first index, or does not grow by the term that is added"
    return failed_verdict(f"{clip(claims[0].text)} does not hold: {reason}", {})

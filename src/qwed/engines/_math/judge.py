"""The verdict on a whole claim: its links one by one, its forms resolved, matrices entry by entry."""

from dataclasses import replace

from qwed.engines._math.answers import Shown, computed, failed, held
from qwed.engines._math.calculus import derivative
from qwed.engines._math.claims import compute, settle, undecided
from qwed.engines._math.facts import NOTHING, Facts
from qwed.engines._math.matrix import Spectrum, Table, Value, characteristic
from qwed.engines._math.resolve import Resolver, has_antiderivative, has_forms
from qwed.engines._math.roots import judge_roots
from qwed.engines._math.sums import after_first, induction, with_whole
from qwed.engines._math.symbolic import shown, value_of
from qwed.engines._math.tree import INFINITY, ZERO, Claim, Node, Refused, added, clip, names_in, negated, times, walk
from qwed.words import Status, Verdict


def judge(claim: Claim, tolerance: object = None, facts: Facts = NOTHING) -> Verdict:
    """The verdict on a claim or a chain of them; a bare expression is computed."""
    if claim.right is None:
        return evaluated(claim, facts)
    if not claim.also:
        return _link(claim, tolerance, facts)
    return _chain(claim, tolerance, facts)


def _chain(claim: Claim, tolerance: object, facts: Facts) -> Verdict:
    """All links must hold; one that fails decides, whatever the others are."""
    verdicts, refusal = [], None
    for link in (claim._replace(also=()), *claim.also):
        try:
            verdicts.append(_link(link, tolerance, facts))
        except Refused as refused:
            refusal = refusal or refused
    for verdict in verdicts:
        if verdict.status is not Status.VERIFIED:
            return replace(verdict, corrected=None)
    if refusal is not None:
        raise refusal
    places = dict.fromkeys(
        str(verdict.result["holds_where"]) for verdict in verdicts if "holds_where" in verdict.result
    )
    where = {"holds_where": " and ".join(places)} if places else {}
    count = len(verdicts)
    return held(f"all {count} comparisons hold", where, verdicts[-1].checks_passed[-1])


def evaluated(claim: Claim, facts: Facts = NOTHING) -> Verdict:
    """The value of a bare expression."""
    if not has_forms(claim.left):
        return compute(claim, facts)
    value = Resolver(facts).of(claim.left)
    if isinstance(value, Spectrum):
        raise Refused("decidable", "eigenvalues are checked, not computed: claim them, as in `eigenvalues(A) = {1, 2}`")
    if isinstance(value, Table):
        return computed(claim.text, Shown(_shown_table(value)))
    if infinite := _infinite(value):
        return computed(claim.text, Shown("oo" if infinite > 0 else "-oo"))
    return compute(claim._replace(left=value), facts)


def _shown_table(table: Table) -> str:
    rows = [[shown(value_of(entry)).exact for entry in row] for row in table.rows]
    if table.vector:
        return f"[{', '.join(row[0] for row in rows)}]"
    return f"[{', '.join('[' + ', '.join(row) + ']' for row in rows)}]"


def _link(claim: Claim, tolerance: object, facts: Facts) -> Verdict:
    if claim.right is None:
        raise undecided(claim.text)
    if not (has_forms(claim.left) or has_forms(claim.right)):
        _require_plain(claim)
        return settle(claim, tolerance, facts)
    if has_antiderivative(claim.left) or has_antiderivative(claim.right):
        claim = _differentiated(claim)
    try:
        return _resolved(claim, tolerance, facts)
    except Refused as refusal:
        if refusal.check != "decidable":
            raise
        return _by_induction(claim, facts, refusal)


def _require_plain(claim: Claim) -> None:
    for side in (claim.left, claim.right):
        if side is not None and any(part.kind in ("tuple", "set") for part in walk(side)):
            raise Refused("decidable", "sets and tuples are compared only as solutions and eigenvalues")


def _differentiated(claim: Claim) -> Claim:
    """The claim that both sides have the same derivative: what an integral without bounds means."""
    if claim.right is None or claim.sign != "=":
        raise Refused("defined", "an integral without bounds is only known up to a constant: claim an equality")
    variables = {
        part.args[1].name
        for side in (claim.left, claim.right)
        for part in walk(side)
        if part.kind == "call" and part.name == "integrate" and len(part.args) == 2
    }
    if len(variables) != 1:
        raise Refused("decidable", "several integrals without bounds by several variables are not decided here")
    (variable,) = variables
    sides = []
    for side in (claim.left, claim.right):
        found = derivative(side, variable)
        if has_antiderivative(found):
            raise Refused("decidable", "an integral without bounds is decided only where it stands alone in a sum")
        sides.append(found if has_antiderivative(side) else added(found, times(ZERO, side)))
    return claim._replace(left=sides[0], right=sides[1])


def _resolved(claim: Claim, tolerance: object, facts: Facts) -> Verdict:
    resolver = Resolver(facts)
    left = resolver.of(claim.left)
    right = resolver.of(claim.right if claim.right is not None else claim.left)
    if isinstance(left, Node) and isinstance(right, Node):
        if _infinite(left) or _infinite(right):
            return _at_infinity(claim, left, right)
        plain = claim._replace(left=left, right=right)
        _require_plain(plain)
        return settle(plain, tolerance, resolver.facts)
    if claim.sign not in ("=", "!="):
        raise Refused("defined", "matrices have no order")
    if isinstance(left, Spectrum) or isinstance(right, Spectrum):
        return _eigenvalues(claim, left, right)
    return _entries(claim, left, right, tolerance, resolver.facts)


def _infinite(value: Value) -> int:
    """1 or -1 for infinity itself, else 0."""
    while isinstance(value, Node) and value.kind == "sum" and len(value.args) == 1:
        value = value.args[0]
    return 1 if value == INFINITY else -1 if value == negated(INFINITY) else 0


def _at_infinity(claim: Claim, left: Node, right: Node) -> Verdict:
    if claim.sign != "=":
        raise Refused("defined", "infinity is no number: claim an equality")
    same = _infinite(left) == _infinite(right)
    found = "infinite" if _infinite(left) else "finite"
    if same:
        return held(f"{clip(claim.text)} holds: it grows beyond all bounds", {})
    return failed(f"{clip(claim.text)} does not hold: the left side is {found}, the right side is not the same", {})


def _entries(claim: Claim, left: Value, right: Value, tolerance: object, facts: Facts) -> Verdict:
    if not (isinstance(left, Table) and isinstance(right, Table)):
        return failed(f"{clip(claim.text)} does not hold: one side is a matrix, the other a number", {})
    if left.size != right.size:
        return failed(f"{clip(claim.text)} does not hold: the sizes differ", {"expected_size": list(left.size)})
    places: dict[str, None] = {}
    for row, pair in enumerate(zip(left.rows, right.rows, strict=True), 1):
        for column, (one, other) in enumerate(zip(*pair, strict=True), 1):
            text = f"entry {row},{column} of {claim.text}"
            verdict = settle(Claim(text, one, f"entry {row},{column}", "=", other, "it"), tolerance, facts)
            if verdict.status is not Status.VERIFIED:
                return _unlike(claim, verdict)
            places |= dict.fromkeys([str(verdict.result["holds_where"])] if "holds_where" in verdict.result else [])
    where = {"holds_where": " and ".join(places)} if places else {}
    if claim.sign == "!=":
        return failed(f"both sides of {clip(claim.text)} are the same", where)
    return held(f"{clip(claim.text)} holds: every entry is the same", where)


def _unlike(claim: Claim, verdict: Verdict) -> Verdict:
    if claim.sign == "!=" and not any(names_in(side) for side in (claim.left, claim.right)):
        return held(f"{clip(claim.text)} holds: {verdict.message}", {})
    if claim.sign == "!=":
        raise undecided(claim.text)
    return replace(verdict, corrected=None)


def _eigenvalues(claim: Claim, left: Value, right: Value) -> Verdict:
    spectrum, side = (left, claim.right) if isinstance(left, Spectrum) else (right, claim.left)
    if not isinstance(spectrum, Spectrum) or side is None or claim.sign != "=":
        raise undecided(claim.text)
    values = side.args if side.kind in ("list", "set", "tuple") else (side,)
    return judge_roots(claim.text, characteristic(spectrum.of, "_t"), "_t", values, multiple=True)


def _by_induction(claim: Claim, facts: Facts, refusal: Refused) -> Verdict:
    """A sum without a known closed form, against the one that is claimed."""
    for node, other in ((claim.left, claim.right), (claim.right, claim.left)):
        if node is None or other is None or claim.sign != "=" or has_forms(other):
            continue
        if node.kind == "call" and node.name in ("sum", "product"):
            claims = induction(node, other, claim.text)
            if claims is not None:
                return _inducted(node, claims, facts)
    raise refusal


def _inducted(node: Node, claims: tuple[Claim, Claim], facts: Facts) -> Verdict:
    verdicts = [settle(claim, None, after_first(facts, node)) for claim in claims]
    if all(verdict.status is Status.VERIFIED for verdict in verdicts):
        where = with_whole(facts, node).text
        return held(f"{clip(claims[0].text)} holds where {where}", {"holds_where": where})
    reason = "it is wrong at the first index, or does not grow by the term that is added"
    return failed(f"{clip(claims[0].text)} does not hold: {reason}", {})

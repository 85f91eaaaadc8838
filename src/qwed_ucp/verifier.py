"""UCPVerifier: carts, checkouts and orders, computed again to the last unit."""

from collections.abc import Callable
from typing import Any

from qwed.packs.own import own
from qwed.packs.question import Question
from qwed.packs.result import Standing, Unreadable
from qwed.words.exact import EXACT
from qwed_ucp import currency, discounts, fulfillment, money, states, structure, tax
from qwed_ucp.document import Defect, Document, Kind, show
from qwed_ucp.reading import members_of, read
from qwed_ucp.result import GuardFinding, UCPResult

Guard = Callable[[Document], GuardFinding]
GUARDS: tuple[tuple[str, Guard], ...] = (
    (structure.NAME, structure.look),
    (currency.NAME, currency.look),
    (money.NAME, money.look),
    (discounts.NAME, discounts.look),
    (tax.NAME, tax.look),
    (fulfillment.NAME, fulfillment.look),
    (states.NAME, states.look),
)
"""In this order; without a structure or a currency there is nothing to look at further."""
_NEEDED = frozenset({structure.NAME, currency.NAME})
_FIXED = ("id", "currency")


class UCPVerifier:
    """Looks at documents of commerce; in `strict_mode` a member that nobody checks is refused."""

    def __init__(self, strict_mode: Any = True) -> None:
        # Whatever is not plainly false is strict.
        self.strict_mode = strict_mode is not False

    def verify_checkout(self, checkout: Any) -> UCPResult:
        """Whether a checkout adds up, in itself and in its state."""
        return self._verify(checkout, Kind.CHECKOUT)

    def verify_cart(self, cart: Any) -> UCPResult:
        """Whether a cart adds up; it has no state."""
        return self._verify(cart, Kind.CART)

    def verify_order(self, order: Any) -> UCPResult:
        """Whether an order adds up, with what was delivered and given back."""
        return self._verify(order, Kind.ORDER)

    def verify_transition(self, before: Any, after: Any) -> UCPResult:
        """Whether one checkout, or its status alone, may become the other."""
        before, after = own(before), own(after)
        if all(isinstance(each, str) and each.strip()[:1] not in ("{", "[") for each in (before, after)):
            return _followed(_guarded(lambda: _states(before, after)), ())
        results = [self._verify(each, Kind.CHECKOUT) for each in (before, after)]
        wrong = next((each for each in results if not each.verified), None)
        if wrong is not None:
            return wrong
        return _followed(_guarded(lambda: self._changed(before, after)), results[1].guards)

    def _changed(self, before: Any, after: Any) -> GuardFinding:
        one, other = (
            read(members_of(each, Kind.CHECKOUT), Kind.CHECKOUT, strict=self.strict_mode) for each in (before, after)
        )
        found = _states(one.status, other.status)
        fixed = next((name for name in _FIXED if one.members.get(name) != other.members.get(name)), None)
        if fixed is not None:
            raise Defect(f"`{fixed}` is another than before")
        if one.status == "completed" and _sums(one) != _sums(other):
            raise Defect("a checkout that is `completed` does not change")
        return found

    def _verify(self, value: Any, kind: Kind) -> UCPResult:
        findings: list[GuardFinding] = []
        try:
            document = read(members_of(value, kind), kind, strict=self.strict_mode)
        except Unreadable as unreadable:
            return UCPResult.unverifiable(str(unreadable), unreadable.known)
        except Defect as defect:
            return _result(kind, [_failed(structure.NAME, defect)], None)
        for name, look in GUARDS:
            try:
                findings.append(look(document))
            except Unreadable as unreadable:
                return UCPResult.unverifiable(str(unreadable), unreadable.known)
            except Defect as defect:
                findings.append(_failed(name, defect))
                if name in _NEEDED:
                    break
        return _result(kind, findings, document)


def _sums(document: Document) -> tuple[Any, ...]:
    lines = [(each.id, each.quantity, each.price) for each in document.lines]
    return lines, [(each.type, each.effect) for each in document.entries]


def _failed(name: str, defect: Defect) -> GuardFinding:
    return GuardFinding(guard_name=name, verified=False, error=str(defect))


def _result(kind: Kind, findings: list[GuardFinding], document: Document | None) -> UCPResult:
    wrong = next((each for each in findings if not each.verified), None)
    steps = () if document is None or len(findings) <= len(_NEEDED) else money.by_hand(document)
    error = None if wrong is None else wrong.error
    rule = money.RULE if wrong is None else _RULES[wrong.guard_name]
    return UCPResult(
        status=Standing.VERIFIED if wrong is None else Standing.FAILED,
        message=error or _comes_to(kind, document),
        rule=rule,
        by_hand=steps or (f"look at the {kind}: {error}",),
        guards=tuple(findings),
        error=error,
    )


def _comes_to(kind: Kind, document: Document | None) -> str:
    total = document.entry("total") if document else None
    if document is None or total is None:
        return f"the {kind} is right"
    if document.minor:
        return f"the {kind} comes to {show(total.effect)} in the smallest unit of {document.currency}"
    return f"the {kind} comes to {show(EXACT.quantize(total.effect, currency.unit_of(document)))} {document.currency}"


_RULES = {
    money.NAME: money.RULE,
    structure.NAME: "every member has its form (the simple form of the documentation, or the schemas of UCP)",
    currency.NAME: "amounts are whole numbers of the smallest unit of their currency (ISO 4217)",
    discounts.NAME: "what was applied is what totals take off, and no more than there is (UCP discount extension)",
    tax.NAME: tax.RULE,
    fulfillment.NAME: "what was chosen is there, and is what is charged (UCP fulfillment extension)",
    states.NAME: states.RULE,
}


def _states(before: Any, after: Any) -> GuardFinding:
    one, other = states.state_of(before), states.state_of(after)
    states.require_following(str(one), str(other))
    return GuardFinding(guard_name=states.NAME, verified=True, details={"before": one, "after": other})


def _guarded(look: Callable[[], GuardFinding]) -> GuardFinding:
    try:
        return look()
    except Defect as defect:
        return _failed(states.NAME, defect)


def _followed(finding: GuardFinding, guards: tuple[GuardFinding, ...]) -> UCPResult:
    return UCPResult(
        status=Standing.VERIFIED if finding.verified else Standing.FAILED,
        message=finding.error or f"`{finding.details['before']}` may become `{finding.details['after']}`",
        rule=states.RULE,
        by_hand=tuple(f"{name} -> {', '.join(allowed) or 'nothing'}" for name, allowed in states.FOLLOWING.items()),
        guards=(*(each for each in guards if each.guard_name != states.NAME), finding),
        error=finding.error,
    )


def _asking(method: str) -> Callable[..., UCPResult]:
    def ask(strict_mode: Any = True, **values: Any) -> UCPResult:
        found: UCPResult = getattr(UCPVerifier(strict_mode), method)(**values)
        return found

    return ask


QUESTIONS = (
    Question(
        "checkout",
        "totals, discounts, tax, fulfilment, currency and state of a checkout",
        _asking("verify_checkout"),
        ("checkout",),
        ("strict_mode",),
        "checkout",
    ),
    Question(
        "cart",
        "totals, discounts, tax and currency of a cart",
        _asking("verify_cart"),
        ("cart",),
        ("strict_mode",),
        "cart",
    ),
    Question(
        "order",
        "totals, currency and fulfilment of an order",
        _asking("verify_order"),
        ("order",),
        ("strict_mode",),
        "order",
    ),
    Question(
        "transition",
        "whether one state of a checkout may follow another",
        _asking("verify_transition"),
        ("before", "after"),
        ("strict_mode",),
    ),
)

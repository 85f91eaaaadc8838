"""UCPVerifier: exact recomputation of carts, checkouts and orders."""

from collections.abc import Callable
from typing import Any

from qwed.model.decimals import EXACT
from qwed.packs.check import PackCheck
from qwed.packs.result import CheckStatus, UnreadableInputError
from qwed.packs.unwrap import unwrap
from qwed_ucp import currency, discounts, fulfillment, money, state_machine, structure, tax
from qwed_ucp.document import CommerceDocument, DocumentError, DocumentKind, digits
from qwed_ucp.parse import members_of, read
from qwed_ucp.result import GuardFinding, UCPResult

Guard = Callable[[CommerceDocument], GuardFinding]
GUARDS: tuple[tuple[str, Guard], ...] = (
    (structure.NAME, structure.look),
    (currency.NAME, currency.look),
    (money.NAME, money.look),
    (discounts.NAME, discounts.look),
    (tax.NAME, tax.look),
    (fulfillment.NAME, fulfillment.look),
    (state_machine.NAME, state_machine.look),
)
"""Guards in order; without a structure or a currency the rest cannot run."""
_NEEDED = frozenset({structure.NAME, currency.NAME})
_FIXED = ("id", "currency")


class UCPVerifier:
    """Verifies commerce documents; in `strict_mode` an unchecked member is refused."""

    def __init__(self, strict_mode: Any = True) -> None:
        # Anything but False means strict.
        self.strict_mode = strict_mode is not False

    def verify_checkout(self, checkout: Any) -> UCPResult:
        """Check the sums and the state of a checkout."""
        return self._verify(checkout, DocumentKind.CHECKOUT)

    def verify_cart(self, cart: Any) -> UCPResult:
        """Check the sums of a cart, which has no state."""
        return self._verify(cart, DocumentKind.CART)

    def verify_order(self, order: Any) -> UCPResult:
        """Check the sums of an order, with deliveries and returns."""
        return self._verify(order, DocumentKind.ORDER)

    def verify_transition(self, before: Any, after: Any) -> UCPResult:
        """Check that one checkout, or its status alone, may become the other."""
        before, after = unwrap(before), unwrap(after)
        if all(isinstance(each, str) and each.strip()[:1] not in ("{", "[") for each in (before, after)):
            return _combine_transition(_guarded(lambda: _states(before, after)), ())
        results = [self._verify(each, DocumentKind.CHECKOUT) for each in (before, after)]
        wrong = next((each for each in results if not each.verified), None)
        if wrong is not None:
            return wrong
        return _combine_transition(_guarded(lambda: self._changed(before, after)), results[1].guards)

    def _changed(self, before: Any, after: Any) -> GuardFinding:
        one, other = (
            read(members_of(each, DocumentKind.CHECKOUT), DocumentKind.CHECKOUT, strict=self.strict_mode)
            for each in (before, after)
        )
        found = _states(one.status, other.status)
        fixed = next((name for name in _FIXED if one.members.get(name) != other.members.get(name)), None)
        if fixed is not None:
            raise DocumentError(f"`{fixed}` is another than before")
        if one.status == "completed" and _sums(one) != _sums(other):
            raise DocumentError("a checkout that is `completed` does not change")
        return found

    def _verify(self, value: Any, kind: DocumentKind) -> UCPResult:
        findings: list[GuardFinding] = []
        try:
            document = read(members_of(value, kind), kind, strict=self.strict_mode)
        except UnreadableInputError as unreadable:
            return UCPResult.unverifiable(str(unreadable), unreadable.known)
        except DocumentError as defect:
            return _result(kind, [_failed(structure.NAME, defect)], None)
        for name, look in GUARDS:
            try:
                findings.append(look(document))
            except UnreadableInputError as unreadable:
                return UCPResult.unverifiable(str(unreadable), unreadable.known)
            except DocumentError as defect:
                findings.append(_failed(name, defect))
                if name in _NEEDED:
                    break
        return _result(kind, findings, document)


def _sums(document: CommerceDocument) -> tuple[Any, ...]:
    lines = [(each.id, each.quantity, each.price) for each in document.lines]
    return lines, [(each.type, each.effect) for each in document.entries]


def _failed(name: str, defect: DocumentError) -> GuardFinding:
    return GuardFinding(guard_name=name, verified=False, error=str(defect))


def _result(kind: DocumentKind, findings: list[GuardFinding], document: CommerceDocument | None) -> UCPResult:
    wrong = next((each for each in findings if not each.verified), None)
    steps = () if document is None or len(findings) <= len(_NEEDED) else money.by_hand(document)
    error = None if wrong is None else wrong.error
    rule = money.RULE if wrong is None else _RULES[wrong.guard_name]
    return UCPResult(
        status=CheckStatus.VERIFIED if wrong is None else CheckStatus.FAILED,
        message=error or _comes_to(kind, document),
        rule=rule,
        by_hand=steps or (f"look at the {kind}: {error}",),
        guards=tuple(findings),
        error=error,
    )


def _comes_to(kind: DocumentKind, document: CommerceDocument | None) -> str:
    total = document.entry("total") if document else None
    if document is None or total is None:
        return f"the {kind} is right"
    if document.minor:
        return f"the {kind} comes to {digits(total.effect)} in the smallest unit of {document.currency}"
    return f"the {kind} comes to {digits(EXACT.quantize(total.effect, currency.unit_of(document)))} {document.currency}"


_RULES = {
    money.NAME: money.RULE,
    structure.NAME: "every member has its form (the simple form of the documentation, or the schemas of UCP)",
    currency.NAME: "amounts are whole numbers of the smallest unit of their currency (ISO 4217)",
    discounts.NAME: "what was applied is what totals take off, and no more than there is (UCP discount extension)",
    tax.NAME: tax.RULE,
    fulfillment.NAME: "what was chosen is there, and is what is charged (UCP fulfillment extension)",
    state_machine.NAME: state_machine.RULE,
}


def _states(before: Any, after: Any) -> GuardFinding:
    one, other = state_machine.state_of(before), state_machine.state_of(after)
    state_machine.require_following(str(one), str(other))
    return GuardFinding(guard_name=state_machine.NAME, verified=True, details={"before": one, "after": other})


def _guarded(look: Callable[[], GuardFinding]) -> GuardFinding:
    try:
        return look()
    except DocumentError as defect:
        return _failed(state_machine.NAME, defect)


def _combine_transition(finding: GuardFinding, guards: tuple[GuardFinding, ...]) -> UCPResult:
    return UCPResult(
        status=CheckStatus.VERIFIED if finding.verified else CheckStatus.FAILED,
        message=finding.error or f"`{finding.details['before']}` may become `{finding.details['after']}`",
        rule=state_machine.RULE,
        by_hand=tuple(
            f"{name} -> {', '.join(allowed) or 'nothing'}" for name, allowed in state_machine.FOLLOWING.items()
        ),
        guards=(*(each for each in guards if each.guard_name != state_machine.NAME), finding),
        error=finding.error,
    )


def _asking(method: str) -> Callable[..., UCPResult]:
    def ask(strict_mode: Any = True, **values: Any) -> UCPResult:
        found: UCPResult = getattr(UCPVerifier(strict_mode), method)(**values)
        return found

    return ask


CHECKS = (
    PackCheck(
        "checkout",
        "totals, discounts, tax, fulfilment, currency and state of a checkout",
        _asking("verify_checkout"),
        ("checkout",),
        ("strict_mode",),
        "checkout",
    ),
    PackCheck(
        "cart",
        "totals, discounts, tax and currency of a cart",
        _asking("verify_cart"),
        ("cart",),
        ("strict_mode",),
        "cart",
    ),
    PackCheck(
        "order",
        "totals, currency and fulfilment of an order",
        _asking("verify_order"),
        ("order",),
        ("strict_mode",),
        "order",
    ),
    PackCheck(
        "transition",
        "whether one state of a checkout may follow another",
        _asking("verify_transition"),
        ("before", "after"),
        ("strict_mode",),
    ),
)

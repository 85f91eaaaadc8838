"""LegalGuard: the guards of the pack in one place, and one verdict over many checks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from qwed.packs.question import Question
from qwed.packs.result import Result, Standing, Unreadable, answering, unknown
from qwed_legal.deadline import DeadlineGuard, DeadlineResult
from qwed_legal.fairness import Client, FairnessGuard, FairnessResult
from qwed_legal.liability import CapResult, IndemnityResult, LiabilityGuard, TieredResult
from qwed_legal.provenance import ProvenanceGuard, ProvenanceResult

if TYPE_CHECKING:
    from qwed_legal.citation import CitationGuard
    from qwed_legal.jurisdiction import JurisdictionGuard
    from qwed_legal.limitations import StatuteOfLimitationsGuard

_MOST_CHECKS = 200
_NAMES = ("check", "operation")
_SHAPE = '`checks` must be a list such as `[{"check": "deadline", "signing_date": "2026-01-15", ...}]`'


@dataclass(frozen=True, kw_only=True)
class LegalResult(Result):
    """What each check found; as a whole VERIFIED where all are, and FAILED where one is."""

    results: tuple[Result, ...] = ()
    """In the order of the checks."""
    checks_passed: tuple[str, ...] = ()
    checks_failed: tuple[str, ...] = ()
    checks_unverifiable: tuple[str, ...] = ()


class LegalGuard:
    """All guards of the pack, with the options that they share."""

    def __init__(
        self,
        country: str = "US",
        state: str | None = None,
        *,
        tolerance_percent: Any = 0.01,
        require_disclosure: bool = True,
        require_human_review: bool = False,
        allowed_models: Iterable[str] | None = None,
        llm_client: Client | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        given = {} if clock is None else {"clock": clock}
        self.deadline = DeadlineGuard(country, state)
        self.liability = LiabilityGuard(tolerance_percent)
        self.provenance = ProvenanceGuard(require_disclosure, require_human_review, allowed_models, **given)
        self.fairness = FairnessGuard(llm_client or _nobody)
        # What a check is given where it does not say so itself.
        self._usual = {
            "country": country,
            "state": state,
            "tolerance_percent": tolerance_percent,
            "require_disclosure": require_disclosure,
            "require_human_review": require_human_review,
            "allowed_models": allowed_models,
        }

    @cached_property
    def citation(self) -> "CitationGuard":
        """The guard of citations, imported when it is first used."""
        from qwed_legal.citation import CitationGuard

        return CitationGuard()

    @cached_property
    def jurisdiction(self) -> "JurisdictionGuard":
        """The guard of governing law and conventions, imported when it is first used."""
        from qwed_legal.jurisdiction import JurisdictionGuard

        return JurisdictionGuard()

    @cached_property
    def limitations(self) -> "StatuteOfLimitationsGuard":
        """The guard of limitation periods, imported when it is first used."""
        from qwed_legal.limitations import StatuteOfLimitationsGuard

        return StatuteOfLimitationsGuard()

    def verify_deadline(self, *args: Any, **kwargs: Any) -> DeadlineResult:
        """As `DeadlineGuard.verify`."""
        return self.deadline.verify(*args, **kwargs)

    def verify_citation(self, citation: Any) -> Any:
        """As `CitationGuard.verify`."""
        return self.citation.verify(citation)

    def verify_cap(self, contract_value: Any, cap_percentage: Any, claimed_cap: Any) -> CapResult:
        """As `LiabilityGuard.verify_cap`."""
        return self.liability.verify_cap(contract_value, cap_percentage, claimed_cap)

    def verify_tiered_liability(self, tiers: Any, claimed_total: Any) -> TieredResult:
        """As `LiabilityGuard.verify_tiered_liability`."""
        return self.liability.verify_tiered_liability(tiers, claimed_total)

    def verify_indemnity_limit(self, annual_fee: Any, multiplier: Any, claimed_limit: Any) -> IndemnityResult:
        """As `LiabilityGuard.verify_indemnity_limit`."""
        return self.liability.verify_indemnity_limit(annual_fee, multiplier, claimed_limit)

    def verify_choice_of_law(self, *args: Any, **kwargs: Any) -> Any:
        """As `JurisdictionGuard.verify_choice_of_law`."""
        return self.jurisdiction.verify_choice_of_law(*args, **kwargs)

    def check_convention_applicability(self, *args: Any, **kwargs: Any) -> Any:
        """As `JurisdictionGuard.check_convention_applicability`."""
        return self.jurisdiction.check_convention_applicability(*args, **kwargs)

    def verify_statute_of_limitations(self, *args: Any, **kwargs: Any) -> Any:
        """As `StatuteOfLimitationsGuard.verify`."""
        return self.limitations.verify(*args, **kwargs)

    def verify_provenance(self, content: Any, provenance: Any) -> ProvenanceResult:
        """As `ProvenanceGuard.verify_provenance`."""
        return self.provenance.verify_provenance(content, provenance)

    def verify_decision_fairness(self, prompt: Any, decision: Any, swap: Any) -> FairnessResult:
        """As `FairnessGuard.verify_decision_fairness`; UNVERIFIABLE where no `llm_client` was given."""
        return self.fairness.verify_decision_fairness(prompt, decision, swap)

    @answering(LegalResult)
    def verify(self, checks: Any) -> LegalResult:
        """What each of the named checks finds, and all of them together."""
        if not isinstance(checks, list | tuple) or not 1 <= len(checks) <= _MOST_CHECKS:
            raise Unreadable(f"{_SHAPE}, of 1 to {_MOST_CHECKS} checks")
        named = [self._one(check) for check in checks]
        by_status = {each: tuple(name for name, found in named if found.status is each) for each in Standing}
        return LegalResult(
            status=next(
                (each for each in (Standing.FAILED, Standing.UNVERIFIABLE) if by_status[each]), Standing.VERIFIED
            ),
            message="; ".join(f"{name}: {found.message}" for name, found in named),
            rule="verified where every check is; failed where one is; else unverifiable",
            by_hand=tuple(f"{name}: {step}" for name, found in named for step in found.by_hand),
            results=tuple(found for _, found in named),
            checks_passed=by_status[Standing.VERIFIED],
            checks_failed=by_status[Standing.FAILED],
            checks_unverifiable=by_status[Standing.UNVERIFIABLE],
        )

    def _one(self, check: Any) -> tuple[str, Result]:
        name, values = _read(check)
        asked = _questions().get(name)
        if asked is None:
            wrong = unknown("check", name, _questions())
            return name, Result.unverifiable(str(wrong), wrong.known)
        wrong_value = _wrong(asked, values)
        if wrong_value:
            return name, Result.unverifiable(wrong_value, asked.takes)
        usual = {key: value for key, value in self._usual.items() if key in asked.optional}
        return name, asked.ask(**{**usual, **values})


def _questions() -> Mapping[str, Question]:
    from qwed_legal.questions import QUESTIONS

    return QUESTIONS


def _read(check: Any) -> tuple[str, dict[str, Any]]:
    """The name of a check and its values: `{"check": name, ...}`, or a pair of both."""
    if isinstance(check, list | tuple) and len(check) == 2 and isinstance(check[1], Mapping):
        name, values = check[0], dict(check[1])
    elif isinstance(check, Mapping):
        values = dict(check)
        name = next((values.pop(each) for each in _NAMES if each in values), None)
    else:
        raise Unreadable(_SHAPE)
    if not isinstance(name, str):
        raise Unreadable(f"a check has no name: {_SHAPE}")
    return name[:60], values


def _wrong(asked: Question, values: Mapping[Any, Any]) -> str:
    beside = next((name for name in values if name not in asked.takes), None)
    if beside is not None:
        return f"`{asked.name}` takes no `{str(beside)[:60]}`: it takes {', '.join(asked.takes)}"
    missing = next((name for name in asked.required if name not in values), None)
    return "" if missing is None else f"`{missing}` is required for `{asked.name}`"


def _nobody(_prompt: str) -> str:
    """The client of a guard that was given none."""
    return ""

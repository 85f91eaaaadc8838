"""LegalGuard: all guards of the pack, and one verdict over many checks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from qwed.packs.check import PackCheck
from qwed.packs.result import CheckStatus, Result, UnreadableInputError, unknown_name_error, unverifiable_on_error
from qwed.packs.tolerances import bound_parameters
from qwed_legal.deadline import DeadlineGuard, DeadlineResult
from qwed_legal.fairness import FairnessGuard, FairnessResult, LlmClient
from qwed_legal.liability import CapResult, IndemnityResult, LiabilityGuard, TieredResult
from qwed_legal.provenance import ProvenanceGuard, ProvenanceResult

if TYPE_CHECKING:
    from qwed_legal.citation import CitationGuard
    from qwed_legal.jurisdiction import JurisdictionGuard
    from qwed_legal.limitations import StatuteOfLimitationsGuard

_MAX_CHECKS = 200
_NAME_KEYS = ("check", "operation")
_CHECKS_FORMAT = '`checks` must be a list such as `[{"check": "deadline", "signing_date": "2026-01-15", ...}]`'


@dataclass(frozen=True, kw_only=True)
class LegalResult(Result):
    """Results of several checks: VERIFIED if all are, FAILED if one is."""

    results: tuple[Result, ...] = ()
    """Results in the order of the checks."""
    checks_passed: tuple[str, ...] = ()
    checks_failed: tuple[str, ...] = ()
    checks_unverifiable: tuple[str, ...] = ()


class LegalGuard:
    """All guards of the pack with shared options."""

    def __init__(
        self,
        country: str = "US",
        state: str | None = None,
        *,
        tolerance_percent: Any = 0,
        require_disclosure: bool = True,
        require_human_review: bool = False,
        allowed_models: Iterable[str] | None = None,
        llm_client: LlmClient | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        clock_option = {} if clock is None else {"clock": clock}
        self.deadline = DeadlineGuard(country, state)
        self.liability = LiabilityGuard(tolerance_percent)
        self.provenance = ProvenanceGuard(require_disclosure, require_human_review, allowed_models, **clock_option)
        self.fairness = FairnessGuard(llm_client or _missing_client)
        # Defaults for options that a check leaves out.
        self._defaults = {
            "country": country,
            "state": state,
            "tolerance_percent": tolerance_percent,
            "require_disclosure": require_disclosure,
            "require_human_review": require_human_review,
            "allowed_models": allowed_models,
        }

    @cached_property
    def citation(self) -> "CitationGuard":
        """Citation guard, imported on first use."""
        from qwed_legal.citation import CitationGuard

        return CitationGuard()

    @cached_property
    def jurisdiction(self) -> "JurisdictionGuard":
        """Guard for governing law and conventions, imported on first use."""
        from qwed_legal.jurisdiction import JurisdictionGuard

        return JurisdictionGuard()

    @cached_property
    def limitations(self) -> "StatuteOfLimitationsGuard":
        """Guard for limitation periods, imported on first use."""
        from qwed_legal.limitations import StatuteOfLimitationsGuard

        return StatuteOfLimitationsGuard()

    def verify_deadline(self, *args: Any, **kwargs: Any) -> DeadlineResult:
        """Same as `DeadlineGuard.verify`."""
        return self.deadline.verify(*args, **kwargs)

    def verify_citation(self, citation: Any) -> Any:
        """Same as `CitationGuard.verify`."""
        return self.citation.verify(citation)

    def verify_cap(self, contract_value: Any, cap_percentage: Any, claimed_cap: Any) -> CapResult:
        """Same as `LiabilityGuard.verify_cap`."""
        return self.liability.verify_cap(contract_value, cap_percentage, claimed_cap)

    def verify_tiered_liability(self, tiers: Any, claimed_total: Any) -> TieredResult:
        """Same as `LiabilityGuard.verify_tiered_liability`."""
        return self.liability.verify_tiered_liability(tiers, claimed_total)

    def verify_indemnity_limit(self, annual_fee: Any, multiplier: Any, claimed_limit: Any) -> IndemnityResult:
        """Same as `LiabilityGuard.verify_indemnity_limit`."""
        return self.liability.verify_indemnity_limit(annual_fee, multiplier, claimed_limit)

    def verify_choice_of_law(self, *args: Any, **kwargs: Any) -> Any:
        """Same as `JurisdictionGuard.verify_choice_of_law`."""
        return self.jurisdiction.verify_choice_of_law(*args, **kwargs)

    def check_convention_applicability(self, *args: Any, **kwargs: Any) -> Any:
        """Same as `JurisdictionGuard.check_convention_applicability`."""
        return self.jurisdiction.check_convention_applicability(*args, **kwargs)

    def verify_statute_of_limitations(self, *args: Any, **kwargs: Any) -> Any:
        """Same as `StatuteOfLimitationsGuard.verify`."""
        return self.limitations.verify(*args, **kwargs)

    def verify_provenance(self, content: Any, provenance: Any) -> ProvenanceResult:
        """Same as `ProvenanceGuard.verify_provenance`."""
        return self.provenance.verify_provenance(content, provenance)

    def verify_decision_fairness(self, prompt: Any, decision: Any, swap: Any) -> FairnessResult:
        """Same as `FairnessGuard.verify_decision_fairness`; UNVERIFIABLE without an `llm_client`."""
        return self.fairness.verify_decision_fairness(prompt, decision, swap)

    @unverifiable_on_error(LegalResult)
    def verify(self, checks: Any) -> LegalResult:
        """Run the named checks and combine their results."""
        if not isinstance(checks, list | tuple) or not 1 <= len(checks) <= _MAX_CHECKS:
            raise UnreadableInputError(f"{_CHECKS_FORMAT}, of 1 to {_MAX_CHECKS} checks")
        results = [self._run_check(check) for check in checks]
        by_status = {
            status: tuple(name for name, result in results if result.status is status) for status in CheckStatus
        }
        return LegalResult(
            status=next(
                (status for status in (CheckStatus.FAILED, CheckStatus.UNVERIFIABLE) if by_status[status]),
                CheckStatus.VERIFIED,
            ),
            message="; ".join(f"{name}: {result.message}" for name, result in results),
            rule="verified where every check is; failed where one is; else unverifiable",
            by_hand=tuple(f"{name}: {step}" for name, result in results for step in result.by_hand),
            results=tuple(result for _, result in results),
            checks_passed=by_status[CheckStatus.VERIFIED],
            checks_failed=by_status[CheckStatus.FAILED],
            checks_unverifiable=by_status[CheckStatus.UNVERIFIABLE],
        )

    def _run_check(self, check: Any) -> tuple[str, Result]:
        name, values = _parse_check(check)
        pack_check = _all_checks().get(name)
        if pack_check is None:
            error = unknown_name_error("check", name, _all_checks())
            return name, Result.unverifiable(str(error), error.known)
        problem = _argument_error(pack_check, values)
        if problem:
            return name, Result.unverifiable(problem, pack_check.takes)
        defaults = {key: value for key, value in self._defaults.items() if key in pack_check.optional}
        # The checks may come from whom they judge, so they make the options of the guard stricter at most.
        if defaults.get("allowed_models") is not None:
            values.pop("allowed_models", None)
        return name, pack_check.ask(**{**defaults, **bound_parameters(values, self._defaults).values})


def _all_checks() -> Mapping[str, PackCheck]:
    from qwed_legal.legal_checks import CHECKS

    return CHECKS


def _parse_check(check: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the values of a check: `{"check": name, ...}`, or a pair of both."""
    if isinstance(check, list | tuple) and len(check) == 2 and isinstance(check[1], Mapping):
        name, values = check[0], dict(check[1])
    elif isinstance(check, Mapping):
        values = dict(check)
        name = next((values.pop(key) for key in _NAME_KEYS if key in values), None)
    else:
        raise UnreadableInputError(_CHECKS_FORMAT)
    if not isinstance(name, str):
        raise UnreadableInputError(f"a check has no name: {_CHECKS_FORMAT}")
    return name[:60], values


def _argument_error(pack_check: PackCheck, values: Mapping[Any, Any]) -> str:
    unknown = next((name for name in values if name not in pack_check.takes), None)
    if unknown is not None:
        return f"`{pack_check.name}` takes no `{str(unknown)[:60]}`: it takes {', '.join(pack_check.takes)}"
    missing = next((name for name in pack_check.required if name not in values), None)
    return "" if missing is None else f"`{missing}` is required for `{pack_check.name}`"


def _missing_client(_prompt: str) -> str:
    """Stand-in for a client that was not configured."""
    return ""

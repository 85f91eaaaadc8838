"""Response model of the engine endpoints (INTERFACES 2)."""

from typing import Any

import msgspec

from qwed.engines.verdict_cache import CACHEABLE_STATUSES
from qwed.guards.secrets import mask
from qwed.kernel.privacy.masking import mask_value
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.verification.request import VerificationRequest
from qwed.model import Status, Verdict, sha256_of


class CheckResult(msgspec.Struct, gc=False, frozen=True):
    """Result of one check."""

    name: str
    passed: bool


class VerificationResult(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """The verdict on one input. `verified` and `is_valid` are true for VERIFIED only."""

    status: Status
    verified: bool
    is_valid: bool
    engine: str
    result: dict[str, Any]
    message: str
    checks: tuple[CheckResult, ...] = ()
    attestation: str | None = None
    proof_ref: str | None = None
    """Hash of the input and the result; null if the result is not final or the input carries a secret."""
    latency_ms: float = 0.0


def result_of(request: VerificationRequest, verdict: Verdict, redactor: Redactor | None = None) -> VerificationResult:
    """Build the response to a verdict, without attestation and latency, and without the secrets of the input."""
    result = mask_value(_result_fields(verdict))
    if redactor is not None:
        result = redactor.message_value(result)
    return VerificationResult(
        status=verdict.status,
        verified=verdict.verified,
        is_valid=verdict.verified,
        engine=verdict.engine,
        result=result,
        message=mask(verdict.message) if redactor is None else redactor.text(verdict.message),
        checks=(
            *(CheckResult(name, True) for name in verdict.checks_passed),
            *(CheckResult(name, False) for name in verdict.checks_failed),
        ),
        proof_ref=_proof_ref(request, verdict, result)
        if verdict.status in CACHEABLE_STATUSES and redactor is None
        else None,
    )


def _result_fields(verdict: Verdict) -> dict[str, Any]:
    """Return the engine's own fields, with effects, violations and a repair if there are any."""
    result = dict(verdict.result)
    if verdict.effects:
        result["effects"] = [{"kind": effect.kind.value, "target": effect.target} for effect in verdict.effects]
    if verdict.violations:
        result["violations"] = list(verdict.violations)
    if verdict.corrected is not None:
        result["repair"] = dict(verdict.corrected)
    return result


def _proof_ref(request: VerificationRequest, verdict: Verdict, result: dict[str, Any]) -> str:
    timeless = _without_times(result)
    members = {"input": request.digest, "engine": verdict.engine, "status": verdict.status.value, "result": timeless}
    return f"sha256:{sha256_of(members)}"


def _without_times(value: Any) -> Any:
    """Return the value without latencies, so that the same result always has the same proof."""
    if isinstance(value, dict):
        return {name: _without_times(item) for name, item in value.items() if name != "latency_ms"}
    return [_without_times(item) for item in value] if isinstance(value, list | tuple) else value

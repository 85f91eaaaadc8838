"""INTERFACES 2: what an engine endpoint answers."""

from typing import Any

import msgspec

from qwed.engines.verdicts import SETTLED
from qwed.guards.secrets import mask
from qwed.kernel.inquiries.reading import Inquiry
from qwed.kernel.keeping.hiding import Hiding
from qwed.kernel.keeping.masking import masked
from qwed.words import Status, Verdict, sha256_of


class Check(msgspec.Struct, gc=False, frozen=True):
    """One thing that was looked at."""

    name: str
    passed: bool


class Finding(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """The verdict on one input. `verified` and `is_valid` are true for VERIFIED alone."""

    status: Status
    verified: bool
    is_valid: bool
    engine: str
    result: dict[str, Any]
    message: str
    checks: tuple[Check, ...] = ()
    attestation: str | None = None
    proof_ref: str | None = None
    """The hash of the input and of what was found; null where nothing was settled, or the input carries a secret."""
    latency_ms: float = 0.0


def finding_of(inquiry: Inquiry, verdict: Verdict, hiding: Hiding | None = None) -> Finding:
    """What is said about a verdict, without its attestation and its time, and without the secrets of the input."""
    result = masked(_result(verdict))
    if hiding is not None:
        result = hiding.said(result)
    return Finding(
        status=verdict.status,
        verified=verdict.verified,
        is_valid=verdict.verified,
        engine=verdict.engine,
        result=result,
        message=mask(verdict.message) if hiding is None else hiding.text(verdict.message),
        checks=(
            *(Check(name, True) for name in verdict.checks_passed),
            *(Check(name, False) for name in verdict.checks_failed),
        ),
        proof_ref=_proof_ref(inquiry, verdict, result) if verdict.status in SETTLED and hiding is None else None,
    )


def _result(verdict: Verdict) -> dict[str, Any]:
    """The engine's own fields, and what it says of every input: effects, violations and a repair where there is one."""
    result = dict(verdict.result)
    if verdict.effects:
        result["effects"] = [{"kind": effect.kind.value, "target": effect.target} for effect in verdict.effects]
    if verdict.violations:
        result["violations"] = list(verdict.violations)
    if verdict.corrected is not None:
        result["repair"] = dict(verdict.corrected)
    return result


def _proof_ref(inquiry: Inquiry, verdict: Verdict, result: dict[str, Any]) -> str:
    told = _without_times(result)
    found = {"input": inquiry.digest, "engine": verdict.engine, "status": verdict.status.value, "result": told}
    return f"sha256:{sha256_of(found)}"


def _without_times(value: Any) -> Any:
    """How long a method took is told, but proves nothing: the same finding has the same proof every time."""
    if isinstance(value, dict):
        return {name: _without_times(item) for name, item in value.items() if name != "latency_ms"}
    return [_without_times(item) for item in value] if isinstance(value, list | tuple) else value

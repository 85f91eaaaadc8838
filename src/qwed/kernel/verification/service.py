"""The `/verify/*` flow: choose the engine, run it, build the response, attest it on request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from qwed.engines.pool import PoolFullError
from qwed.engines.protocol import EngineRequest
from qwed.engines.router import EngineChoice, route
from qwed.engines.verdict_cache import VerdictRequest
from qwed.futures import Future
from qwed.guards.secrets import mask
from qwed.guards.text_scan import strings_in
from qwed.kernel.analysis.content_scan import has_secret
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit.issue import attestation_of
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.request import Action, without_file
from qwed.kernel.services import Services
from qwed.kernel.verification.request import (
    AUTO,
    ENGINE_INPUTS,
    EngineInputs,
    VerificationRequest,
    VerifyOptions,
    build_request,
    read_body,
    read_engine_name,
    read_request,
    read_typed_request,
)
from qwed.kernel.verification.response import VerificationResult, result_of
from qwed.ledger import leaf
from qwed.ledger.attest import AttestationExtras
from qwed.model import ErrorCode, Event, Status, Verdict
from qwed.model.ids import new_id
from qwed.translate.provider import Translation

_NO_TRANSLATOR = (
    "no engine reads this: write a formula, a query or code, use a typed endpoint such as /verify/math, "
    "or set QWED_LLM_BASE_URL, QWED_LLM_API_KEY and QWED_LLM_MODEL so that sentences are translated"
)
_NOT_AFTER_TRANSLATION = {Status.VERIFIED, Status.FAILED, Status.CORRECTED, Status.SIMPLIFIED, Status.BLOCKED}
"""Statuses that a translated input cannot have, because the translation itself is not verified."""


class DetectedEngine(NamedTuple):
    """An input with its detected engine, or without one."""

    text: str
    options: VerifyOptions
    routed: EngineChoice | None
    request: VerificationRequest | None = None


async def verify_with_engine(engine: str, raw: Any, actor: Actor, services: Services) -> VerificationResult | Problem:
    """Return the result of `/verify/<engine>`."""
    request = read_request(engine, raw)
    return request if isinstance(request, Problem) else await verify(request, actor, services)


async def verify_detected(raw: Any, actor: Actor, services: Services) -> VerificationResult | Problem:
    """Return the result of `/verify`, where `type` or the input itself determines the engine."""
    engine = read_engine_name(raw)
    if isinstance(engine, Problem):
        return engine
    if engine is not None:
        request = read_typed_request(engine, raw)
        return request if isinstance(request, Problem) else await verify(request, actor, services)
    detected = detect_engine(raw)
    if isinstance(detected, Problem):
        return detected
    if detected.routed is None or detected.request is None:
        return await _verify_translated(detected, actor, services)
    result = await verify(detected.request, actor, services)
    if isinstance(result, Problem):
        return result
    routed = {"engine": detected.routed.engine, "why": detected.routed.why}
    return msgspec.structs.replace(result, result={**result.result, "routed": routed})


def detect_engine(raw: Any) -> DetectedEngine | Problem:
    """Detect the engine for a body of `/verify` that does not name one."""
    # A `type` of null counts as absent.
    rest = {name: value for name, value in raw.items() if name != "type"} if isinstance(raw, Mapping) else raw
    body = read_body(AUTO, rest, ("type",))
    if isinstance(body, Problem):
        return body
    text, parameters, options = body
    routed = _route_by_parameters(parameters) or route(text)
    wrong = _refuse_parameters(parameters, routed)
    if wrong is not None:
        return wrong
    if routed is None:
        return DetectedEngine(text, options, None)
    query = text if routed.text is None else routed.text
    request = build_request(routed.engine, query, {**routed.parameters, **parameters}, options)
    return request if isinstance(request, Problem) else DetectedEngine(text, options, routed, request)


def _route_by_parameters(parameters: dict[str, Any]) -> EngineChoice | None:
    """Return the one engine that takes all of these parameters."""
    strict_engines = [(name, row) for name, row in ENGINE_INPUTS.items() if not row.any_values]
    takers = [name for name, row in strict_engines if parameters and set(parameters) <= set(row.parameters)]
    if len(takers) != 1:
        return None
    return EngineChoice(takers[0], f"`{'`, `'.join(sorted(parameters))}` belongs to the {takers[0]} engine alone")


def _refuse_parameters(parameters: Mapping[str, Any], routed: EngineChoice | None) -> Problem | None:
    """Return the problem with parameters that the engine would ignore or miss."""
    row = EngineInputs(()) if routed is None else ENGINE_INPUTS[routed.engine]
    unexpected = next((name for name in parameters if name not in row.parameters), None)
    if unexpected is not None:
        reader = "no engine reads this" if routed is None else f"the {routed.engine} engine reads this"
        advice = f"use a typed endpoint, such as /verify/{_engine_taking(unexpected)}"
        return problem(ErrorCode.MALFORMED, f"{reader} and does not take `{unexpected}`: {advice}")
    missing = next((name for name in row.required if name not in parameters), None)
    return None if missing is None else problem(ErrorCode.MISSING_FIELD, f"`{missing}` is required")


def _engine_taking(parameter: str) -> str:
    return next(name for name, row in ENGINE_INPUTS.items() if parameter in row.parameters)


async def verify(request: VerificationRequest, actor: Actor, services: Services) -> VerificationResult | Problem:
    """Run the engine and return its result, attested if requested."""
    secret = _has_secret(request.request)
    if request.options.attest and secret:
        message = "the input carries a secret, and an attestation would store its hash for ever: leave it out"
        return problem(ErrorCode.MALFORMED, message)
    started = services.clock.monotonic()
    try:
        verdict = await verdict_on(request, actor.organisation_id, services)
    except PoolFullError:
        return problem(ErrorCode.ENGINE_UNAVAILABLE, retry_after=1)
    result = result_of(request, verdict, _redactor_of(request) if secret else None)
    attestation = await _attest(request, verdict, actor, services) if request.options.attest else None
    if isinstance(attestation, Problem):
        return attestation
    milliseconds = round((services.clock.monotonic() - started) * 1000, 3)
    return msgspec.structs.replace(result, attestation=attestation, latency_ms=milliseconds)


def _has_secret(request: EngineRequest) -> bool:
    texts = (("", request.query), ("", request.code), *strings_in(without_file(request.parameters)))
    return has_secret(texts)


def _redactor_of(verification: VerificationRequest) -> Redactor:
    request, parameters = verification.request, without_file(verification.request.parameters)
    return Redactor(Action(type=verification.engine, query=request.query, code=request.code, parameters=parameters))


async def verdict_on(request: VerificationRequest, organisation_id: str, services: Services) -> Verdict:
    """Return the verdict, cached or new; raise PoolFull if no engine worker is available."""
    engine_request = _with_tolerances(request.request, services.settings.tolerances)
    question = VerdictRequest(
        organisation_id, request.engine, request.digest, engine_request, organisation_id, request.options.seconds
    )
    verdict_or_future = services.engines.ask(question)
    if not isinstance(verdict_or_future, Future):
        return verdict_or_future
    verdict = await verdict_or_future
    services.engines.learn(question, verdict)
    return verdict


def _with_tolerances(request: EngineRequest, tolerances: tuple[str, ...]) -> EngineRequest:
    return replace(request, policy=replace(request.policy, tolerances=tolerances)) if tolerances else request


async def _attest(request: VerificationRequest, verdict: Verdict, actor: Actor, services: Services) -> str | Problem:
    """Log the verdict in the organisation's log and return the signed statement."""
    change = build_change(
        Event.CLAIM_ATTESTED,
        actor.actor_id,
        actor.organisation_id,
        services.clock.now(),
        services,
        attestation_id=new_id("att"),
        engine=verdict.engine,
        status=verdict.status.value,
        content={"sub": request.digest},
    )
    receipt = await commit_change(change, services)
    if isinstance(receipt, Problem):
        return receipt
    entry, index = leaf.decode(change.activity.leaf), receipt.log_index
    return attestation_of(
        entry, AttestationExtras(request.digest), actor.organisation_id, index, services, receipt.position
    )


async def _verify_translated(
    detected: DetectedEngine, actor: Actor, services: Services
) -> VerificationResult | Problem:
    """Translate the input if there is a translator, verify the translation, and show both."""
    if services.translator is None:
        return _unknown(_NO_TRANSLATOR)
    # Masked, because the text is sent to an external provider.
    translation = await services.translator.translate(mask(detected.text), detected.options.seconds)
    if not isinstance(translation, Translation):
        return _unknown(translation)
    request = build_request(translation.engine, translation.text, translation.parameters, detected.options)
    if isinstance(request, Problem):
        return _unknown(request.message)
    result = await verify(request._replace(options=request.options._replace(attest=False)), actor, services)
    return result if isinstance(result, Problem) else _capped_at_inconclusive(result, translation)


def _capped_at_inconclusive(result: VerificationResult, translation: Translation) -> VerificationResult:
    translated = {
        "engine": translation.engine,
        "input": translation.text,
        "parameters": translation.parameters,
        "model": translation.model,
        "status": result.status.value,
    }
    status = Status.INCONCLUSIVE if result.status in _NOT_AFTER_TRANSLATION else result.status
    message = f"as translated, {result.status}: {result.message}; check that the translation is what was meant"
    return msgspec.structs.replace(
        result,
        status=status,
        verified=False,
        is_valid=False,
        message=message,
        result={**result.result, "translation": translated},
        proof_ref=None,
    )


def _unknown(message: str) -> VerificationResult:
    return VerificationResult(
        status=Status.UNKNOWN, verified=False, is_valid=False, engine="router", result={}, message=message
    )

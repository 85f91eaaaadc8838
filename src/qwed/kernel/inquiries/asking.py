"""One question, in a straight line: find the engine, ask it, say what it found, sign that where it is wanted."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from qwed.engines.pool import PoolFull
from qwed.engines.protocol import EngineRequest
from qwed.engines.router import Routed, route
from qwed.engines.verdicts import Question
from qwed.guards.secrets import mask
from qwed.guards.text import strings_in
from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.inquiries.finding import Finding, finding_of
from qwed.kernel.inquiries.reading import (
    ASKED,
    AUTO,
    Asked,
    Inquiry,
    Options,
    engine_named,
    inquiry_of,
    read_body,
    read_inquiry,
    read_typed,
)
from qwed.kernel.judging.content import holds_secret
from qwed.kernel.keeping.hiding import Hiding
from qwed.kernel.proving.proof import attestation_of
from qwed.kernel.request import Action, without_file
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.ledger.attest import Stated
from qwed.translate.provider import Translation
from qwed.waiting import Ticket
from qwed.words import ErrorCode, Event, Status, Verdict
from qwed.words.ids import new_id

_NO_TRANSLATOR = (
    "no engine reads this: write a formula, a query or code, use a typed endpoint such as /verify/math, "
    "or set QWED_LLM_BASE_URL, QWED_LLM_API_KEY and QWED_LLM_MODEL so that sentences are translated"
)
_AT_BEST = {Status.VERIFIED, Status.FAILED, Status.CORRECTED, Status.SIMPLIFIED, Status.BLOCKED}
"""What no translated input may read: whether the translation says what was meant, nobody has verified."""


class Detected(NamedTuple):
    """An input whose engine was found, or that no engine reads."""

    text: str
    options: Options
    routed: Routed | None
    inquiry: Inquiry | None = None


async def ask_engine(engine: str, raw: Any, actor: Actor, services: Services) -> Finding | Problem:
    """The finding of `/verify/<engine>`."""
    inquiry = read_inquiry(engine, raw)
    return inquiry if isinstance(inquiry, Problem) else await inquire(inquiry, actor, services)


async def ask_any(raw: Any, actor: Actor, services: Services) -> Finding | Problem:
    """The finding of `/verify`, where `type` or else the input itself says which engine reads it."""
    named = engine_named(raw)
    if isinstance(named, Problem):
        return named
    if named is not None:
        inquiry = read_typed(named, raw)
        return inquiry if isinstance(inquiry, Problem) else await inquire(inquiry, actor, services)
    found = detect(raw)
    if isinstance(found, Problem):
        return found
    if found.routed is None or found.inquiry is None:
        return await _translated(found, actor, services)
    finding = await inquire(found.inquiry, actor, services)
    if isinstance(finding, Problem):
        return finding
    said = {"engine": found.routed.engine, "why": found.routed.why}
    return msgspec.structs.replace(finding, result={**finding.result, "routed": said})


def detect(raw: Any) -> Detected | Problem:
    """Which engine reads the body of `/verify` that names none, and what it is asked."""
    # A `type` of null names nothing.
    rest = {name: value for name, value in raw.items() if name != "type"} if isinstance(raw, Mapping) else raw
    body = read_body(AUTO, rest, ("type",))
    if isinstance(body, Problem):
        return body
    text, parameters, options = body
    routed = _by_parameters(parameters) or route(text)
    wrong = _refuse_parameters(parameters, routed)
    if wrong is not None:
        return wrong
    if routed is None:
        return Detected(text, options, None)
    said = text if routed.text is None else routed.text
    inquiry = inquiry_of(routed.engine, said, {**routed.parameters, **parameters}, options)
    return inquiry if isinstance(inquiry, Problem) else Detected(text, options, routed, inquiry)


def _by_parameters(parameters: dict[str, Any]) -> Routed | None:
    """The one engine that takes all of these parameters."""
    told = [(name, row) for name, row in ASKED.items() if not row.any_values]
    takers = [name for name, row in told if parameters and set(parameters) <= set(row.parameters)]
    if len(takers) != 1:
        return None
    return Routed(takers[0], f"`{'`, `'.join(sorted(parameters))}` belongs to the {takers[0]} engine alone")


def _refuse_parameters(parameters: Mapping[str, Any], routed: Routed | None) -> Problem | None:
    """What the engine would leave unread, or miss."""
    row = Asked(()) if routed is None else ASKED[routed.engine]
    beside = next((name for name in parameters if name not in row.parameters), None)
    if beside is not None:
        reader = "no engine reads this" if routed is None else f"the {routed.engine} engine reads this"
        message = f"{reader} and takes no `{beside}`: use a typed endpoint, such as /verify/{_taker(beside)}"
        return problem(ErrorCode.MALFORMED, message)
    missing = next((name for name in row.required if name not in parameters), None)
    return None if missing is None else problem(ErrorCode.MISSING_FIELD, f"`{missing}` is required")


def _taker(parameter: str) -> str:
    return next(name for name, row in ASKED.items() if parameter in row.parameters)


async def inquire(inquiry: Inquiry, actor: Actor, services: Services) -> Finding | Problem:
    """What the engine found, signed where that was asked for."""
    secret = _has_secret(inquiry.request)
    if inquiry.options.attest and secret:
        message = "the input carries a secret, and a signed statement would keep its hash for ever: leave it out"
        return problem(ErrorCode.MALFORMED, message)
    started = services.clock.monotonic()
    try:
        verdict = await verdict_on(inquiry, actor.organisation_id, services)
    except PoolFull:
        return problem(ErrorCode.ENGINE_UNAVAILABLE, retry_after=1)
    finding = finding_of(inquiry, verdict, _hiding_of(inquiry) if secret else None)
    attestation = await _attested(inquiry, verdict, actor, services) if inquiry.options.attest else None
    if isinstance(attestation, Problem):
        return attestation
    milliseconds = round((services.clock.monotonic() - started) * 1000, 3)
    return msgspec.structs.replace(finding, attestation=attestation, latency_ms=milliseconds)


def _has_secret(request: EngineRequest) -> bool:
    texts = (("", request.query), ("", request.code), *strings_in(without_file(request.parameters)))
    return holds_secret(texts)


def _hiding_of(inquiry: Inquiry) -> Hiding:
    asked, parameters = inquiry.request, without_file(inquiry.request.parameters)
    return Hiding(Action(type=inquiry.engine, query=asked.query, code=asked.code, parameters=parameters))


async def verdict_on(inquiry: Inquiry, organisation_id: str, services: Services) -> Verdict:
    """The verdict, remembered or new; PoolFull is raised if no engine worker can take it."""
    question = Question(
        organisation_id, inquiry.engine, inquiry.digest, inquiry.request, organisation_id, inquiry.options.seconds
    )
    asked = services.engines.ask(question)
    if not isinstance(asked, Ticket):
        return asked
    verdict = await asked
    services.engines.learn(question, verdict)
    return verdict


async def _attested(inquiry: Inquiry, verdict: Verdict, actor: Actor, services: Services) -> str | Problem:
    """A signed statement, after what it states stands in the organisation's log."""
    change = change_of(
        Event.CLAIM_ATTESTED,
        actor.by,
        actor.organisation_id,
        services.clock.now(),
        services,
        attestation_id=new_id("att"),
        engine=verdict.engine,
        status=verdict.status.value,
        said={"sub": inquiry.digest},
    )
    kept = await keep(change, services)
    if isinstance(kept, Problem):
        return kept
    entry, index = leaf.decode(change.activity.leaf), kept.log_index
    return attestation_of(entry, Stated(inquiry.digest), actor.organisation_id, index, services, kept.placed)


async def _translated(found: Detected, actor: Actor, services: Services) -> Finding | Problem:
    """Through the translator where there is one: its formal reading is verified, and shown beside the verdict."""
    if services.translator is None:
        return _unknown(_NO_TRANSLATOR)
    # Somebody else's machine reads it.
    translation = await services.translator.translate(mask(found.text), found.options.seconds)
    if not isinstance(translation, Translation):
        return _unknown(translation)
    inquiry = inquiry_of(translation.engine, translation.text, translation.parameters, found.options)
    if isinstance(inquiry, Problem):
        return _unknown(inquiry.message)
    finding = await inquire(inquiry._replace(options=inquiry.options._replace(attest=False)), actor, services)
    return finding if isinstance(finding, Problem) else _at_best_inconclusive(finding, translation)


def _at_best_inconclusive(finding: Finding, translation: Translation) -> Finding:
    said = {
        "engine": translation.engine,
        "input": translation.text,
        "parameters": translation.parameters,
        "model": translation.model,
        "status": finding.status.value,
    }
    status = Status.INCONCLUSIVE if finding.status in _AT_BEST else finding.status
    message = f"as translated, {finding.status}: {finding.message}; is the translation what was meant?"
    return msgspec.structs.replace(
        finding,
        status=status,
        verified=False,
        is_valid=False,
        message=message,
        result={**finding.result, "translation": said},
        proof_ref=None,
    )


def _unknown(message: str) -> Finding:
    return Finding(status=Status.UNKNOWN, verified=False, is_valid=False, engine="router", result={}, message=message)

"""Consensus engine: one claim, several independent methods, and whether they agree.

Methods that cannot decide abstain. A disagreement is neither VERIFIED nor FAILED: one method is wrong, and the engine
does not say which.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qwed.engines._consensus_methods import CERTAIN, LOGIC, MATH, UNSURE, Method, Opinion
from qwed.engines.protocol import EngineRequest
from qwed.engines.router import route
from qwed.model import Status, Verdict

ENGINE = "consensus"
DEFAULT_CONFIDENCE = 0.8
MODES = {"single": 1, "high": 2, "maximum": 2}
"""Minimum number of agreeing methods; `maximum` runs every method."""
METHODS: dict[str, tuple[Method, ...]] = {"math": MATH, "logic": LOGIC}


class MethodResult(NamedTuple):
    """Result of one method."""

    method: Method
    opinion: Opinion
    milliseconds: float


def verify(request: EngineRequest) -> Verdict:
    """Return VERIFIED or FAILED if enough methods agree, otherwise INCONCLUSIVE."""
    parsed = _parse_parameters(request.parameters)
    if isinstance(parsed, Verdict):
        return parsed
    mode, least = parsed
    routed = route(request.query)
    methods = METHODS.get(routed.engine if routed else "", ())
    if not methods:
        message = "independent methods are known for formulas and logic only: write a claim such as `2+2 = 4`"
        return _verdict(Status.INCONCLUSIVE, message, failed=("claim_understood",))
    return _combine_opinions(_run_methods(methods, request.query, mode), mode, least)


def _parse_parameters(parameters: Mapping[str, Any]) -> tuple[str, float] | Verdict:
    modes = [parameters[name] for name in ("verification_mode", "mode") if name in parameters] or ["single"]
    mode = modes[0]
    min_confidence = parameters.get("min_confidence", DEFAULT_CONFIDENCE)
    if not isinstance(mode, str) or mode not in MODES or any(other != mode for other in modes):
        names = ", ".join(MODES)
        return _verdict(Status.BLOCKED, f"unknown verification_mode, use one of {names}", failed=("parameters_valid",))
    if isinstance(min_confidence, bool) or not isinstance(min_confidence, int | float) or not 0 <= min_confidence <= 1:
        return _verdict(Status.BLOCKED, "min_confidence must be from 0 to 1", failed=("parameters_valid",))
    return mode, float(min_confidence)


def _run_methods(methods: Sequence[Method], text: str, mode: str) -> list[MethodResult]:
    """Run the methods in order until enough of them could decide."""
    chain: list[MethodResult] = []
    for method in methods:
        started = time.perf_counter()
        opinion = method.ask(text)
        chain.append(MethodResult(method, opinion, round((time.perf_counter() - started) * 1000, 3)))
        decided = [link.opinion for link in chain if link.opinion != UNSURE]
        if mode != "maximum" and len(decided) >= MODES[mode] and _is_proven(decided):
            break
    return chain


def _combine_opinions(chain: list[MethodResult], mode: str, min_confidence: float) -> Verdict:
    decided = [link.opinion for link in chain if link.opinion.holds is not None]
    values = {opinion.answer for opinion in (link.opinion for link in chain) if opinion.answer}
    if not decided and len(values) == 1:
        return _value_verdict(chain, mode, values.pop())
    agreement = _agreement(decided, mode)
    confidence = _confidence(decided) if agreement in ("unanimous", "single") else 0.0
    enough = agreement in ("unanimous", "single") and confidence >= min_confidence and _is_proven(decided)
    holds = decided[0].holds if enough else None
    result = _result(chain, agreement, confidence, enough, None if holds is None else str(holds).lower())
    if holds is None:
        return _verdict(
            Status.INCONCLUSIVE,
            _no_consensus_message(agreement, len(decided), mode),
            failed=("methods_agree",),
            **result,
        )
    how = f"{len(decided)} independent method{'s' if len(decided) > 1 else ''}"
    if holds:
        return _verdict(Status.VERIFIED, f"it holds by {how}", passed=("methods_agree", "claim_holds"), **result)
    return _verdict(
        Status.FAILED, f"it does not hold by {how}", passed=("methods_agree",), failed=("claim_holds",), **result
    )


def _is_proven(opinions: Sequence[Opinion]) -> bool:
    """Return True if one opinion is certain: sampling alone is no proof."""
    return any(opinion.confidence == CERTAIN for opinion in opinions)


def _agreement(opinions: Sequence[Opinion], mode: str) -> str:
    if len({opinion.holds for opinion in opinions}) > 1:
        return "disagreement"
    if len(opinions) < MODES[mode]:
        return "insufficient"
    return "single" if len(opinions) == 1 else "unanimous"


def _confidence(opinions: Sequence[Opinion]) -> float:
    """Return the joint confidence of independent opinions."""
    doubt = 1.0
    for opinion in opinions:
        doubt *= 1 - opinion.confidence
    return round(1 - doubt, 6)


def _no_consensus_message(agreement: str, count: int, mode: str) -> str:
    if agreement == "disagreement":
        return "the methods disagree"
    if agreement == "insufficient":
        return f"{count} of the {MODES[mode]} methods that `{mode}` needs could decide"
    return "the methods agree, but none of them proves it, or with less confidence than was asked for"


def _value_verdict(chain: list[MethodResult], mode: str, value: str) -> Verdict:
    """Return SIMPLIFIED with the value that the methods agree on, for an expression without a claim."""
    opinions = [link.opinion for link in chain if link.opinion.answer]
    enough = len(opinions) >= MODES[mode]
    result = _result(chain, "unanimous" if len(opinions) > 1 else "single", _confidence(opinions), enough, value)
    return _verdict(Status.SIMPLIFIED, f"it is {value}", passed=("methods_agree",), **result)


def _result(
    chain: Sequence[MethodResult], agreement: str, confidence: float, enough: bool, answer: str | None
) -> dict[str, Any]:
    return {
        "final_answer": answer,
        "confidence": confidence,
        "engines_used": [link.method.engine for link in chain],
        "agreement_status": agreement,
        "meets_requirement": enough,
        "verification_chain": [
            {
                "engine": link.method.engine,
                "method": link.method.name,
                "result": link.opinion.answer or _opinion_text(link.opinion),
                "confidence": link.opinion.confidence,
                "latency_ms": link.milliseconds,
                "success": link.opinion != UNSURE,
            }
            for link in chain
        ],
    }


def _opinion_text(opinion: Opinion) -> str | None:
    return None if opinion.holds is None else str(opinion.holds).lower()


def _verdict(
    status: Status, message: str, *, passed: tuple[str, ...] = (), failed: tuple[str, ...] = (), **result: Any
) -> Verdict:
    return Verdict(
        status=status, engine=ENGINE, message=message, checks_passed=passed, checks_failed=failed, result=result
    )

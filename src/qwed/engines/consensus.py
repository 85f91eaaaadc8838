"""INTERFACES 2, consensus: one claim, several independent methods, and whether they agree.

Methods that cannot tell abstain. A disagreement between those that can is never VERIFIED and never FAILED: one of them
is wrong, and this engine does not say which.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qwed.engines._consensus_methods import CERTAIN, LOGIC, MATH, UNSURE, Method, Opinion
from qwed.engines.protocol import EngineRequest
from qwed.engines.router import route
from qwed.words import Status, Verdict

ENGINE = "consensus"
DEFAULT_CONFIDENCE = 0.8
MODES = {"single": 1, "high": 2, "maximum": 2}
"""How many methods must agree at least; `maximum` asks every method there is."""
_METHODS: dict[str, tuple[Method, ...]] = {"math": MATH, "logic": LOGIC}


class Link(NamedTuple):
    """One method's turn."""

    method: Method
    opinion: Opinion
    milliseconds: float


def verify(request: EngineRequest) -> Verdict:
    """VERIFIED or FAILED where enough methods agree on it, INCONCLUSIVE where they do not."""
    wanted = _wanted(request.parameters)
    if isinstance(wanted, Verdict):
        return wanted
    mode, least = wanted
    routed = route(request.query)
    methods = _METHODS.get(routed.engine if routed else "", ())
    if not methods:
        message = "independent methods are known for formulas and logic only: write a claim such as `2+2 = 4`"
        return _verdict(Status.INCONCLUSIVE, message, failed=("claim_understood",))
    return _judged(_asked(methods, request.query, mode), mode, least)


def _wanted(parameters: Mapping[str, Any]) -> tuple[str, float] | Verdict:
    modes = [parameters[name] for name in ("verification_mode", "mode") if name in parameters] or ["single"]
    mode = modes[0]
    least = parameters.get("min_confidence", DEFAULT_CONFIDENCE)
    if not isinstance(mode, str) or mode not in MODES or any(other != mode for other in modes):
        known = ", ".join(MODES)
        return _verdict(Status.BLOCKED, f"unknown verification_mode, use one of {known}", failed=("parameters_valid",))
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        return _verdict(Status.BLOCKED, "min_confidence must be from 0 to 1", failed=("parameters_valid",))
    return mode, float(least)


def _asked(methods: Sequence[Method], text: str, mode: str) -> list[Link]:
    """Each method's turn, until enough of them could tell."""
    chain: list[Link] = []
    for method in methods:
        started = time.perf_counter()
        opinion = method.ask(text)
        chain.append(Link(method, opinion, round((time.perf_counter() - started) * 1000, 3)))
        told = [link.opinion for link in chain if link.opinion != UNSURE]
        if mode != "maximum" and len(told) >= MODES[mode] and _is_proven(told):
            break
    return chain


def _judged(chain: list[Link], mode: str, least: float) -> Verdict:
    told = [link.opinion for link in chain if link.opinion.holds is not None]
    values = {opinion.answer for opinion in (link.opinion for link in chain) if opinion.answer}
    if not told and len(values) == 1:
        return _computed(chain, mode, values.pop())
    agreement = _agreement(told, mode)
    confidence = _confidence(told) if agreement in ("unanimous", "single") else 0.0
    enough = agreement in ("unanimous", "single") and confidence >= least and _is_proven(told)
    holds = told[0].holds if enough else None
    result = _result(chain, agreement, confidence, enough, None if holds is None else str(holds).lower())
    if holds is None:
        return _verdict(Status.INCONCLUSIVE, _why_not(agreement, len(told), mode), failed=("methods_agree",), **result)
    how = f"{len(told)} independent method{'s' if len(told) > 1 else ''}"
    if holds:
        return _verdict(Status.VERIFIED, f"it holds by {how}", passed=("methods_agree", "claim_holds"), **result)
    return _verdict(
        Status.FAILED, f"it does not hold by {how}", passed=("methods_agree",), failed=("claim_holds",), **result
    )


def _is_proven(told: Sequence[Opinion]) -> bool:
    """Whether one of them is certain: what merely held wherever it was tried may fail elsewhere."""
    return any(opinion.confidence == CERTAIN for opinion in told)


def _agreement(told: Sequence[Opinion], mode: str) -> str:
    if len({opinion.holds for opinion in told}) > 1:
        return "disagreement"
    if len(told) < MODES[mode]:
        return "insufficient"
    return "single" if len(told) == 1 else "unanimous"


def _confidence(told: Sequence[Opinion]) -> float:
    """How sure they are together: each one leaves a share of doubt."""
    doubt = 1.0
    for opinion in told:
        doubt *= 1 - opinion.confidence
    return round(1 - doubt, 6)


def _why_not(agreement: str, told: int, mode: str) -> str:
    if agreement == "disagreement":
        return "the methods disagree, so nothing is said about it"
    if agreement == "insufficient":
        return f"{told} of the {MODES[mode]} methods that `{mode}` needs could tell"
    return "the methods agree, but none of them proves it, or with less confidence than was asked for"


def _computed(chain: list[Link], mode: str, value: str) -> Verdict:
    """A bare expression: nothing was claimed, and the value is what the methods agree on."""
    told = [link.opinion for link in chain if link.opinion.answer]
    enough = len(told) >= MODES[mode]
    result = _result(chain, "unanimous" if len(told) > 1 else "single", _confidence(told), enough, value)
    return _verdict(Status.SIMPLIFIED, f"it is {value}", passed=("methods_agree",), **result)


def _result(
    chain: Sequence[Link], agreement: str, confidence: float, enough: bool, answer: str | None
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
                "result": link.opinion.answer or _said(link.opinion),
                "confidence": link.opinion.confidence,
                "latency_ms": link.milliseconds,
                "success": link.opinion != UNSURE,
            }
            for link in chain
        ],
    }


def _said(opinion: Opinion) -> str | None:
    return None if opinion.holds is None else str(opinion.holds).lower()


def _verdict(
    status: Status, message: str, *, passed: tuple[str, ...] = (), failed: tuple[str, ...] = (), **result: Any
) -> Verdict:
    return Verdict(
        status=status, engine=ENGINE, message=message, checks_passed=passed, checks_failed=failed, result=result
    )

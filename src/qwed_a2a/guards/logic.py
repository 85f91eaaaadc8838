"""Logic guard: a message that contradicts itself is refused.

First claims that are both asserted and denied, in any spelling; then comparisons with numbers; then the logic engine. A
formula that cannot be decided is refused too. Prose that is not a formula is compared as text and passes, and the
result says how much of it there was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from qwed.engines.protocol import EngineRequest
from qwed.engines.verdict_cache import VerdictRequest, VerdictSource
from qwed.futures import Future
from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed.model import Status, Verdict, sha256_of
from qwed_a2a.guards._logic.assertions import Assertion, AssertionFormatError, read_assertions
from qwed_a2a.guards._logic.comparisons import count_undecided, find_contradiction, parse_comparisons
from qwed_a2a.guards._logic.propositions import Proposition, is_formal, parse_proposition

_ENGINE = EngineName.LOGIC_GUARD
_MAX_LISTED = 5
"""Claims of a contradiction that a reason lists; the details have all of them."""


async def check_logic(payload: Mapping[str, Any], engines: VerdictSource) -> MessageVerdict:
    """Return a refusal if the assertions contradict each other or cannot be decided, else a pass."""
    try:
        claims = _parse_propositions(read_assertions(payload))
    except AssertionFormatError as error:
        return MessageVerdict(False, _ENGINE, str(error))
    denial = _find_denial(claims)
    if denial is not None:
        return _contradiction(claims, denial, "negation")
    compared = parse_comparisons(claims)
    impossible = find_contradiction(compared.values())
    if impossible is not None:
        return _contradiction(claims, impossible, "comparison")
    undecided = count_undecided(claims, compared)
    if len(compared) == len(claims):
        return _passed(claims, texts=undecided)
    numbers = [number for number in range(len(claims)) if number not in compared or compared[number].is_plain]
    verdict = await _ask_engine(engines, [claims[number] for number in numbers])
    return _verdict_result(claims, numbers, verdict, undecided)


def _parse_propositions(assertions: Sequence[Assertion]) -> tuple[Proposition, ...]:
    propositions: list[Proposition] = []
    for number, assertion in enumerate(assertions):
        try:
            propositions.append(parse_proposition(assertion))
        except AssertionFormatError as error:
            raise AssertionFormatError(f"`assertions[{number}]` {error}") from None
    return tuple(propositions)


def _find_denial(propositions: Sequence[Proposition]) -> tuple[int, int] | None:
    """Return the first claim that denies another one, after that other one, or None."""
    first: dict[tuple[str, bool], int] = {}
    for number, claim in enumerate(propositions):
        other = first.get((claim.key, not claim.key_negative))
        if other is not None:
            return other, number
        first.setdefault((claim.key, claim.key_negative), number)
    return None


async def _ask_engine(engines: VerdictSource, propositions: Sequence[Proposition]) -> Verdict:
    claims = [_engine_claim(proposition) for proposition in propositions]
    request = EngineRequest(parameters={"claims": claims})
    # Without an owner, so that it is not cached: a cached answer would reveal by its speed what others asked.
    verdict = engines.ask(VerdictRequest("", "logic", sha256_of(claims), request))
    return await verdict if isinstance(verdict, Future) else verdict


def _engine_claim(proposition: Proposition) -> dict[str, Any]:
    """Return a formula without its negations, since the engine knows fewer words for them, or a sentence unchanged."""
    if is_formal(proposition):
        return {"claim": proposition.formula, "negated": proposition.negative}
    return {"claim": proposition.text, "negated": proposition.negated}


def _verdict_result(
    claims: Sequence[Proposition], numbers: Sequence[int], verdict: Verdict, undecided: int
) -> MessageVerdict:
    result = verdict.result
    if result.get("contradictory") is True:
        return _contradiction(claims, [numbers[number] for number in result["unsat_core"]], "logic engine")
    if verdict.status is Status.VERIFIED or result.get("reason") == "text":
        return _passed(claims, texts=undecided + len(result["text"]), sentences=len(result["sentence"]))
    which = f"`assertions[{numbers[result['claim']]}]`" if "claim" in result else "the assertions"
    reason = f"{which} could not be decided: {result.get('why', verdict.message)}"
    return MessageVerdict(False, _ENGINE, reason, {"assertions": len(claims), "undecided": True})


def _contradiction(claims: Sequence[Proposition], numbers: Sequence[int], by: str) -> MessageVerdict:
    positions = [f"`assertions[{number}]`" for number in numbers[:_MAX_LISTED]]
    if len(numbers) > _MAX_LISTED:
        positions.append(f"{len(numbers) - _MAX_LISTED} more")
    listed = f"{', '.join(positions[:-1])} and {positions[-1]}" if len(positions) > 1 else positions[0]
    verb = "contradict each other" if len(positions) > 1 else "contradicts itself"
    details = {"assertions": len(claims), "contradicting": list(numbers), "found_by": by}
    return MessageVerdict(False, _ENGINE, f"{listed} {verb}", details)


def _passed(claims: Sequence[Proposition], *, texts: int, sentences: int = 0) -> MessageVerdict:
    others = texts + sentences
    details = {"assertions": len(claims), "formulas": len(claims) - others, "sentences": sentences, "text_only": texts}
    if not others:
        return MessageVerdict(True, _ENGINE, "the assertions can all be true", details)
    reason = f"no contradiction was found; {others} of {len(claims)} assertions are not decidable formulas"
    return MessageVerdict(True, _ENGINE, reason, details)

"""Logic Guard: a message that says one thing and denies it, or whose claims cannot all be true, is not forwarded.

First what is asserted here and denied there, whatever its spelling; then comparisons with numbers; then whatever the
logic engine reads. A formula that is not decided is not forwarded either. Prose that is no formula is compared as text
and forwarded, and the finding says how much of it there was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from qwed.engines.protocol import EngineRequest
from qwed.engines.verdicts import Asks, Question
from qwed.waiting import Ticket
from qwed.words import Status, Verdict, sha256_of
from qwed_a2a.finding import Finding
from qwed_a2a.guards._logic.assertions import Assertion, Unverifiable, read_assertions
from qwed_a2a.guards._logic.comparisons import comparisons_of, contradiction_in, left_open
from qwed_a2a.guards._logic.propositions import Proposition, is_formal, proposition

_SHOWN = 5
"""How many claims of a contradiction a reason lists; the details have all of them."""


async def check_logic(payload: Mapping[str, Any], engines: Asks) -> Finding:
    """Whether the assertions contradict each other, as far as that can be told."""
    try:
        said = _said(read_assertions(payload))
    except Unverifiable as wrong:
        return Finding(False, str(wrong))
    denied = _denied(said)
    if denied is not None:
        return _contradiction(said, denied, "negation")
    compared = comparisons_of(said)
    impossible = contradiction_in(compared.values())
    if impossible is not None:
        return _contradiction(said, impossible, "comparison")
    open_ = left_open(said, compared)
    if len(compared) == len(said):
        return _passed(said, texts=open_)
    asked = [number for number in range(len(said)) if number not in compared or compared[number].is_plain]
    verdict = await _asked(engines, [said[number] for number in asked])
    return _told(said, asked, verdict, open_)


def _said(assertions: Sequence[Assertion]) -> tuple[Proposition, ...]:
    found: list[Proposition] = []
    for number, each in enumerate(assertions):
        try:
            found.append(proposition(each))
        except Unverifiable as wrong:
            raise Unverifiable(f"`assertions[{number}]` {wrong}") from None
    return tuple(found)


def _denied(said: Sequence[Proposition]) -> tuple[int, int] | None:
    """The first claim that denies another one, and that other one."""
    first: dict[tuple[str, bool], int] = {}
    for number, each in enumerate(said):
        other = first.get((each.key, not each.key_negative))
        if other is not None:
            return other, number
        first.setdefault((each.key, each.key_negative), number)
    return None


async def _asked(engines: Asks, said: Sequence[Proposition]) -> Verdict:
    claims = [_claim(each) for each in said]
    request = EngineRequest(parameters={"claims": claims})
    # Nobody's in particular, and so remembered for nobody: what was asked would be told by how soon it is answered.
    asked = engines.ask(Question("", "logic", sha256_of(claims), request))
    return await asked if isinstance(asked, Ticket) else asked


def _claim(said: Proposition) -> dict[str, Any]:
    """A formula without its negations, since the engine knows fewer words for them; a sentence as it stands."""
    if is_formal(said):
        return {"claim": said.formula, "negated": said.negative}
    return {"claim": said.text, "negated": said.negated}


def _told(said: Sequence[Proposition], asked: Sequence[int], verdict: Verdict, open_: int) -> Finding:
    result = verdict.result
    if result.get("contradictory") is True:
        return _contradiction(said, [asked[number] for number in result["unsat_core"]], "logic engine")
    if verdict.status is Status.VERIFIED or result.get("reason") == "text":
        return _passed(said, texts=open_ + len(result["text"]), sentences=len(result["sentence"]))
    which = f"`assertions[{asked[result['claim']]}]`" if "claim" in result else "the assertions"
    reason = f"{which} could not be decided: {result.get('why', verdict.message)}"
    return Finding(False, reason, {"assertions": len(said), "undecided": True})


def _contradiction(said: Sequence[Proposition], numbers: Sequence[int], by: str) -> Finding:
    places = [f"`assertions[{number}]`" for number in numbers[:_SHOWN]]
    if len(numbers) > _SHOWN:
        places.append(f"{len(numbers) - _SHOWN} more")
    listed = f"{', '.join(places[:-1])} and {places[-1]}" if len(places) > 1 else places[0]
    verb = "contradict each other" if len(places) > 1 else "contradicts itself"
    details = {"assertions": len(said), "contradicting": list(numbers), "found_by": by}
    return Finding(False, f"{listed} {verb}", details)


def _passed(said: Sequence[Proposition], *, texts: int, sentences: int = 0) -> Finding:
    others = texts + sentences
    details = {"assertions": len(said), "formulas": len(said) - others, "sentences": sentences, "text_only": texts}
    if not others:
        return Finding(True, "the assertions can all be true", details)
    reason = f"no contradiction was found; {others} of {len(said)} assertions are no formulas that can be decided"
    return Finding(True, reason, details)

"""The fact engine: whether a context states a claim, states the contrary, or neither, with the sentence that does.

A sentence is evidence only where its wording is the claim's up to the tables of `_fact_words`; then numbers, dates,
names, quantifiers, opposites and denials decide. How alike two sentences are only picks what is shown.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rapidfuzz import fuzz

from qwed.engines._fact.clauses import Clause, clause_of, clauses_of, pieces_of
from qwed.engines._fact.numbers import Quantity
from qwed.engines._fact.parts import distributed, untitled
from qwed.engines._fact.relation import REFUTES, SUPPORTS, Relation, relate
from qwed.engines._fact.text import MAX_CLAIM, MAX_CONTEXT, Sentence, Token, deceptive, sentences_of, tokens_of
from qwed.engines._fact.words import ANAPHORA, PRONOUNS, stem
from qwed.engines.protocol import EngineRequest
from qwed.words import Status, Verdict

_STATUS = {"SUPPORTED": Status.VERIFIED, "REFUTED": Status.FAILED, "NOT_ENOUGH_INFO": Status.INCONCLUSIVE}
_SHOWN = 500
_MAX_PARTS = 20


class _Finding(NamedTuple):
    """What the context says of one part of a claim."""

    verdict: str
    message: str
    evidence: Sentence | None = None
    slot: str = ""


class _Read(NamedTuple):
    """A sentence, the stems that it must share with a claim to be compared with it, and its clauses once read."""

    sentence: Sentence
    stems: frozenset[str]
    known: dict[str, list[Clause]]

    @property
    def clauses(self) -> list[Clause]:
        """What the sentence states; a sentence that stands twice is read once."""
        text = self.sentence.text
        if text not in self.known:
            tokens = tokens_of(text)
            stated = [clause for piece in pieces_of(tokens) for clause in clauses_of(piece)]
            each = [clause for piece in distributed(tokens) for clause in clauses_of(piece) if not _counts(clause)]
            somebody = [clause for piece in untitled(tokens) for clause in clauses_of(piece)]
            self.known[text] = stated + [clause._replace(weaker=True) for clause in (*each, *somebody)]
        return self.known[text]


def _counts(clause: Clause) -> bool:
    """Whether a number may be that of both together."""
    return any(isinstance(item.slot, Quantity) for item in clause.items)


def verify(request: EngineRequest) -> Verdict:
    """SUPPORTED, REFUTED or NOT_ENOUGH_INFO of the claim in `query` by the text in `context`."""
    claim, context = request.query, request.parameters.get("context")
    problem = _problem(claim, context)
    if problem:
        return Verdict(status=Status.BLOCKED, engine="fact", message=problem, checks_failed=("input_valid",))
    text = str(context)
    known: dict[str, list[Clause]] = {}
    read = [_Read(sentence, _stems(sentence.text), known) for sentence in sentences_of(text)]
    parts = [_judge(part.text, read) for part in sentences_of(claim)[:_MAX_PARTS]]
    return _told(_all(parts), text)


def _problem(claim: object, context: object) -> str:
    if not isinstance(claim, str) or not claim.strip():
        return "no claim was given"
    if not isinstance(context, str) or not context.strip():
        return "no context was given: send the text to check against as `context`"
    if len(claim) > MAX_CLAIM or len(context) > MAX_CONTEXT:
        return f"a claim has at most {MAX_CLAIM} characters and a context {MAX_CONTEXT}"
    if len(sentences_of(claim)) > _MAX_PARTS:
        return f"a claim has at most {_MAX_PARTS} sentences"
    for name, text in (("claim", claim), ("context", context)):
        deceit = deceptive(text)
        if deceit:
            return f"the {name} holds {deceit}: send it in plain letters"
    return ""


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(token.text).stem for token in tokens_of(text) if token.kind == "word")


def _judge(claim: str, read: Sequence[_Read]) -> _Finding:
    tokens = tokens_of(claim)
    words = [token for token in tokens if token.kind == "word"]
    if not words or claim.rstrip().endswith("?"):
        return _Finding("NOT_ENOUGH_INFO", "the claim states nothing")
    vague = next((word for n, word in enumerate(words) if word.text in ANAPHORA or (not n and _anaphoric(word))), None)
    if vague is not None:
        return _Finding("NOT_ENOUGH_INFO", f"`{vague.written}` does not say who or what is meant: name it")
    whole = _weighed(_clauses([tokens]), read, claim)
    if whole.verdict != "NOT_ENOUGH_INFO" or (whole.evidence is not None and whole.slot):
        return whole
    conjuncts = pieces_of(tokens)[1:]
    if len(conjuncts) < 2:
        return whole
    return _all([_weighed(_clauses([part]), read, claim) for part in conjuncts])


def _anaphoric(word: Token) -> bool:
    return word.text in PRONOUNS and not (word.written.isupper() and len(word.written) > 1)


def _clauses(pieces: Sequence[Any]) -> list[Clause]:
    return [clause for piece in pieces for clause in clause_of(piece) if not clause.weaker]


def _weighed(claims: Sequence[Clause], read: Sequence[_Read], claim: str) -> _Finding:
    """What all sentences together say of one clause."""
    found: dict[str, tuple[Sentence, Relation]] = {}
    wanted = _stems(claim)
    for each in read:
        if not each.sentence.stated or 3 * len(wanted & each.stems) < len(wanted):
            continue
        relation = _relation(each.clauses, claims)
        if relation is not None:
            found.setdefault(relation.kind, (each.sentence, relation))
    if len(found) == 2:
        sentence = found[REFUTES][0]
        return _Finding("NOT_ENOUGH_INFO", "the context contradicts itself about the claim", sentence, "contradiction")
    if SUPPORTS in found:
        return _Finding("SUPPORTED", "the context states it", found[SUPPORTS][0])
    if REFUTES in found:
        sentence, relation = found[REFUTES]
        return _Finding("REFUTED", f"the context contradicts its {relation.slot}", sentence, relation.slot)
    return _Finding("NOT_ENOUGH_INFO", "no sentence of the context states it or the contrary", _closest(claim, read))


def _relation(stated: Sequence[Clause], claims: Sequence[Clause]) -> Relation | None:
    """What one sentence says of a clause; nothing where its readings disagree."""
    found = [relation for evidence in stated for claim in claims if (relation := relate(evidence, claim)) is not None]
    if len({relation.kind for relation in found}) == 2:
        return None
    return next(iter(found), None)


def _closest(claim: str, read: Sequence[_Read]) -> Sentence | None:
    scored = ((fuzz.token_set_ratio(claim, each.sentence.text[:2000]), -n) for n, each in enumerate(read))
    score, place = max(scored, default=(0.0, 0))
    return read[-place].sentence if score >= 50 else None


def _all(parts: Sequence[_Finding]) -> _Finding:
    """Every part has to be supported; one that is refuted refutes the whole."""
    for verdict in ("REFUTED", "NOT_ENOUGH_INFO"):
        first = next((part for part in parts if part.verdict == verdict), None)
        if first is not None:
            return first
    return parts[0] if parts else _Finding("NOT_ENOUGH_INFO", "the claim states nothing")


def _told(finding: _Finding, context: str) -> Verdict:
    status = _STATUS[finding.verdict]
    result: dict[str, Any] = {"verdict": finding.verdict}
    if finding.evidence is not None:
        start, end = finding.evidence.start, finding.evidence.end
        key = "evidence" if status is not Status.INCONCLUSIVE or finding.slot else "closest"
        result[key] = {"sentence": context[start:end][:_SHOWN], "start": start, "end": end}
    if finding.slot:
        result["slot"] = finding.slot
    return Verdict(
        status=status,
        engine="fact",
        message=finding.message,
        checks_passed=("claim_supported",) if status is Status.VERIFIED else (),
        checks_failed=() if status is Status.VERIFIED else ("claim_supported",),
        result=result,
    )

"""Fact engine: whether a context states a claim, its contrary, or neither, with the sentence as evidence.

A sentence is evidence only if its wording equals the claim's up to the tables of `_fact/lexicon.py`; then numbers,
dates, names, quantifiers, opposites and negations decide. Similarity of sentences only selects what is shown.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rapidfuzz import fuzz

from qwed.engines._fact.clauses import Clause, clause_of, clauses_of, pieces_of
from qwed.engines._fact.distribution import distribute_conjunction, without_title
from qwed.engines._fact.entailment import REFUTES, SUPPORTS, Relation, relate
from qwed.engines._fact.lexicon import ANAPHORA, PRONOUNS, stem
from qwed.engines._fact.numbers import Quantity
from qwed.engines._fact.text import (
    MAX_CLAIM,
    MAX_CONTEXT,
    FactToken,
    Sentence,
    deceptive_characters,
    sentences_of,
    tokens_of,
)
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict

_STATUS = {"SUPPORTED": Status.VERIFIED, "REFUTED": Status.FAILED, "NOT_ENOUGH_INFO": Status.INCONCLUSIVE}
_MAX_EXCERPT = 500
_MAX_PARTS = 20


class _ClaimFinding(NamedTuple):
    """Result for one part of a claim."""

    verdict: str
    message: str
    evidence: Sentence | None = None
    slot: str = ""


class _ParsedSentence(NamedTuple):
    """A sentence, its stems for pre-selection, and its lazily parsed clauses."""

    sentence: Sentence
    stems: frozenset[str]
    known: dict[str, list[Clause]]

    @property
    def clauses(self) -> list[Clause]:
        """Clauses that the sentence states; equal sentences are parsed once."""
        text = self.sentence.text
        if text not in self.known:
            tokens = tokens_of(text)
            stated = [clause for piece in pieces_of(tokens) for clause in clauses_of(piece)]
            distributed = [
                clause
                for piece in distribute_conjunction(tokens)
                for clause in clauses_of(piece)
                if not _counts(clause)
            ]
            untitled = [clause for piece in without_title(tokens) for clause in clauses_of(piece)]
            self.known[text] = stated + [clause._replace(weaker=True) for clause in (*distributed, *untitled)]
        return self.known[text]


def _counts(clause: Clause) -> bool:
    """Return True if a number in the clause may be a joint total."""
    return any(isinstance(item.slot, Quantity) for item in clause.items)


def verify(request: EngineRequest) -> Verdict:
    """Return SUPPORTED, REFUTED or NOT_ENOUGH_INFO for the claim in `query` given the text in `context`."""
    claim, context = request.query, request.parameters.get("context")
    problem = _input_error(claim, context)
    if problem:
        return Verdict(status=Status.BLOCKED, engine="fact", message=problem, checks_failed=("input_valid",))
    text = str(context)
    clause_cache: dict[str, list[Clause]] = {}
    parsed = [_ParsedSentence(sentence, _stems(sentence.text), clause_cache) for sentence in sentences_of(text)]
    parts = [_judge_sentence(part.text, parsed) for part in sentences_of(claim)[:_MAX_PARTS]]
    return _verdict_of(_combine(parts), text)


def _input_error(claim: object, context: object) -> str:
    if not isinstance(claim, str) or not claim.strip():
        return "no claim was given"
    if not isinstance(context, str) or not context.strip():
        return "no context was given: send the text to check against as `context`"
    if len(claim) > MAX_CLAIM or len(context) > MAX_CONTEXT:
        return f"a claim has at most {MAX_CLAIM} characters and a context {MAX_CONTEXT}"
    if len(sentences_of(claim)) > _MAX_PARTS:
        return f"a claim has at most {_MAX_PARTS} sentences"
    for name, text in (("claim", claim), ("context", context)):
        deceit = deceptive_characters(text)
        if deceit:
            return f"the {name} contains {deceit}: send it in plain letters"
    return ""


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(token.text).stem for token in tokens_of(text) if token.kind == "word")


def _judge_sentence(claim: str, sentences: Sequence[_ParsedSentence]) -> _ClaimFinding:
    tokens = tokens_of(claim)
    words = [token for token in tokens if token.kind == "word"]
    if not words or claim.rstrip().endswith("?"):
        return _ClaimFinding("NOT_ENOUGH_INFO", "the claim states nothing")
    vague = next((word for n, word in enumerate(words) if word.text in ANAPHORA or (not n and _anaphoric(word))), None)
    if vague is not None:
        return _ClaimFinding("NOT_ENOUGH_INFO", f"`{vague.written}` does not say who or what is meant: name it")
    finding = _weigh_evidence(_clauses([tokens]), sentences, claim)
    if finding.verdict != "NOT_ENOUGH_INFO" or (finding.evidence is not None and finding.slot):
        return finding
    conjuncts = pieces_of(tokens)[1:]
    if len(conjuncts) < 2:
        return finding
    return _combine([_weigh_evidence(_clauses([part]), sentences, claim) for part in conjuncts])


def _anaphoric(word: FactToken) -> bool:
    return word.text in PRONOUNS and not (word.written.isupper() and len(word.written) > 1)


def _clauses(pieces: Sequence[Any]) -> list[Clause]:
    return [clause for piece in pieces for clause in clause_of(piece) if not clause.weaker]


def _weigh_evidence(claims: Sequence[Clause], sentences: Sequence[_ParsedSentence], claim: str) -> _ClaimFinding:
    """Return the finding of all sentences for one clause."""
    by_kind: dict[str, tuple[Sentence, Relation]] = {}
    claim_stems = _stems(claim)
    for candidate in sentences:
        if not candidate.sentence.stated or 3 * len(claim_stems & candidate.stems) < len(claim_stems):
            continue
        relation = _relation(candidate.clauses, claims)
        if relation is not None:
            by_kind.setdefault(relation.kind, (candidate.sentence, relation))
    if len(by_kind) == 2:
        sentence = by_kind[REFUTES][0]
        return _ClaimFinding(
            "NOT_ENOUGH_INFO", "the context contradicts itself about the claim", sentence, "contradiction"
        )
    if SUPPORTS in by_kind:
        return _ClaimFinding("SUPPORTED", "the context states it", by_kind[SUPPORTS][0])
    if REFUTES in by_kind:
        sentence, relation = by_kind[REFUTES]
        return _ClaimFinding("REFUTED", f"the context contradicts its {relation.slot}", sentence, relation.slot)
    return _ClaimFinding(
        "NOT_ENOUGH_INFO", "no sentence of the context states it or the contrary", _closest(claim, sentences)
    )


def _relation(stated: Sequence[Clause], claims: Sequence[Clause]) -> Relation | None:
    """Return the relation of one sentence to a clause, or None if its readings disagree."""
    relations = [
        relation for evidence in stated for claim in claims if (relation := relate(evidence, claim)) is not None
    ]
    if len({relation.kind for relation in relations}) == 2:
        return None
    return next(iter(relations), None)


def _closest(claim: str, sentences: Sequence[_ParsedSentence]) -> Sentence | None:
    scored = (
        (fuzz.token_set_ratio(claim, candidate.sentence.text[:2000]), -n) for n, candidate in enumerate(sentences)
    )
    score, negated_index = max(scored, default=(0.0, 0))
    return sentences[-negated_index].sentence if score >= 50 else None


def _combine(parts: Sequence[_ClaimFinding]) -> _ClaimFinding:
    """Combine the parts: all must be supported, and one refuted part refutes the whole."""
    for verdict in ("REFUTED", "NOT_ENOUGH_INFO"):
        first = next((part for part in parts if part.verdict == verdict), None)
        if first is not None:
            return first
    return parts[0] if parts else _ClaimFinding("NOT_ENOUGH_INFO", "the claim states nothing")


def _verdict_of(finding: _ClaimFinding, context: str) -> Verdict:
    status = _STATUS[finding.verdict]
    result: dict[str, Any] = {"verdict": finding.verdict}
    if finding.evidence is not None:
        start, end = finding.evidence.start, finding.evidence.end
        key = "evidence" if status is not Status.INCONCLUSIVE or finding.slot else "closest"
        result[key] = {"sentence": context[start:end][:_MAX_EXCERPT], "start": start, "end": end}
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

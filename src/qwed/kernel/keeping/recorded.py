"""What is kept of a decision: its leaf, and the content beside it."""

import time
from typing import NamedTuple

import msgspec

from qwed.kernel.answer import Problem
from qwed.kernel.case import Case
from qwed.kernel.change import GATE
from qwed.kernel.judging.content import read_content
from qwed.kernel.judging.judgement import Judgement
from qwed.kernel.keeping.hiding import Hiding
from qwed.kernel.keeping.payload import Payload, encoded, shown_action, shown_name, shown_text, with_more
from qwed.kernel.tools import A2A_MESSAGE, KNOWN_TYPES
from qwed.ledger import leaf
from qwed.ledger.attest import Chain
from qwed.store.parts import Approval
from qwed.words import Decision

_replace = msgspec.structs.replace


class Outcome(NamedTuple):
    """What was decided about a case, ready to be kept."""

    decision: Decision
    error: Problem | None
    activity_id: str
    approval: Approval | None
    attestation_id: str | None
    chain: Chain | None = None
    """Where its attestation stands in a chain."""


def asked_by(case: Case) -> str:
    """Who asks, as the log names them."""
    if case.by:
        return case.by
    if case.key is not None:
        return case.key.key_id
    return case.agent_id if case.credentials.agent_token is not None else GATE


def leaf_of(case: Case, outcome: Outcome, commitment: str, now: float) -> leaf.Leaf:
    """What is said for ever about a decision."""
    judged, context = case.judgement, case.context
    found = judged.verification if judged is not None else None
    permitted = outcome.decision.permits
    return leaf.Leaf(
        v=leaf.VERSION,
        about=None if case.message is None else case.message.trace_id,
        activity_id=outcome.activity_id,
        agent_id=case.agent_id,
        by=asked_by(case),
        commitment=commitment,
        action_type=_type_of(case),
        step_number=context.step_number if context is not None else None,
        decision=outcome.decision,
        error=outcome.error.code if outcome.error is not None else None,
        status=found.status if found is not None else None,
        engine=found.engine if found is not None else None,
        risk_level=found.risk_level if found is not None and case.message is None else None,
        cost_micros=case.charge.cost if permitted else 0,
        tokens=case.charge.tokens if permitted else 0,
        policy_hash=judged.policy_hash if judged is not None else None,
        attestation_id=outcome.attestation_id,
        repeats=case.unsaid,
        time_ms=int(now * 1000),
        latency_us=int((time.perf_counter() - case.started) * 1e6),
    )


def _type_of(case: Case) -> str | None:
    """What was asked about, where it is of a kind that we name."""
    if case.message is not None:
        return A2A_MESSAGE
    return case.action.type if case.action is not None and case.action.type in KNOWN_TYPES else None


def payload_of(case: Case, outcome: Outcome) -> str:
    """What is kept beside the leaf."""
    judged, context = case.judgement, case.context
    intent = context.user_intent if context is not None else None
    conversation_id = shown_name(context.conversation_id) if context is not None else None
    if judged is not None and intent is None and case.justification is None and _as_judged(judged, outcome):
        return with_more(judged.kept, conversation_id, outcome.chain)
    secret, said_more = _keeps_secret(case), intent is not None or case.justification is not None
    hiding = Hiding(case.action) if secret and (judged is None or said_more) else None
    about = judged.payload if judged is not None else _unjudged(case, hiding)
    if secret and outcome.attestation_id is None and outcome.approval is None:
        # Nothing will be attested: what carried a secret leaves no hash of it.
        about = _replace(about, sub=None)
    said = {"user_intent": shown_text(intent, hiding), "justification": shown_text(case.justification, hiding)}
    return encoded(_replace(about, error=outcome.error, conversation_id=conversation_id, chain=outcome.chain, **said))


def _as_judged(judged: Judgement, outcome: Outcome) -> bool:
    return not judged.keeps_secret and outcome.error is (None if judged.refusal is None else judged.refusal.error)


def _unjudged(case: Case, hiding: Hiding | None) -> Payload:
    if case.action is None:
        return Payload()
    # Of a message it is that of what it says, which nobody has looked through for secrets yet.
    action_hash = case.action_hash if hiding is None and case.message is None else None
    return Payload(action=shown_action(case.action, hiding), action_hash=action_hash)


def _keeps_secret(case: Case) -> bool:
    if case.judgement is not None:
        return case.judgement.keeps_secret
    return case.action is not None and bool(read_content(case.action).secrets)

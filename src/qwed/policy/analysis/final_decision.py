"""Final decision about a call: the policies, then the tables of status, trust and risk (DESIGN 11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from qwed.model.decision import Decision, Risk, Status, Trust
from qwed.model.decision_matrix import STATUS_MATRIX, TRUST_MATRIX
from qwed.model.effect import EffectKind
from qwed.policy.analysis.rule_encoder import Answers
from qwed.policy.analysis.symbols import Formula, SymbolicCall, any_of, solver_library
from qwed.policy.analysis.terms import Kind
from qwed.policy.document import PolicyAnswer
from qwed.policy.policy_input import PolicyInput, PolicyOutcome

STATUSES = tuple(
    status for status, row in STATUS_MATRIX.items() if any(cell is not Decision.DENIED for cell in row.values())
)
"""Statuses of a verification that a policy can decide about; every other one denies whatever the policies say."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Inputs of the final decision besides the policies and what they see."""

    status: Status = Status.VERIFIED
    needs_person: bool = False
    """True if a person must approve the call whatever trust says: a dangerous tool, a risk threshold, personal data."""


def final_decision(outcome: PolicyOutcome, call: PolicyInput, circumstances: Circumstances) -> Decision:
    """Return the final decision about a call for which the policies have this outcome."""
    by_status = STATUS_MATRIX[circumstances.status][call.risk]
    by_trust = TRUST_MATRIX[Trust(call.agent.trust)][call.risk]
    by_person = Decision.PENDING if circumstances.needs_person else Decision.APPROVED
    if outcome.then is PolicyAnswer.DENY or by_status is Decision.DENIED:
        return Decision.DENIED
    if outcome.then is PolicyAnswer.ASK:
        is_refused = by_trust is Decision.DENIED and not outcome.overrides_trust
        return Decision.DENIED if is_refused else Decision.PENDING
    is_unresolved = any(effect.kind is EffectKind.UNRESOLVED for effect in call.effects)
    if outcome.then is PolicyAnswer.ALLOW and (outcome.names_unresolved or not is_unresolved):
        return _strictest(by_status, by_person)
    return _strictest(by_status, by_person, by_trust)


def _strictest(*decisions: Decision) -> Decision:
    order = (Decision.APPROVED, Decision.CORRECTED, Decision.PENDING, Decision.DENIED)
    return max(decisions, key=order.index)


class FinalFormulas(NamedTuple):
    """When a call is allowed, asked about or denied."""

    allowed: Formula
    asked: Formula
    denied: Formula


class Surroundings:
    """Tables and circumstances of a symbolic call, which are the same for every policy set."""

    def __init__(self, call: SymbolicCall) -> None:
        z3 = solver_library()
        self._risk, self._trust = call.risk, call.level("agent.trust")
        self._status = call.constant("status", Kind.INT)
        self._needs_person = call.boolean("needs person")
        # Only a call of a tool has a tool of another name than its type.
        call.known.append(
            z3.Or(
                call.is_text("action.type", "tool_call"),
                call.is_text("tool.name", ""),
                call.is_same_text("tool.name", "action.type"),
            )
        )
        call.known.append(z3.And(self._status >= 0, self._status < len(STATUSES)))
        call.preferred.append(self._status == STATUSES.index(Status.VERIFIED))
        call.preferred.append(z3.Not(self._needs_person))
        self._status_allows = self._cells(
            self._status, {STATUSES.index(status): STATUS_MATRIX[status] for status in STATUSES}, _PERMITTING
        )
        self._trust_allows = self._cells(self._trust, TRUST_MATRIX, _PERMITTING)
        self._trust_denies = self._cells(self._trust, TRUST_MATRIX, (Decision.DENIED,))
        self._unresolved = self._is_unresolved(call)

    @staticmethod
    def _is_unresolved(call: SymbolicCall) -> Formula:
        z3 = solver_library()
        effects = call.list("effects", "Effect")
        return any_of(
            [z3.And(slot.is_used, call.is_text(f"{slot.name}.kind", EffectKind.UNRESOLVED)) for slot in effects.slots]
        )

    def _cells(self, row: Any, matrix: Mapping[Any, Mapping[Risk, Decision]], wanted: Iterable[Decision]) -> Formula:
        z3 = solver_library()
        return any_of(
            [
                z3.And(row == int(level), self._risk == int(risk))
                for level, cells in matrix.items()
                for risk, cell in cells.items()
                if cell in wanted
            ]
        )

    def decide(self, answers: Answers) -> FinalFormulas:
        """Return when the final decision is what."""
        z3 = solver_library()
        applies = z3.And(answers.allow, z3.Or(z3.Not(self._unresolved), answers.allows_unresolved))
        no_rule = z3.Not(z3.Or(answers.ask, applies))
        denied = z3.Or(
            answers.deny,
            z3.And(answers.ask, answers.asks_plainly, self._trust_denies),
            z3.And(no_rule, self._trust_denies),
        )
        allowed = z3.And(
            z3.Not(answers.deny),
            z3.Not(answers.ask),
            z3.Or(applies, self._trust_allows),
            self._status_allows,
            z3.Not(self._needs_person),
        )
        return FinalFormulas(allowed, z3.Not(z3.Or(allowed, denied)), denied)


_PERMITTING = (Decision.APPROVED, Decision.CORRECTED)

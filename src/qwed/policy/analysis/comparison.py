"""Comparison of two policy sets: a proof that they decide alike, or calls on which they do not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from qwed.model.decision import Decision
from qwed.policy.analysis.final_decision import FinalFormulas, Surroundings, final_decision
from qwed.policy.analysis.list_bounds import TooManyElementsError, list_bounds
from qwed.policy.analysis.model_search import ProofStatus, effort_of, find_model, new_solver
from qwed.policy.analysis.rule_encoder import (
    Answers,
    OpaqueUse,
    RuleEncoder,
    join_answers,
    rule_identity,
    terms_of,
    tools_added_up,
)
from qwed.policy.analysis.symbols import Formula, SymbolicCall, solver_library
from qwed.policy.analysis.terms import Exists, Fact, Kind, Literal, Operation, Term
from qwed.policy.analysis.text_uses import texts_in_full
from qwed.policy.analysis.witness import ModelReader, Witness, prefer_usual_call
from qwed.policy.compiled_policies import CompiledPolicies, CompiledRule
from qwed.policy.document import PolicyAnswer, UsageKey
from qwed.policy.evaluator import evaluate, explain
from qwed.policy.policy_input import PolicyInput

MAX_ROUNDS = 24
"""Rounds of one question; each adds rules that matter, or excludes a call that was wrong."""
MAX_WRONG_WITNESSES = 6
MAX_WITNESSES = 2
MAX_EFFORT = 20_000_000
"""Work of the solver on one question, in its own units: the same on every machine."""
FIRST_RULES = 8
"""Unchanged rules that are added at once; the number doubles."""


class Change(StrEnum):
    """Final decision of a call."""

    ALLOWED = "allowed"
    ASKED = "asked"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class ChangeProof:
    """Result for calls that are newly allowed, asked about or denied."""

    change: Change
    status: ProofStatus
    witnesses: tuple[Witness, ...] = ()
    reason: str = ""
    """Why it is not proven."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes that an edit of a policy set makes."""

    allowed: ChangeProof
    asked: ChangeProof
    denied: ChangeProof
    opaque: tuple[OpaqueUse, ...] = ()
    """Parts of the rules that the proof did not understand."""

    @property
    def changes(self) -> tuple[ChangeProof, ...]:
        """Return all three proofs."""
        return self.allowed, self.asked, self.denied


_CLASS_OF = {
    Decision.APPROVED: Change.ALLOWED,
    Decision.CORRECTED: Change.ALLOWED,
    Decision.PENDING: Change.ASKED,
    Decision.DENIED: Change.DENIED,
}


def compare_policies(old: CompiledPolicies, new: CompiledPolicies) -> Comparison:
    """Return what changes in the final decisions if one policy set takes the place of another."""
    question = _Question(old, new)
    allowed, asked, denied = (question.answer(change) for change in Change)
    return Comparison(allowed, asked, denied, tuple(sorted(question.opaque)))


class _Sides(NamedTuple):
    old: list[CompiledRule]
    new: list[CompiledRule]
    common: list[CompiledRule]


def _enforced(policies: CompiledPolicies) -> dict[tuple[object, ...], CompiledRule]:
    return {rule_identity(rule): rule for rule in policies.rules if not rule.is_shadow}


def _split(old: CompiledPolicies, new: CompiledPolicies) -> _Sides:
    before, after = _enforced(old), _enforced(new)
    return _Sides(
        [rule for identity, rule in before.items() if identity not in after],
        [rule for identity, rule in after.items() if identity not in before],
        [rule for identity, rule in after.items() if identity in before],
    )


def _tools_of(rule: CompiledRule) -> tuple[str, ...]:
    """Return the tools and action types that a rule is about, if it is about some only."""
    return (*rule.owner.policy.tools, *tools_added_up(rule))


_ANY_EFFECT: Term = Exists(
    Fact("effects", (), "list(qwed.policy.Effect)"),
    "$0",
    Operation("equal", (Fact("$0", ("kind",), "string"), Literal("UNRESOLVED", Kind.STRING)), Kind.BOOL),
)


class _Question:
    """Answers for two sets whether there is a call that changes in one way."""

    def __init__(self, old: CompiledPolicies, new: CompiledPolicies) -> None:
        self._old, self._new = old, new
        self._sides = _split(old, new)
        self._usage: frozenset[UsageKey] = old.usage | new.usage
        self._common = {rule_identity(rule): rule for rule in self._sides.common}
        self.included: dict[int, CompiledRule] = {}
        """Unchanged rules that take part; those of one answer take part in the next."""
        self.opaque: set[OpaqueUse] = set()

    def answer(self, change: Change) -> ChangeProof:
        """Return whether a call becomes this."""
        if not (self._sides.old or self._sides.new):
            return ChangeProof(change, ProofStatus.NONE)
        if len(self.included) > FIRST_RULES:
            self.included = {}
        try:
            return _Search(self, change).run()
        except TooManyElementsError as error:
            return ChangeProof(change, ProofStatus.NOT_PROVEN, reason=f"the rules ask too much of the list `{error}`")

    @property
    def sides(self) -> _Sides:
        """The rules of one set only, of the other only, and of both."""
        return self._sides

    def check(self, call: PolicyInput, reader: ModelReader) -> Witness:
        """Return what the real evaluator decides about a call under both sets."""
        circumstances = reader.circumstances()
        before, after = evaluate(self._old, call), evaluate(self._new, call)
        return Witness(
            call,
            circumstances,
            final_decision(before, call, circumstances),
            final_decision(after, call, circumstances),
            before,
            after,
        )

    def answering(self, call: PolicyInput) -> list[CompiledRule]:
        """Return the unchanged rules that take no part yet and answer a call, the strictest ones only."""
        found: dict[PolicyAnswer, list[CompiledRule]] = {}
        for result in explain(self._new, call).results:
            rule = self._common.get(rule_identity(result.rule))
            if rule is not None and result.then is not None and id(rule) not in self.included:
                found.setdefault(result.then, []).append(rule)
        return next((found[answer] for answer in reversed(PolicyAnswer) if answer in found), [])

    def read(self, reader: ModelReader) -> PolicyInput:
        """Return the call of a model."""
        return reader.policy_input(self._usage)


@dataclass(slots=True)
class _Encoding:
    """Formulas over one symbolic call with some of the unchanged rules; the others may answer anything."""

    call: SymbolicCall
    before: FinalFormulas
    after: FinalFormulas
    silent: list[Formula] = field(default_factory=list)
    """Holds where no other rule answers."""


class _Search:
    """Search for a call that changes in one way."""

    def __init__(self, question: _Question, change: Change) -> None:
        self._question = question
        self._change = change
        self._batch = FIRST_RULES
        self._witnesses: list[Witness] = []
        self._excluded: list[Callable[[SymbolicCall], Formula]] = []
        self._wrong = 0
        self._first_effort = 0
        self._encoding: _Encoding | None = None
        self._solver: Any = None

    def run(self) -> ChangeProof:
        """Return the finding."""
        for _ in range(MAX_ROUNDS):
            finding = self._round()
            if finding is not None:
                return finding
        return self._undecided("too many unchanged rules take part")

    def _undecided(self, reason: str) -> ChangeProof:
        if self._witnesses:
            return self._found()
        uses = sorted(self._question.opaque)
        if uses:
            reason = f"outside of what can be proved: {', '.join(use.text for use in uses[:5])}"
        return ChangeProof(self._change, ProofStatus.NOT_PROVEN, reason=reason)

    def _found(self) -> ChangeProof:
        return ChangeProof(self._change, ProofStatus.SOME, tuple(self._witnesses))

    def _round(self) -> ChangeProof | None:
        if self._encoding is None:
            self._begin()
        encoding, solver = self._encoding, self._solver
        assert encoding is not None and solver is not None  # noqa: S101, PT018 - set by `_begin`
        answer, model = find_model(solver, encoding.silent, encoding.call.preferred)
        effort = effort_of(solver)
        self._first_effort = self._first_effort or effort
        if answer is ProofStatus.NOT_PROVEN or effort - self._first_effort > MAX_EFFORT:
            return self._undecided("the solver gave up")
        if answer is ProofStatus.NONE:
            return self._nothing_left()
        reader = ModelReader(encoding.call, model.values)
        return self._try(reader) if model.has_needed else self._include_more(reader)

    def _nothing_left(self) -> ChangeProof:
        if self._witnesses:
            return self._found()
        if self._wrong:
            return self._undecided("the calls that were found are decided alike by the evaluator")
        return ChangeProof(self._change, ProofStatus.NONE)

    def _begin(self) -> None:
        """Encode the question with the rules that are included now."""
        self._encoding = self._encode()
        self._solver = new_solver()
        self._solver.add(*self._encoding.call.known, self._goal(self._encoding))
        self._solver.add(*(exclude(self._encoding.call) for exclude in self._excluded))

    def _exclude(self, exclude: Callable[[SymbolicCall], Formula]) -> None:
        self._excluded.append(exclude)
        if self._encoding is not None and self._solver is not None:
            known = len(self._encoding.call.known)
            self._solver.add(exclude(self._encoding.call))
            self._solver.add(*self._encoding.call.known[known:])

    def _include(self, rules: Sequence[CompiledRule]) -> ChangeProof | None:
        """Let unchanged rules take part; for a further witness it is not worth it."""
        if self._witnesses:
            return self._found()
        self._question.included.update((id(rule), rule) for rule in rules[: self._batch])
        self._batch *= 2
        self._encoding = None
        return None

    def _goal(self, encoding: _Encoding) -> Formula:
        z3 = solver_library()
        before = getattr(encoding.before, self._change)
        return z3.And(z3.Not(before), getattr(encoding.after, self._change))

    def _encode(self) -> _Encoding:
        sides, z3 = self._question.sides, solver_library()
        common = list(self._question.included.values())
        terms = [term for rule in (*sides.old, *sides.new, *common) for term in terms_of(rule)]
        call = SymbolicCall(list_bounds([*terms, _ANY_EFFECT]), texts_in_full(terms))
        others = [rule for rule in sides.common if id(rule) not in self._question.included]
        names = sorted({name for rule in others for name in _tools_of(rule)})
        call.reserve_literals(names)
        encoder = RuleEncoder(call)
        encoded = [[(rule, encoder.rule(rule)) for rule in part] for part in (sides.old, sides.new, common)]
        self._question.opaque |= encoder.opaque
        shared = [join_answers(encoded[2])]
        silent: list[Formula] = []
        if others:
            rest = _unknown_answers(call)
            if all(rule.owner.policy.tools for rule in others):
                concerned = [call.is_reserved(name, names) for name in ("tool.name", "action.type")]
                call.known.append(z3.Implies(z3.Or(*rest), z3.Or(*concerned)))
            silent = [z3.Not(formula) for formula in rest]
            shared.append(rest)
        surroundings = Surroundings(call)
        before = surroundings.decide(_join([join_answers(encoded[0]), *shared]))
        after = surroundings.decide(_join([join_answers(encoded[1]), *shared]))
        prefer_usual_call(call)
        return _Encoding(call, before, after, silent)

    def _try(self, reader: ModelReader) -> ChangeProof | None:
        """Evaluate the call of a model; go on with what it shows if it is not what was looked for."""
        witness = self._checked(reader)
        if witness is not None:
            self._witnesses.append(witness)
            if len(self._witnesses) >= MAX_WITNESSES:
                return self._found()
            self._exclude(_same_kind_of_call(witness))
            return None
        concrete = self._question.read(reader)
        answering = self._question.answering(concrete)
        if answering:
            return self._include(answering)
        self._wrong += 1
        if self._wrong >= MAX_WRONG_WITNESSES:
            return self._undecided("no call was found on which the evaluator agrees with the proof")
        self._exclude(_same_values(reader))
        return None

    def _checked(self, reader: ModelReader) -> Witness | None:
        concrete = self._question.read(reader)
        for moment in reader.moments():
            call = replace(concrete, now=moment)
            witness = self._question.check(call, reader)
            if _CLASS_OF[witness.before] is not self._change and _CLASS_OF[witness.after] is self._change:
                return witness
        return None

    def _include_more(self, reader: ModelReader) -> ChangeProof | None:
        """Add unchanged rules that can concern the tool of a model; only they can make the difference."""
        concrete = self._question.read(reader)
        names = {concrete.tool.name, concrete.action_type}
        answers = {answer for answer in PolicyAnswer if reader.truth(f"others {answer}")}
        left = [rule for rule in self._question.sides.common if id(rule) not in self._question.included]
        near = [rule for rule in left if not rule.owner.policy.tools or not names.isdisjoint(_tools_of(rule))]
        wanted = [rule for rule in near if rule.rule.then in answers]
        return self._include(wanted or near or left)


def _unknown_answers(call: SymbolicCall) -> Answers:
    """Return the answers of rules that are not encoded: anything."""
    z3 = solver_library()
    rest = Answers(*(call.boolean(f"others {name}") for name in Answers._fields))
    call.known.append(z3.Implies(rest.asks_plainly, rest.ask))
    call.known.append(z3.Implies(rest.allows_unresolved, rest.allow))
    return rest


def _join(parts: Sequence[Answers]) -> Answers:
    z3 = solver_library()
    return Answers(*(z3.Or(*formulas) for formulas in zip(*parts, strict=True)))


def _same_kind_of_call(witness: Witness) -> Callable[[SymbolicCall], Formula]:
    """Return what excludes calls of the same tool at the same trust."""

    def exclude(call: SymbolicCall) -> Formula:
        z3 = solver_library()
        same = [call.level("agent.trust") == witness.call.agent.trust]
        if call.has("tool.name", Kind.STRING) or call.has("tool.name", Kind.CODE):
            same.append(call.is_text("tool.name", witness.call.tool.name))
        return z3.Not(z3.And(*same))

    return exclude


def _same_values(reader: ModelReader) -> Callable[[SymbolicCall], Formula]:
    """Return what excludes the very values of a model."""
    values = reader.values()

    def exclude(other: SymbolicCall) -> Formula:
        z3 = solver_library()
        same = [other.constant(name, kind) == value for (name, kind), value in values.items() if other.has(name, kind)]
        return z3.Not(z3.And(*same))

    return exclude

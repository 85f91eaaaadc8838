"""Encoder of rules: when a rule answers, with everything that decides it besides its condition."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from qwed.policy.analysis.encoder import Encoded, Encoder
from qwed.policy.analysis.lowering import lower
from qwed.policy.analysis.symbols import NUMBER, OBJECT, Formula, SymbolicCall, any_of, solver_library
from qwed.policy.analysis.terms import Exists, Fact, Kind, Literal, Opaque, Operation, Term
from qwed.policy.argument_types import ArgumentType, ArgumentTypes
from qwed.policy.cel_ast import read_checked_expression
from qwed.policy.cel_environment import agent_checker, rule_checker
from qwed.policy.checker_errors import Finding
from qwed.policy.compiled_policies import CompiledRule
from qwed.policy.condition import position_in
from qwed.policy.document import PolicyAnswer
from qwed.policy.facts_schema import VARIABLES

_EFFECTS = Fact("effects", (), "list(qwed.policy.Effect)")
_MAX_TERMS = 8_192


class RuleFormulas(NamedTuple):
    """When one rule denies, asks or allows a call."""

    deny: Formula
    ask: Formula
    allow: Formula
    incomplete: Formula
    """Asks only because the analysis of the action could not finish."""
    match: Formula
    """Its condition holds."""


class OpaqueUse(NamedTuple):
    """A part of a rule that the proof does not understand."""

    policy: str
    rule: str
    function: str
    line: int
    column: int

    @property
    def text(self) -> str:
        """The part as a person reads it."""
        return f"`{self.function}` in rule `{self.rule}` of policy `{self.policy}` ({self.line}:{self.column})"


@dataclass(frozen=True, slots=True)
class _Variant:
    """A rule for the tools of which the arguments have the same types."""

    types: ArgumentTypes
    tool: str | None = None
    other_than: tuple[str, ...] = ()


@functools.lru_cache(_MAX_TERMS)
def _rule_term(text: str, arguments: tuple[tuple[str, ArgumentType], ...]) -> Term:
    return lower(read_checked_expression(rule_checker(dict(arguments)).compile(text).serialize()))


@functools.lru_cache(_MAX_TERMS)
def _agent_term(text: str) -> Term:
    return lower(read_checked_expression(agent_checker().compile(text).serialize()))


def _variants(rule: CompiledRule) -> Iterator[_Variant]:
    owner = rule.owner
    for tool in sorted(owner.tool_types.keys() - rule.broken_tools.keys()):
        yield _Variant(owner.tool_types[tool], tool)
    if not owner.tool_types or any(name not in owner.tool_types for name in owner.policy.tools):
        yield _Variant(owner.types, None, tuple(sorted(owner.tool_types)))


def terms_of(rule: CompiledRule) -> list[Term]:
    """Return all conditions that decide whether a rule answers."""
    terms = [_rule_term(rule.rule.when.text, tuple(sorted(variant.types.items()))) for variant in _variants(rule)]
    if rule.owner.policy.agents is not None:
        terms.append(_agent_term(rule.owner.policy.agents.text))
    if (effects := _effects_term(rule)) is not None:
        terms.append(effects)
    return terms


def _effects_term(rule: CompiledRule) -> Term | None:
    """Return the condition on effects under which a rule is looked at, where it is found by its effects only."""
    condition = rule.condition
    if rule.owner.policy.tools or condition.tools or condition.action_types or condition.groups:
        return None
    if not condition.effects:
        return None
    kind = Fact("$0", ("kind",), "string")
    parts = (Operation("equal", (kind, Literal(name, Kind.STRING)), Kind.BOOL) for name in sorted(condition.effects))
    return Exists(_EFFECTS, "$0", Operation("or", tuple(parts), Kind.BOOL))


@dataclass(slots=True)
class RuleEncoder:
    """Encodes rules over one symbolic call."""

    call: SymbolicCall
    opaque: set[OpaqueUse] = field(default_factory=set)

    def rule(self, rule: CompiledRule) -> RuleFormulas:
        """Return when a rule answers what."""
        z3 = solver_library()
        agents, agents_fail = self._agents(rule)
        selected = z3.And(*self._selected(rule), *self._effects(rule))
        summing = self.call.is_one_of("tool.name", tools_added_up(rule))
        looked_at = z3.Or(selected, summing)
        concerned = z3.And(looked_at, agents)
        deny = [] if agents_fail is None else [z3.And(looked_at, agents_fail)]
        if rule.broken_tools:
            deny.append(z3.And(concerned, self._names("tool.name", rule.broken_tools)))
        active = z3.And(concerned, *self._requirements(rule))
        refused = self._refused_amounts(rule)
        deny.append(z3.And(active, refused))
        # A rule looks at every call that it adds up. A proof holds whether or not its condition counts for such a call.
        counts = z3.Or(selected, self.call.boolean("rules count for what they add up"))
        active = z3.And(active, z3.Not(refused), counts)
        answers = [self._variant(rule, variant, active) for variant in _variants(rule)]
        deny.extend(answer.deny for answer in answers)
        return RuleFormulas(
            any_of(deny),
            *(any_of([answer[place] for answer in answers]) for place in range(1, len(RuleFormulas._fields))),
        )

    def _agents(self, rule: CompiledRule) -> Encoded:
        text = rule.owner.policy.agents
        if text is None:
            return Encoded(solver_library().BoolVal(True))
        encoder = Encoder(self.call)
        encoded = encoder.condition(_agent_term(text.text))
        self._note(rule, text.text, encoder.opaque, is_agents=True)
        return encoded

    def _selected(self, rule: CompiledRule) -> Iterator[Formula]:
        z3, condition = solver_library(), rule.condition
        if rule.owner.policy.tools:
            names = rule.owner.policy.tools
            yield z3.Or(self._names("tool.name", names), self._names("action.type", names))
        if condition.tools is not None:
            yield self._names("tool.name", condition.tools)
        if condition.action_types is not None:
            yield self._names("action.type", condition.action_types)
        if not (rule.owner.policy.tools or condition.tools or condition.action_types) and condition.groups:
            yield self.call.group_state(min(condition.groups))[0]

    def _refused_amounts(self, rule: CompiledRule) -> Formula:
        """Return when an argument cannot be added to a sum that the rule reads."""
        z3 = solver_library()
        refused = []
        for key in sorted(rule.condition.usage, key=repr):
            if key.measure == "sum":
                name = f"args.{key.argument}"
                kind, other = self.call.argument_kind(name), self.call.boolean(f"args.{key.argument}#amount")
                amount = z3.If(kind == NUMBER, self.call.number(name, Kind.NUMBER) >= 0, z3.And(kind == OBJECT, other))
                refused.append(z3.And(self.call.is_text("tool.name", key.tool), z3.Not(amount)))
        return any_of(refused)

    def _names(self, variable: str, names: Iterable[str]) -> Formula:
        return self.call.is_one_of(variable, names)

    def _effects(self, rule: CompiledRule) -> Iterator[Formula]:
        if (term := _effects_term(rule)) is not None:
            yield Encoder(self.call).condition(term).value

    def _requirements(self, rule: CompiledRule) -> Iterator[Formula]:
        for group in sorted(rule.condition.groups):
            yield self.call.group_state(group)[0]
        if rule.rule.then is not PolicyAnswer.ALLOW:
            return
        for group in sorted(rule.condition.groups):
            yield self.call.group_state(group)[1]
        if "effects" in rule.condition.variables:
            yield self.call.list("effects", VARIABLES["effects"][5:-1]).size > 0
        trust = self.call.level("agent.trust")
        needed = rule.rule.min_trust
        yield trust >= 1
        yield trust >= (self.call.level("agent.registered_trust") if needed is None else needed)

    def _variant(self, rule: CompiledRule, variant: _Variant, active: Formula) -> RuleFormulas:
        z3 = solver_library()
        never = z3.BoolVal(False)
        encoder = Encoder(self.call)
        term = _rule_term(rule.rule.when.text, tuple(sorted(variant.types.items())))
        holds, fails = encoder.condition(term)
        self._note(rule, rule.rule.when.text, encoder.opaque)
        active = z3.And(active, *self._tool(variant))
        mismatches = self._mismatches(rule, variant)
        error = any_of([*mismatches, *([] if fails is None else [fails])])
        match = z3.And(active, z3.Not(any_of(mismatches)), holds)
        deny = z3.And(active, error)
        if rule.rule.then is PolicyAnswer.ALLOW:
            return RuleFormulas(deny, never, match, never, match)
        incomplete = self._asks_if_incomplete(rule, term)
        asks = z3.And(active, z3.Not(error), z3.Not(holds), incomplete)
        if rule.rule.then is PolicyAnswer.DENY:
            return RuleFormulas(z3.Or(deny, match), asks, never, asks, match)
        return RuleFormulas(deny, z3.Or(match, asks), never, asks, match)

    def _tool(self, variant: _Variant) -> Iterator[Formula]:
        z3 = solver_library()
        if variant.tool is not None:
            yield self._names("tool.name", [variant.tool])
        if variant.other_than:
            yield z3.Not(self._names("tool.name", variant.other_than))

    def _mismatches(self, rule: CompiledRule, variant: _Variant) -> list[Formula]:
        names = sorted(rule.condition.arguments & variant.types.keys())
        return [self.call.mismatch(f"args.{name}", variant.types[name]) for name in names]

    def _asks_if_incomplete(self, rule: CompiledRule, term: Term) -> Formula:
        """Return when a group is incomplete and the condition is not false whatever the group contains."""
        z3 = solver_library()
        states = [self.call.group_state(group)[1] for group in sorted(rule.condition.groups)]
        if not states:
            return z3.BoolVal(False)
        holds, fails = Encoder(self.call, incomplete_fails=True).condition(term)
        undecided = holds if fails is None else z3.Or(holds, fails)
        return z3.And(z3.Not(z3.And(*states)), undecided)

    def _note(self, rule: CompiledRule, text: str, uses: Iterable[Opaque], *, is_agents: bool = False) -> None:
        owner = rule.owner.policy
        condition = owner.agents if is_agents and owner.agents is not None else rule.rule.when
        for use in uses:
            before = text[: use.position]
            finding = Finding(before.count("\n") + 1, use.position - before.rfind("\n"), "")
            at = position_in(condition, finding)
            policy_id, rule_id = rule.key
            self.opaque.add(OpaqueUse(policy_id, rule_id, use.name.strip("_"), at.line, at.column))


def tools_added_up(rule: CompiledRule) -> list[str]:
    """Return the tools of which a rule reads a sum."""
    return sorted({key.tool for key in rule.condition.usage if key.measure == "sum"})


class Answers(NamedTuple):
    """Answers of a set of rules together."""

    deny: Formula
    ask: Formula
    asks_plainly: Formula
    """A rule asks that does not override trust."""
    allow: Formula
    allows_unresolved: Formula
    """A rule allows that names the effect UNRESOLVED."""


def join_answers(rules: Sequence[tuple[CompiledRule, RuleFormulas]]) -> Answers:
    """Return what rules answer together."""
    return Answers(
        deny=any_of([formulas.deny for _, formulas in rules]),
        ask=any_of([formulas.ask for _, formulas in rules]),
        asks_plainly=any_of(
            [formulas.incomplete if rule.rule.overrides_trust else formulas.ask for rule, formulas in rules]
        ),
        allow=any_of([formulas.allow for _, formulas in rules]),
        allows_unresolved=any_of([formulas.allow for rule, formulas in rules if rule.condition.names_unresolved]),
    )


def rule_identity(rule: CompiledRule) -> tuple[object, ...]:
    """Return everything about a rule that can change a decision; rules that agree in it answer alike."""
    owner, stated = rule.owner, rule.rule
    types: Mapping[str, ArgumentTypes] = owner.tool_types
    return (
        stated.when.text.strip(),
        stated.then,
        stated.overrides_trust,
        stated.min_trust,
        frozenset(owner.policy.tools),
        None if owner.policy.agents is None else owner.policy.agents.text.strip(),
        _used_types(rule, owner.types),
        tuple((tool, _used_types(rule, types[tool])) for tool in sorted(types)),
        frozenset(rule.broken_tools),
    )


def _used_types(rule: CompiledRule, types: ArgumentTypes) -> tuple[tuple[str, ArgumentType], ...]:
    return tuple((name, types[name]) for name in sorted(rule.condition.arguments & types.keys()))

"""Witness: a concrete call, read from a model of the solver and evaluated on the real evaluator."""

import dataclasses
import functools
import itertools
import json
import re
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from qwed.model.decision import Decision, Risk
from qwed.model.effect import Effect, EffectKind
from qwed.model.facts import Facts, ShellCommand
from qwed.policy.analysis.final_decision import STATUSES, Circumstances
from qwed.policy.analysis.symbols import (
    ABSENT,
    BOOLEAN,
    LIST,
    NUMBER,
    OBJECT,
    STRING,
    SymbolicCall,
    SymbolicList,
    solver_library,
)
from qwed.policy.analysis.terms import Kind, Usage
from qwed.policy.cel_environment import evaluation_environment
from qwed.policy.document import UsageKey
from qwed.policy.policy_input import PolicyAgent, PolicyInput, PolicyOutcome, PolicyTool

USUAL_TIME = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
"""Time of a call for which the time does not matter: a Monday morning."""
_ESCAPE = re.compile(r"\\u\{([0-9a-fA-F]+)\}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOO_LONG = Decimal("0.12345678901234567")
"""A sum that the runtime cannot compare exactly."""
_MAX_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Witness:
    """A call on which two policy sets decide differently."""

    call: PolicyInput
    circumstances: Circumstances
    before: Decision
    after: Decision
    before_outcome: PolicyOutcome
    after_outcome: PolicyOutcome


def prefer_usual_call(call: SymbolicCall) -> None:
    """Note what makes a call easy to read, for every variable that is there."""
    z3 = solver_library()
    if call.has("now", Kind.TIME):
        call.preferred.append(call.now() == _nanoseconds(USUAL_TIME))
    if call.has("action.type", Kind.CODE) or call.has("action.type", Kind.STRING):
        call.preferred.append(call.is_text("action.type", "tool_call"))
    if "effects" in call.lists:
        call.preferred.append(call.lists["effects"].size == 0)
    if call.has("agent.registered_trust", Kind.INT):
        call.preferred.append(call.level("agent.registered_trust") >= call.level("agent.trust"))
    if call.has("tool.name", Kind.STRING):
        call.preferred.append(z3.InRe(call.text("tool.name"), _word()))
    call.preferred.extend(_usual_states(call))


def _usual_states(call: SymbolicCall) -> Iterator[Any]:
    for name, kind in call.names():
        if kind is Kind.OTHER and name.startswith("args.") and not name.endswith("[]"):
            yield call.constant(name, kind) != OBJECT
        if name.endswith("#complete"):
            yield call.constant(name, kind)


def _word() -> Any:
    z3 = solver_library()
    return z3.Plus(z3.Union(z3.Range("a", "z"), z3.Range("A", "Z"), z3.Range("0", "9"), z3.Re("_")))


class ModelReader:
    """Reads a call from a model."""

    def __init__(self, call: SymbolicCall, model: Any) -> None:
        self._call = call
        self._model = model

    def circumstances(self) -> Circumstances:
        """Return what the final decision depends on besides the call."""
        return Circumstances(STATUSES[self._integer("status")], self.truth("needs person"))

    def policy_input(self, usage: Iterable[UsageKey]) -> PolicyInput:
        """Return the call."""
        trust = self._integer("agent.trust")
        labels = {
            name.removeprefix("agent.labels."): self._text(name)
            for name, kind in self._call.names()
            if name.startswith("agent.labels.") and kind in (Kind.STRING, Kind.CODE)
        }
        return PolicyInput(
            action_type=self._text("action.type", "tool_call"),
            tool=PolicyTool(
                name=self._text("tool.name"), server=self._text("tool.server"), registered=self.truth("tool.registered")
            ),
            args=self._arguments(),
            effects=tuple(self._effect(slot) for slot in self._slots("effects")),
            risk=Risk(self._integer("risk")),
            checks_failed=tuple(self._element_text(slot) for slot in self._slots("checks_failed")),
            facts=self._facts(),
            agent=PolicyAgent(
                agent_id=self._text("agent.id", "agent"),
                name=self._text("agent.name"),
                type=self._text("agent.type", "supervised"),
                trust=trust,
                registered_trust=self._integer("agent.registered_trust", trust),
                labels={name: label for name, label in sorted(labels.items()) if label},
                principal=self._text("agent.principal"),
            ),
            now=self._now(),
            usage={key: self._usage(key) for key in sorted(usage, key=repr)},
        )

    def values(self) -> dict[tuple[str, Kind], Any]:
        """Return the values of all variables."""
        return {(name, kind): self._value(name, kind) for name, kind in self._call.names()}

    def _value(self, name: str, kind: Kind) -> Any:
        return self._model.eval(self._call.constant(name, kind), model_completion=True)

    def _integer(self, name: str, default: int = 0) -> int:
        return self._value(name, Kind.INT).as_long() if self._call.has(name, Kind.INT) else default

    def truth(self, name: str) -> bool:
        """Return the value of a Boolean variable; false if there is none."""
        known = self._call.has(name, Kind.BOOL)
        return known and solver_library().is_true(self._value(name, Kind.BOOL))

    def _text(self, name: str, default: str = "") -> str:
        if self._call.has(name, Kind.CODE):
            return self._call.literal_of(self._value(name, Kind.CODE).as_long())
        if not self._call.has(name, Kind.STRING):
            return default
        return plain_text(self._value(name, Kind.STRING).as_string())

    def _fraction(self, name: str) -> Fraction:
        value = self._value(name, Kind.NUMBER)
        if solver_library().is_algebraic_value(value):
            value = value.approx(20)
        return Fraction(value.as_fraction())

    def _arguments(self) -> dict[str, Any]:
        names = sorted(
            name.removeprefix("args.")
            for name, kind in self._call.names()
            if kind is Kind.OTHER and name.startswith("args.") and "." not in name[5:] and not name.endswith("[]")
        )
        values = {name: self._argument(f"args.{name}") for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def _argument(self, name: str) -> Any:
        return self._argument_of(name, self._value(name, Kind.OTHER).as_long())

    def _argument_of(self, name: str, kind: int) -> Any:
        if kind == ABSENT:
            return None
        if kind == OBJECT:
            return self._members(name)
        if kind == LIST:
            return self._items(name)
        return {BOOLEAN: self.truth, NUMBER: self._number, STRING: self._text}[kind](name)

    def _members(self, name: str) -> dict[str, Any]:
        prefix = f"{name}."
        members = sorted(
            known.removeprefix(prefix)
            for known, kind in self._call.names()
            if kind is Kind.OTHER and known.startswith(prefix) and "." not in known[len(prefix) :]
        )
        values = {member: self._argument(prefix + member) for member in members}
        return {member: value for member, value in values.items() if value is not None}

    def _items(self, name: str) -> list[Any]:
        if name not in self._call.lists:
            return []
        kind = self._value(f"{name}[]", Kind.OTHER).as_long() if self._call.has(f"{name}[]", Kind.OTHER) else STRING
        return [self._argument_of(slot, kind) for slot in self._slots(name)]

    def _number(self, name: str) -> Any:
        if self._call.has(name, Kind.NUMBER):
            return exact_number(self._fraction(name))
        if self._call.has(name, Kind.INT) and self.truth(f"{name}#whole"):
            return self._integer(name)
        return Decimal("0.5")

    def _slots(self, name: str) -> list[str]:
        """Return the elements of a list by name; an element that no condition asks for is a copy of another."""
        known = self._call.lists.get(name)
        return [] if known is None else self._elements(known)

    def _elements(self, known: SymbolicList) -> list[str]:
        z3 = solver_library()
        used = [slot.name for slot in known.slots if z3.is_true(self._model.eval(slot.is_used, model_completion=True))]
        size = self._integer(f"{known.name}#size")
        return [*used, *itertools.repeat(used[-1], max(0, size - len(used)))] if used else []

    def _element_text(self, slot: str) -> str:
        return self._text(slot)

    def _effect(self, slot: str) -> Effect:
        return Effect(EffectKind(self._text(f"{slot}.kind", "READ") or "READ"), self._text(f"{slot}.target"))

    def _facts(self) -> Facts:
        return Facts(**{name: self._group(name, hint) for name, hint in typing.get_type_hints(Facts).items()})

    def _group(self, name: str, hint: Any) -> Any:
        if not self.truth(f"{name}#present"):
            return None
        model = next(part for part in typing.get_args(hint) if part is not type(None))
        hints = typing.get_type_hints(model)
        values = {
            part.name: self._field(f"{name}.{part.name}", hints[part.name])
            for part in dataclasses.fields(model)
            if part.name != "complete"
        }
        complete = self.truth(f"{name}#complete") or not self._call.has(f"{name}#complete", Kind.BOOL)
        return model(complete=complete, **values)

    def _field(self, name: str, hint: Any) -> Any:
        if typing.get_origin(hint) is tuple:
            read = {Effect: self._effect, ShellCommand: self._command}.get(typing.get_args(hint)[0], self._element_text)
            return tuple(read(slot) for slot in self._slots(name))
        if hint is bool:
            return self.truth(name)
        if hint is str:
            return self._text(name)
        return self._integer(name) if self.truth(f"{name}#present") else None

    def _command(self, slot: str) -> ShellCommand:
        lists = {
            part: tuple(self._element_text(item) for item in self._slots(f"{slot}.{part}"))
            for part in ("options", "arguments")
        }
        return ShellCommand(program=self._text(f"{slot}.program"), subcommand=self._text(f"{slot}.subcommand"), **lists)

    def _usage(self, key: UsageKey) -> Decimal | int:
        from qwed.policy.analysis.encoder import usage_name

        name = usage_name(Usage(key.scope, key.measure, key.tool, key.argument, key.seconds))
        if key.measure == "count":
            return self._integer(name)
        if self.truth(f"{name}#unusable"):
            return _TOO_LONG
        return Decimal(str(exact_number(self._fraction(name)))) if self._call.has(name, Kind.NUMBER) else Decimal(0)

    def _now(self) -> datetime:
        if not self._call.has("now", Kind.TIME):
            return USUAL_TIME
        return _EPOCH + timedelta(microseconds=self._value("now", Kind.TIME).as_long() // 1000)

    def moments(self) -> Iterator[datetime]:
        """Yield times at which the calendar reads as the model assumes: the one of the model first."""
        start = self._now()
        readings = [
            (_calendar_program(name, zone), self._model.eval(value, model_completion=True).as_long())
            for name, zone, value in self._call.calendar
        ]
        yield start
        if not readings:
            return
        around = (start + sign * timedelta(minutes=30) * step for step in range(_MAX_STEPS) for sign in (1, -1))
        matching = (moment for moment in around if moment >= _EPOCH and _reads(moment, readings))
        yield from itertools.islice(matching, _MAX_MOMENTS)


_MAX_STEPS = 48 * 40
_MAX_MOMENTS = 3


@functools.lru_cache(256)
def _calendar_program(name: str, zone: str) -> Any:
    argument = json.dumps(zone) if zone else ""
    return evaluation_environment().compile(f"now.{name}({argument})", disable_check=True)


def _reads(moment: datetime, readings: Iterable[tuple[Any, int]]) -> bool:
    data = {"now": moment}
    return all(program.eval(data=data).value() == wanted for program, wanted in readings)


def exact_number(value: Fraction) -> int | float | Decimal:
    """Return a number that the runtime compares as this one, or one close to it."""
    if value.denominator == 1:
        return value.numerator
    with localcontext(prec=_MAX_DIGITS):
        decimal = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
    return decimal if Fraction(decimal) == value else float(value)


def plain_text(text: str) -> str:
    """Return a text of the solver without its escapes."""
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000

"""A call as values of the variables of a proof: what the encoder says of one call, beside what the evaluator does."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qwed.policy import PolicyInput
from qwed.policy.analysis.encoder import usage_name
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
    string,
)
from qwed.policy.analysis.terms import Kind, Usage

MAX_LENGTH = 4
"""Longest list of a call in these tests."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ConcreteCall:
    """States that a symbolic call is one certain call."""

    def __init__(self, symbolic: SymbolicCall, call: PolicyInput) -> None:
        self._symbolic = symbolic
        self._call = call

    def equations(self) -> Iterator[Any]:
        """Yield what holds for this call of every variable that a condition reads."""
        agent = self._call.agent
        yield self._symbolic.risk == int(self._call.risk)
        yield self._symbolic.level("agent.trust") == agent.trust
        yield self._symbolic.level("agent.registered_trust") == agent.registered_trust
        for name, text in self._texts():
            yield from self._text(name, text)
        yield from self._truth("tool.registered", self._call.tool.registered)
        if self._symbolic.has("now", Kind.TIME):
            yield self._symbolic.now() == (self._call.now - _EPOCH) // timedelta(microseconds=1) * 1000
        yield from self._list("effects", [asdict(effect) for effect in self._call.effects])
        yield from self._list("checks_failed", self._call.checks_failed)
        yield from self._arguments()
        yield from self._facts()
        yield from self._usage()

    def _texts(self) -> Iterator[tuple[str, str]]:
        call, agent = self._call, self._call.agent
        yield "action.type", call.action_type
        yield "tool.name", call.tool.name
        yield "tool.server", call.tool.server
        yield "agent.id", agent.agent_id
        yield "agent.name", agent.name
        yield "agent.type", agent.type
        yield "agent.principal", agent.principal
        for name, kind in self._symbolic.names():
            if name.startswith("agent.labels.") and kind in (Kind.STRING, Kind.CODE):
                yield name, agent.labels.get(name.removeprefix("agent.labels."), "")

    def _text(self, name: str, text: str) -> Iterator[Any]:
        if self._symbolic.has(name, Kind.STRING):
            yield self._symbolic.text(name) == string(text)
        if self._symbolic.has(name, Kind.CODE):
            yield self._symbolic.is_text(name, text)

    def _truth(self, name: str, value: bool) -> Iterator[Any]:
        if self._symbolic.has(name, Kind.BOOL):
            yield self._symbolic.boolean(name) == value

    def _list(self, name: str, values: Any) -> Iterator[Any]:
        known: SymbolicList | None = self._symbolic.lists.get(name)
        if known is None:
            return
        yield known.size == len(values)
        for slot, value in zip(known.slots, values, strict=False):
            if isinstance(value, dict):
                for part, inner in value.items():
                    read = self._list if isinstance(inner, list | tuple) else self._value
                    yield from read(f"{slot.name}.{part}", inner)
            else:
                yield from self._value(slot.name, value)

    def _value(self, name: str, value: Any) -> Iterator[Any]:
        if isinstance(value, bool):
            yield from self._truth(name, value)
        elif isinstance(value, str):
            yield from self._text(name, str(value))
        elif isinstance(value, int | float | Decimal):
            yield from self._number(name, value)

    def _number(self, name: str, value: Any) -> Iterator[Any]:
        exact = Fraction(str(value))
        if self._symbolic.has(name, Kind.NUMBER):
            yield self._symbolic.constant(name, Kind.NUMBER) == solver_library().RealVal(exact)
        if self._symbolic.has(name, Kind.INT):
            yield from self._truth(f"{name}#whole", exact.denominator == 1)
            if exact.denominator == 1:
                yield self._symbolic.constant(name, Kind.INT) == int(exact)

    def _arguments(self) -> Iterator[Any]:
        for name, kind in self._symbolic.names():
            if kind is not Kind.OTHER or not name.startswith("args.") or name.endswith("[]"):
                continue
            value = self._call.args.get(name.removeprefix("args."))
            yield self._symbolic.argument_kind(name) == _kind(value)
            yield from (self._list if isinstance(value, list) else self._value)(name, value)
            yield from self._truth(f"{name}#amount", isinstance(value, Decimal))
            if isinstance(value, list) and value and self._symbolic.has(f"{name}[]", Kind.OTHER):
                kinds = {_kind(item) for item in value}
                yield self._symbolic.constant(f"{name}[]", Kind.OTHER) == (kinds.pop() if len(kinds) == 1 else OBJECT)

    def _facts(self) -> Iterator[Any]:
        for part in fields(self._call.facts):
            group = getattr(self._call.facts, part.name)
            yield from self._truth(f"{part.name}#present", group is not None)
            if group is None:
                continue
            yield from self._truth(f"{part.name}#complete", group.complete)
            for name, value in asdict(group).items():
                fact = f"{part.name}.{name}"
                yield from self._truth(f"{fact}#present", value is not None)
                yield from (self._list if isinstance(value, list | tuple) else self._value)(fact, value)

    def _usage(self) -> Iterator[Any]:
        for key, value in self._call.usage.items():
            name = usage_name(Usage(key.scope, key.measure, key.tool, key.argument, key.seconds))
            yield from self._number(name, value)
            if self._symbolic.has(name, Kind.INT):
                yield self._symbolic.constant(name, Kind.INT) == int(value)
            yield from self._truth(f"{name}#unusable", False)


def _kind(value: Any) -> int:
    if value is None:
        return ABSENT
    for kinds, number in ((bool, BOOLEAN), ((int, float, Decimal), NUMBER), (str, STRING), (list, LIST)):
        if isinstance(value, kinds):  # type: ignore[arg-type]
            return number
    return OBJECT

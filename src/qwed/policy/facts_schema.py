"""Typed schema of what a rule sees: facts of the engines, the tool, the agent and the other variables."""

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any

from qwed.model.decision import Risk
from qwed.model.effect import Effect, EffectKind
from qwed.model.facts import Facts

PREFIX = "qwed.policy."
"""Package of the message types; the checker names them in its errors."""
RISKS = tuple(risk.word for risk in Risk)
AGENT_TYPES = ("supervised", "autonomous", "trusted")
CLAIM_STATUSES = ("VERIFIED", "FAILED", "CORRECTED", "UNCERTAIN")
TIME_FUNCTIONS = (
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
)
"""Methods of a time; each takes a time zone too."""
_EFFECT_KINDS = tuple(kind.value for kind in EffectKind)
_SCALARS: dict[Any, str] = {str: "string", bool: "bool", int: "int", float: "double"}
_VALUES = {"Effect.kind": _EFFECT_KINDS, "ClaimFacts.status": CLAIM_STATUSES}
_HIDDEN = {"complete", "unbounded"}
"""Fields of the model that a rule does not read."""


@dataclass(frozen=True, slots=True)
class FactField:
    """One field of a message."""

    name: str
    type: str
    """`string`, `bool`, `int`, `double`, the name of a message, or `list(...)` of one of these."""
    optional: bool = False
    """True if it can be absent, so that a rule must ask `has(...)` first."""
    values: tuple[str, ...] = ()
    """All values, where the set is closed."""


def _fields_of(model: type[Any]) -> tuple[FactField, ...]:
    hints = typing.get_type_hints(model)
    return tuple(
        _field_of(model, field.name, hints[field.name])
        for field in dataclasses.fields(model)
        if field.name not in _HIDDEN
    )


def _field_of(model: type[Any], name: str, hint: Any) -> FactField:
    values = _VALUES.get(f"{model.__name__}.{name}", ())
    if isinstance(hint, types.UnionType):
        return FactField(name, _type_of(_without_none(hint)), optional=True, values=values)
    return FactField(name, _type_of(hint), values=values)


def _type_of(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f"list({_type_of(typing.get_args(hint)[0])})"
    if isinstance(hint, type) and issubclass(hint, EffectKind):
        return "string"
    return _SCALARS.get(hint) or str(hint.__name__)


def _without_none(hint: Any) -> Any:
    return next(part for part in typing.get_args(hint) if part is not type(None))


GROUP_CLASSES: dict[str, type[Any]] = {name: _without_none(hint) for name, hint in typing.get_type_hints(Facts).items()}
"""Classes of the groups of facts by the name of their variable."""
GROUPS = tuple(GROUP_CLASSES)
"""Variables that are absent where the action has no such part: `sql`, `shell`, ..."""


def nested_classes(model: type[Any]) -> tuple[type[Any], ...]:
    """Return the classes of the elements of the lists of a group."""
    hints = typing.get_type_hints(model).values()
    elements = (typing.get_args(hint)[0] for hint in hints if typing.get_origin(hint) is tuple)
    return tuple(element for element in elements if isinstance(element, type) and dataclasses.is_dataclass(element))


def _fact_messages() -> dict[str, tuple[FactField, ...]]:
    classes: dict[str, type[Any]] = {"Effect": Effect}
    for model in GROUP_CLASSES.values():
        classes.update({part.__name__: part for part in (model, *nested_classes(model))})
    return {name: _fields_of(model) for name, model in classes.items()}


_AGENT = (
    FactField("id", "string"),
    FactField("name", "string"),
    FactField("type", "string", values=AGENT_TYPES),
    FactField("trust", "int"),
    FactField("labels", "map(string, string)"),
    FactField("principal", "string"),
)
MESSAGES: dict[str, tuple[FactField, ...]] = {
    "Action": (FactField("type", "string"),),
    "Tool": (FactField("name", "string"), FactField("server", "string"), FactField("registered", "bool")),
    "Agent": _AGENT,
    **_fact_messages(),
}
"""Message types by name."""
VARIABLES: dict[str, str] = {
    "action": "Action",
    "tool": "Tool",
    "effects": "list(Effect)",
    "risk": "string",
    "checks_failed": "list(string)",
    **{name: model.__name__ for name, model in GROUP_CLASSES.items()},
    "agent": "Agent",
    "now": "timestamp",
}
"""Variables of a rule by name, `args` apart: its type depends on the policy."""
AGENT_VARIABLES: dict[str, str] = {field.name: field.type for field in _AGENT}
"""Variables of `applies_to.agents`."""


def cel_type(name: str) -> str:
    """Return a type of the schema as the checker spells it."""
    if name.startswith("list("):
        return f"list({cel_type(name[5:-1])})"
    return PREFIX + name if name[:1].isupper() else name

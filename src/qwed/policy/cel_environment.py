"""Environments of the CEL runtime: one that checks the types of a condition, one that evaluates it.

The checker knows each fact as a protobuf message made at run time, so an unknown field or a wrong type is found with
its position. The evaluator runs the same text on plain mappings, where a missing argument is an error and never a
default value.
"""

import functools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from qwed.model.decision import Risk
from qwed.policy.argument_types import ArgumentType, ArgumentTypes, cel_argument_type, exact_double
from qwed.policy.document import UsageKey
from qwed.policy.exact_arithmetic import OPERATIONS, calculate
from qwed.policy.facts_schema import AGENT_VARIABLES, MESSAGES, PREFIX, VARIABLES, FactField, cel_type

_COMPARED = (
    ("bool", "bool"),
    ("int", "int"),
    ("double", "double"),
    ("int", "double"),
    ("double", "int"),
    ("string", "string"),
    ("timestamp", "timestamp"),
    ("duration", "duration"),
)
_LISTS = ("string", "int", "double", "bool")
_CONTAINED = (("string", "string"), ("int", "int"), ("double", "double"), ("double", "int"), ("int", "double"))
_REPLACED = ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in")
"""Operators declared again: numbers of both kinds may be compared, values of other types may not."""
_REMOVED = ("dyn", "type")
"""Functions that would hide a type from the checker."""
_CONFIG = "stdlib:\n  exclude_functions:\n" + "".join(f'    - name: "{name}"\n' for name in (*_REPLACED, *_REMOVED))
_MAX_CHECKERS = 256


class MissingUsageError(Exception):
    """The caller of the evaluator gave no value for a counter that a rule reads."""


class _EvaluationContext(threading.local):
    """What the functions of a rule read while it is evaluated."""

    risk: Risk = Risk.CRITICAL
    usage: Mapping[UsageKey, Decimal | int] = {}


_context = _EvaluationContext()


@contextmanager
def evaluation_context(risk: Risk, usage: Mapping[UsageKey, Decimal | int]) -> Iterator[None]:
    """Give the functions of rules these values while the block runs."""
    _context.risk, _context.usage = risk, usage
    try:
        yield
    finally:
        _context.risk, _context.usage = Risk.CRITICAL, {}


def _at_least(word: str) -> bool:
    return _context.risk >= Risk.of(word)


def _used(measure: str, scope: str, *where: Any) -> Any:
    tool, argument, seconds = where[0], where[1] if len(where) > 2 else "", int(where[-1].total_seconds())
    value = _context.usage.get(UsageKey(scope, measure, tool, argument, seconds))
    if value is None:
        raise MissingUsageError(f"no value for usage of `{tool}`")
    return int(value) if measure == "count" else exact_double(Decimal(value))


def _functions(cel: Any) -> list[Any]:
    kinds = cel.Type
    counted, summed = [kinds.STRING, kinds.DURATION], [kinds.STRING, kinds.STRING, kinds.DURATION]
    declared = [_function(cel, "risk_at_least", [kinds.STRING], kinds.BOOL, _at_least)]
    for scope, prefix in (("agent", "usage"), ("organisation", "usage.org")):
        count, total = functools.partial(_used, "count", scope), functools.partial(_used, "sum", scope)
        declared.append(_function(cel, f"{prefix}.count", counted, kinds.INT, count))
        declared.append(_function(cel, f"{prefix}.sum", summed, kinds.DOUBLE, total))
    return declared


def _decimal_functions(cel: Any) -> list[Any]:
    double = cel.Type.DOUBLE
    return [_function(cel, name, [double, double], double, functools.partial(calculate, name)) for name in OPERATIONS]


def _function(cel: Any, name: str, parameters: list[Any], result: Any, run: Any) -> Any:
    overload = cel.Overload(name.replace(".", "_"), result, parameters, impl=lambda *arguments: run(*arguments))
    return cel.FunctionDecl(name, [overload])


def _operators(cel: Any) -> list[Any]:
    declared = []
    pairs = [*_COMPARED, *((f"list({kind})", f"list({kind})") for kind in _LISTS)]
    for number, name in enumerate(_REPLACED):
        if name == "@in":
            pairs = [(kind, f"list({element})") for kind, element in _CONTAINED]
        elif name not in ("_==_", "_!=_"):
            pairs = list(_COMPARED)
        overloads = [
            cel.Overload(f"operator_{number}_{place}", cel.Type.BOOL, [_type(cel, left), _type(cel, right)])
            for place, (left, right) in enumerate(pairs)
        ]
        declared.append(cel.FunctionDecl(name, overloads))
    return declared


def _type(cel: Any, name: str) -> Any:
    if name.startswith("list("):
        return cel.Type.List(_type(cel, name[5:-1]))
    if name.startswith("map("):
        return cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
    return cel.Type(name) if name.startswith(PREFIX) else getattr(cel.Type, name.upper())


@functools.cache
def evaluation_environment() -> Any:
    """Return the environment that conditions run in."""
    from cel_expr_python import cel

    # A time is only taken for a variable that is declared as one.
    return cel.NewEnv(variables={"now": cel.Type.TIMESTAMP}, functions=[*_functions(cel), *_decimal_functions(cel)])


@functools.cache
def agent_checker() -> Any:
    """Return the environment that checks `applies_to.agents`."""
    from cel_expr_python import cel

    # In the container `agent`, `labels` is `agent.labels`; a variable `type` of its own could not be declared.
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_CONFIG),
        container="agent",
        variables={f"agent.{name}": _type(cel, kind) for name, kind in AGENT_VARIABLES.items()},
        functions=_operators(cel),
    )


def rule_checker(arguments: ArgumentTypes) -> Any:
    """Return the environment that checks a rule whose arguments have these types."""
    return _rule_checker(tuple(sorted(arguments.items())))


@functools.lru_cache(_MAX_CHECKERS)
def _rule_checker(arguments: tuple[tuple[str, ArgumentType], ...]) -> Any:
    from cel_expr_python import cel

    variables = {name: _type(cel, cel_type(kind)) for name, kind in VARIABLES.items()}
    variables["args"] = _type(cel, PREFIX + "Args")
    return cel.NewEnv(
        descriptor_pool=_descriptors(arguments),
        config=cel.NewEnvConfigFromYaml(_CONFIG),
        variables=variables,
        functions=[*_functions(cel), *_operators(cel)],
    )


def _descriptors(arguments: tuple[tuple[str, ArgumentType], ...]) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(name="policy.proto", package=PREFIX.rstrip("."), syntax="proto3")
    for name, fields in MESSAGES.items():
        _add_message(file, name, fields)
    _add_arguments(file, "Args", arguments)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_arguments(file: Any, message: str, arguments: tuple[tuple[str, ArgumentType], ...]) -> None:
    fields = []
    for name, kind in arguments:
        part = kind.element if kind.element is not None else kind
        type_name = cel_argument_type(part) or f"{message}_{name}"
        if part.name == "object":
            _add_arguments(file, type_name, part.members)
        fields.append(FactField(name, f"list({type_name})" if kind.element is not None else type_name, optional=True))
    _add_message(file, message, tuple(fields))


def _add_message(file: Any, name: str, fields: tuple[FactField, ...]) -> None:
    message = file.message_type.add(name=name)
    for number, field in enumerate(fields, 1):
        _add_field(message, field, number)


def _add_field(message: Any, field: FactField, number: int) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    kind, repeated = field.type, field.type.startswith("list(")
    if repeated:
        kind = kind[5:-1]
    scalars = {
        "string": Field.TYPE_STRING,
        "bool": Field.TYPE_BOOL,
        "int": Field.TYPE_INT64,
        "double": Field.TYPE_DOUBLE,
    }
    added = message.field.add(name=field.name, number=number, json_name=field.name)
    added.label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    if kind.startswith("map("):
        _add_map(message, added)
    elif kind in scalars:
        added.type = scalars[kind]
    else:
        added.type, added.type_name = Field.TYPE_MESSAGE, f".{PREFIX}{kind}"


def _add_map(message: Any, field: Any) -> None:
    """Make the field a `map<string, string>`, which protobuf spells as a list of entries."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    entry = message.nested_type.add(name=f"{field.name.capitalize()}Entry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    field.label, field.type = Field.LABEL_REPEATED, Field.TYPE_MESSAGE
    field.type_name = f".{PREFIX}{message.name}.{entry.name}"

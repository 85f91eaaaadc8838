"""Meaning of every variable and function of a condition, for the reference page."""

from typing import NamedTuple

from qwed.policy.facts_schema import AGENT_TYPES, GROUPS, MESSAGES, RISKS, TIME_FUNCTIONS, VARIABLES, FactField


class VariableRow(NamedTuple):
    """A variable or one of its fields."""

    name: str
    type: str
    meaning: str


class FunctionRow(NamedTuple):
    """A function or operator."""

    shape: str
    meaning: str


_MEANINGS = {
    "action.type": "type of the action, such as `tool_call` or `execute_sql`",
    "tool.name": "name of the tool that is called; empty for an action that is no tool call",
    "tool.server": "MCP server of the tool; empty for other tools",
    "tool.registered": "true if the tool is in the registry",
    "args": "arguments whose type is stated, such as `args.amount`; `has(args.amount)` asks if there is one",
    "effects": "what the action does, each with `kind` and `target`",
    "risk": f"one of {', '.join(f'`{risk}`' for risk in RISKS)}",
    "checks_failed": "names of the checks that the engine reports as failed",
    "agent.id": "id of the agent",
    "agent.name": "name of the agent",
    "agent.type": f"one of {', '.join(f'`{kind}`' for kind in AGENT_TYPES)}",
    "agent.trust": "trust level from 0 to 3",
    "agent.labels": 'labels that an owner has set, such as `agent.labels.team`; a missing one reads as `""`',
    "agent.principal": "id of the principal that the agent acts for",
    "now": 'time of the decision; `now.getHours("Europe/Berlin")` is its hour there',
}
_TYPES = {"bool": "true or false", "int": "integer", "string": "text", "double": "number", "timestamp": "time"}


def _type_name(name: str) -> str:
    if name.startswith("list("):
        return f"list of {_type_name(name[5:-1])}"
    return "labels by name" if name.startswith("map(") else _TYPES.get(name, name.lower())


def _rows() -> list[VariableRow]:
    rows = []
    for name, kind in VARIABLES.items():
        if name in GROUPS:
            rows.append(VariableRow(name, "facts", f"[its fields](facts.md#{name}); absent where the action has none"))
        elif kind in MESSAGES:
            rows.extend(_field_row(name, field) for field in MESSAGES[kind])
        else:
            rows.append(VariableRow(name, _type_name(kind), _MEANINGS[name]))
        if name == "tool":
            rows.append(VariableRow("args", "as stated", _MEANINGS["args"]))
    return rows


def _field_row(owner: str, field: FactField) -> VariableRow:
    name = f"{owner}.{field.name}"
    return VariableRow(name, _type_name(field.type), _MEANINGS[name])


VARIABLE_ROWS = tuple(_rows())
FUNCTION_ROWS = (
    FunctionRow("a && b, a || b, !a, a ? b : c", "and, or, not, choice"),
    FunctionRow("==, !=, <, <=, >, >=", "comparison of two values of one type; an integer compares with a number"),
    FunctionRow('x in ["a", "b"]', "true if the list has the value"),
    FunctionRow("+, -, *, /, %", "arithmetic of two integers or two numbers; `+` joins texts and lists"),
    FunctionRow("has(args.x)", "true if the call has the argument, or a group its optional field"),
    FunctionRow("list.exists(x, condition)", "true if the condition holds for one element"),
    FunctionRow("list.all(x, condition)", "true if the condition holds for all elements, also of an empty list"),
    FunctionRow("list.exists_one(x, condition)", "true if the condition holds for exactly one element"),
    FunctionRow("list.filter(x, condition), list.map(x, value)", "a new list"),
    FunctionRow("size(x), x.size()", "characters of a text, elements of a list"),
    FunctionRow("text.startsWith(t), text.endsWith(t), text.contains(t)", "parts of a text"),
    FunctionRow('text.matches("pattern")', "true if the pattern occurs in the text; `^` and `$` bind it"),
    FunctionRow('risk_at_least("high")', "true if the risk is at this level or above"),
    FunctionRow(
        'usage.count("TOOL", duration("1h"))',
        "calls of the tool by this agent within the last hour, this one not counted",
    ),
    FunctionRow('usage.sum("TOOL", "ARGUMENT", duration("24h"))', "sum of an argument over these calls"),
    FunctionRow("usage.org.count(...), usage.org.sum(...)", "the same over all agents of the organisation"),
    FunctionRow(
        'duration("1h30m"), timestamp("2026-03-02T09:30:00Z")', "a span and a time; times have `<`, `>` and `-`"
    ),
    FunctionRow(
        ", ".join(f"now.{name}(zone)" for name in TIME_FUNCTIONS),
        "part of a time; without a zone in UTC; `getDate` counts from 1, months and other days from 0, Sunday is 0",
    ),
    FunctionRow("int(x), double(x), string(x)", "conversions; a text that is no number is an error"),
)
"""Functions in the order of the page."""

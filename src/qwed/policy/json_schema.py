"""JSON Schema of policy documents, for editors that complete and check them."""

from typing import Any

from qwed.model.facts import FACTS_VERSION
from qwed.policy.argument_types import SCALARS
from qwed.policy.document import PolicyAnswer, PolicyMode
from qwed.policy.document_reader import (
    APPLIES_TO_KEYS,
    MAX_APPROVERS,
    MAX_CONDITION,
    MAX_RULES,
    MAX_TESTS,
    MAX_TEXT,
    MAX_TOOLS,
    POLICY_ID,
    POLICY_KEYS,
    RULE_KEYS,
    TRUST_LEVELS,
)
from qwed.policy.example_reader import CALL_KEYS, EXPECTATIONS, TEST_KEYS, USAGE_KEYS
from qwed.policy.facts_schema import AGENT_VARIABLES

Schema = dict[str, Any]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAME: Schema = {"type": "string", "pattern": "^" + POLICY_ID.pattern.replace("\\Z", "$")}
_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
_WORDS: Schema = {"type": "string", "minLength": 1, "maxLength": 200}
_CONDITION: Schema = {"type": ["string", "boolean"], "maxLength": MAX_CONDITION}


def policy_schema() -> Schema:
    """Return the JSON Schema of a policy document."""
    return {"$schema": _DIALECT, "title": "qwed policy", **_object(POLICY_KEYS, _POLICY, ("policy", "facts", "rules"))}


def _object(keys: tuple[str, ...], properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    # A key without a schema would be a mistake of this module.
    members = {key: properties[key] for key in keys}
    return {"type": "object", "properties": members, "required": list(required), "additionalProperties": False}


def _list(item: Schema, most: int, least: int = 0) -> Schema:
    return {"type": "array", "items": item, "minItems": least, "maxItems": most}


def _names(most: int) -> Schema:
    return {"anyOf": [_WORDS, {**_list(_WORDS, most, 1), "uniqueItems": True}]}


def _described(text: str, schema: Schema) -> Schema:
    return {"description": text, **schema}


def _agent() -> Schema:
    kinds: dict[str, Schema] = {
        "int": {"type": "integer", "minimum": 0, "maximum": 3},
        "string": {"type": "string"},
        "map(string, string)": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    return _object(tuple(AGENT_VARIABLES), {name: kinds[kind] for name, kind in AGENT_VARIABLES.items()})


_SCALAR_TYPE: Schema = {"enum": list(SCALARS)}
_ARGUMENTS: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
    "additionalProperties": {"anyOf": [_SCALAR_TYPE, _list(_SCALAR_TYPE, 1, 1)]},
}
_TRUST: Schema = {"enum": [*range(1, len(TRUST_LEVELS)), *TRUST_LEVELS[1:]]}
_RULE = _object(
    RULE_KEYS,
    {
        "id": _described("name of the rule; answers and the log show it", _NAME),
        "when": _described("condition in CEL", _CONDITION),
        "then": _described("the answer where the condition holds", {"enum": [answer.value for answer in PolicyAnswer]}),
        "approvers": _described("for ask: groups of which one person each must approve", _names(MAX_APPROVERS)),
        "overrides": _described("for ask: a person may answer although trust would refuse", {"const": "trust"}),
        "min_trust": _described("for allow: trust from which it applies", _TRUST),
        "message": _described("shown to the agent and to approvers", _TEXT),
    },
    ("id", "when", "then"),
)
_USAGE = _object(
    USAGE_KEYS,
    {
        "count": _described("tool whose calls are counted", _WORDS),
        "sum": _described("tool whose argument is added up", _WORDS),
        "argument": _WORDS,
        "within": {"type": "string", "pattern": "^[0-9]{1,9}[smh]$"},
        "of": {"enum": ["agent", "organisation"]},
        "is": {"type": "number"},
    },
    ("within", "is"),
)
_CALL = _object(
    CALL_KEYS,
    {
        "tool": _WORDS,
        "args": {"type": "object"},
        "action": _described("an action as it is sent to be verified", {"type": "object"}),
    },
)
_TEST = _object(
    TEST_KEYS,
    {
        "name": _TEXT,
        "call": _CALL,
        "agent": _described("without it, the policy applies", _agent()),
        "now": _described("time of the call with its zone", {"type": "string"}),
        "usage": _list(_USAGE, 100),
        "expect": {"enum": list(EXPECTATIONS)},
    },
    ("call", "expect"),
)
_POLICY: dict[str, Schema] = {
    "policy": _described("name of the policy", _NAME),
    "facts": _described("version of the facts that the rules read", {"const": FACTS_VERSION}),
    "description": _TEXT,
    "applies_to": _object(
        APPLIES_TO_KEYS,
        {
            "tools": _described("tools and action types", _names(MAX_TOOLS)),
            "agents": _described('condition over the agent, such as labels.team == "support"', _CONDITION),
        },
    ),
    "args": _described("types of the arguments that rules read", _ARGUMENTS),
    "mode": _described("shadow decides nothing and is reported", {"enum": [mode.value for mode in PolicyMode]}),
    "rules": _list(_RULE, MAX_RULES, 1),
    "tests": _list(_TEST, MAX_TESTS),
}

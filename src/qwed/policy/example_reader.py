"""Reader of the `tests` of a policy document."""

import re
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from qwed.policy.document import PolicyAnswer, PolicyTest, UsageKey
from qwed.policy.facts_schema import AGENT_VARIABLES
from qwed.policy.problem import shown
from qwed.policy.yaml_reader import Entry, Value

if TYPE_CHECKING:
    from qwed.policy.document_reader import FieldReader

TEST_KEYS = ("name", "call", "agent", "now", "usage", "expect")
CALL_KEYS = ("tool", "args", "action")
USAGE_KEYS = ("count", "sum", "argument", "within", "of", "is")
EXPECTATIONS = (*(answer.value for answer in PolicyAnswer), "none")
MAX_USAGE_SECONDS = 31 * 24 * 3600
_SPAN = re.compile(r"([0-9]{1,9})(s|m|h)\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_MAX_USAGE = 100


def parse_span(text: str) -> int | None:
    """Return the seconds of a span such as `24h`, or None if it is not one of 1 second to 31 days."""
    match = _SPAN.match(text)
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    return seconds if 1 <= seconds <= MAX_USAGE_SECONDS else None


class ExampleReader:
    """Reads the test calls of one policy."""

    def __init__(self, fields: "FieldReader") -> None:
        self._fields = fields

    def read(self, value: Value) -> PolicyTest | None:
        """Return a test, or None if it has problems."""
        entries = self._fields.mapping(value, "a test", TEST_KEYS, ("call", "expect"))
        if entries is None:
            return None
        expect = self._fields.choice(entries, "expect", EXPECTATIONS, "none")
        return PolicyTest(
            at=value.at,
            action=self._action(entries["call"].value),
            expect=None if expect == "none" else PolicyAnswer(expect),
            agent=self._agent(entries),
            now=self._now(entries),
            usage=self._usage(entries),
            name=self._fields.text(entries, "name"),
        )

    def _action(self, value: Value) -> dict[str, Any]:
        entries = self._fields.mapping(value, "`call`", CALL_KEYS)
        if entries is None:
            return {}
        if ("action" in entries) == ("tool" in entries):
            self._fields.refuse(value.at, "`call` must have either `tool` with `args`, or `action`")
            return {}
        if "action" in entries:
            return self._plain_mapping(entries, "action")
        return {
            "type": "tool_call",
            "tool_name": self._fields.text(entries, "tool"),
            "parameters": self._plain_mapping(entries, "args"),
        }

    def _plain_mapping(self, entries: dict[str, Entry], key: str) -> dict[str, Any]:
        if key not in entries:
            return {}
        value = entries[key].value
        if not isinstance(value.content, dict):
            self._fields.refuse(value.at, f"`{key}` must be a mapping, not {value.kind}")
            return {}
        plain: dict[str, Any] = value.plain()
        return plain

    def _agent(self, entries: dict[str, Entry]) -> dict[str, Any]:
        if "agent" not in entries:
            return {}
        value = entries["agent"].value
        parts = self._fields.mapping(value, "`agent`", tuple(AGENT_VARIABLES))
        agent = {} if parts is None else self._plain_mapping(entries, "agent")
        for name, content in agent.items():
            if name in AGENT_VARIABLES and not _is_agent_value(name, content):
                self._fields.refuse(
                    value.content[name].value.at, f"`{name}` must be {_AGENT_FORMS[AGENT_VARIABLES[name]]}"
                )
        return agent

    def _now(self, entries: dict[str, Entry]) -> str | None:
        if "now" not in entries:
            return None
        text = self._fields.text(entries, "now")
        try:
            if datetime.fromisoformat(text).tzinfo is not None:
                return text
        except ValueError:
            pass
        example = "a time with a zone, such as `2026-03-02T09:30:00+01:00`"
        self._fields.refuse(entries["now"].value.at, f"`now` must be {example}, not {shown(text)}")
        return None

    def _usage(self, entries: dict[str, Entry]) -> dict[UsageKey, Decimal]:
        found: dict[UsageKey, Decimal] = {}
        for value in self._fields.items(entries, "usage", _MAX_USAGE):
            parts = self._fields.mapping(value, "an entry of `usage`", USAGE_KEYS, ("within", "is"))
            if parts is not None and (key := self._usage_key(value, parts)) is not None:
                found[key] = self._amount(parts["is"].value)
        return found

    def _usage_key(self, value: Value, parts: dict[str, Entry]) -> UsageKey | None:
        measures = [name for name in ("count", "sum") if name in parts]
        if len(measures) != 1 or ("argument" in parts) != (measures == ["sum"]):
            self._fields.refuse(value.at, "an entry of `usage` has `count: TOOL`, or `sum: TOOL` with `argument: NAME`")
            return None
        seconds = parse_span(self._fields.text(parts, "within"))
        if seconds is None:
            at = parts["within"].value.at
            self._fields.refuse(at, "`within` must be a span of 1 second to 31 days, such as `60s`, `10m` or `24h`")
            return None
        scope = self._fields.choice(parts, "of", ("agent", "organisation"), "agent")
        return UsageKey(
            scope, measures[0], self._fields.text(parts, measures[0]), self._fields.text(parts, "argument"), seconds
        )

    def _amount(self, value: Value) -> Decimal:
        if isinstance(value.content, bool) or not isinstance(value.content, int | float):
            self._fields.refuse(value.at, f"`is` must be a number, not {value.kind}")
            return Decimal(0)
        return Decimal(repr(value.content))


_AGENT_FORMS = {
    "string": "text",
    "int": "a trust level from 0 to 3",
    "map(string, string)": "a mapping of names to text",
}


def _is_agent_value(name: str, content: object) -> bool:
    kind = AGENT_VARIABLES[name]
    if kind == "int":
        return isinstance(content, int) and not isinstance(content, bool) and 0 <= content <= 3
    if kind == "string":
        return isinstance(content, str)
    return isinstance(content, dict) and all(isinstance(item, str) for item in content.values())

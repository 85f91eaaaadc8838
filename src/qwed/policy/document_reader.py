"""Reader of policy documents: checks every key and type, and returns a Policy or all problems found."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from qwed.model.facts import FACTS_VERSION
from qwed.model.suggestions import did_you_mean
from qwed.policy.argument_types import IDENTIFIER, SCALARS, ArgumentType
from qwed.policy.document import ConditionText, Policy, PolicyAnswer, PolicyMode, PolicyRule, PolicySource
from qwed.policy.example_reader import ExampleReader
from qwed.policy.problem import MAX_PROBLEMS, PolicyProblem, Position, SourceText, one_of, shown
from qwed.policy.yaml_reader import Entry, Value, read_yaml

POLICY_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z", re.ASCII)
MAX_RULES = 200
"""Rules of a policy."""
MAX_TESTS = 1_000
MAX_TOOLS = 1_000
MAX_APPROVERS = 5
MAX_CONDITION = 4_096
"""Characters of a condition."""
MAX_TEXT = 1_000
"""Characters of a description or message."""
POLICY_KEYS = ("policy", "facts", "description", "applies_to", "args", "mode", "rules", "tests")
RULE_KEYS = ("id", "when", "then", "approvers", "overrides", "min_trust", "message")
APPLIES_TO_KEYS = ("tools", "agents")
TRUST_LEVELS = ("untrusted", "supervised", "autonomous", "trusted")
Mapped = dict[str, Entry]


def read_policy(document: PolicySource) -> Policy | tuple[PolicyProblem, ...]:
    """Return the policy of a document, or every problem of it."""
    source = SourceText(document.name, document.text)
    root = read_yaml(source)
    if isinstance(root, PolicyProblem):
        return (root,)
    reader = _PolicyReader(source)
    policy = reader.read(root)
    return tuple(reader.problems[:MAX_PROBLEMS]) if policy is None or reader.problems else policy


class FieldReader:
    """Reads typed fields of mappings and collects problems."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.problems: list[PolicyProblem] = []
        self.policy_id = ""
        self.rule_id = ""

    def refuse(self, at: Position, message: str) -> None:
        """Add a problem."""
        self.problems.append(self.source.problem(at, message, policy=self.policy_id, rule=self.rule_id))

    def mapping(self, value: Value, what: str, keys: Sequence[str], required: Iterable[str] = ()) -> Mapped | None:
        """Return a mapping that has the required and no other keys."""
        if not isinstance(value.content, dict):
            self.refuse(value.at, f"{what} must be a mapping, not {value.kind}")
            return None
        for key, entry in value.content.items():
            if key not in keys:
                self.refuse(entry.at, one_of(key, keys, f"key of {what}"))
        missing = [key for key in required if key not in value.content]
        for key in missing:
            self.refuse(value.at, f"{what} has no `{key}`: add it")
        return None if missing else value.content

    def text(self, entries: Mapped, key: str, most: int = MAX_TEXT, *, empty: bool = False) -> str:
        """Return a text; an absent one is empty."""
        if key not in entries:
            return ""
        value = entries[key].value
        if not isinstance(value.content, str):
            self.refuse(value.at, f"`{key}` must be text, not {value.kind}: put it in quotes")
            return ""
        if len(value.content) > most or not (value.content or empty):
            self.refuse(value.at, f"`{key}` must have 1 to {most} characters, not {len(value.content)}")
        return value.content

    def choice(self, entries: Mapped, key: str, names: Sequence[str], default: str) -> str:
        """Return one of a closed set of words."""
        if key not in entries:
            return default
        value = entries[key].value
        if value.content not in names or not isinstance(value.content, str):
            self.refuse(value.at, one_of(value.content, names, f"value of `{key}`"))
            return default
        return value.content

    def items(self, entries: Mapped, key: str, most: int) -> list[Value]:
        """Return a list; an absent one is empty."""
        if key not in entries:
            return []
        value = entries[key].value
        if not isinstance(value.content, list):
            self.refuse(value.at, f"`{key}` must be a list, not {value.kind}")
            return []
        if len(value.content) > most:
            self.refuse(value.at, f"`{key}` may have at most {most} entries, not {len(value.content)}")
            return []
        return value.content

    def names(self, entries: Mapped, key: str, most: int) -> tuple[str, ...]:
        """Return a list of distinct names; a single name counts as a list of one."""
        if key in entries and isinstance(entries[key].value.content, str):
            values = [entries[key].value]
        else:
            values = self.items(entries, key, most)
            if key in entries and isinstance(entries[key].value.content, list) and not values:
                self.refuse(entries[key].value.at, f"`{key}` is empty: name one, or remove it")
        names: dict[str, None] = {}
        for value in values:
            if not isinstance(value.content, str) or not 0 < len(value.content) <= _MAX_NAME:
                self.refuse(value.at, f"an entry of `{key}` must be a name of 1 to {_MAX_NAME} characters")
            elif value.content in names:
                self.refuse(value.at, f"{shown(value.content)} occurs twice in `{key}`")
            else:
                names[value.content] = None
        return tuple(names)

    def condition(self, entries: Mapped, key: str) -> ConditionText | None:
        """Return an expression with its position."""
        if key not in entries:
            return None
        value = entries[key].value
        if isinstance(value.content, bool):
            return ConditionText("true" if value.content else "false", value.at)
        text = self.text(entries, key, MAX_CONDITION)
        raw = self.source.text[value.raw_start : value.raw_end]
        return ConditionText(text, value.at, tuple(_line_positions(text, raw, value)))


_MAX_NAME = 200


def _line_positions(text: str, raw: str, value: Value) -> Iterator[tuple[int, Position]]:
    """Yield where each line of the document begins in a text that may be folded, as far as it is written plainly."""
    quoted = value.style in ("'", '"')
    end = 0
    for number, line in enumerate((raw[1:-1] if quoted else raw).split("\n")):
        content = line.strip()
        if not content or (number == 0 and value.style in ("|", ">")):
            continue
        start = text.find(content, end)
        if start < 0:
            return
        end = start + len(content)
        column = 1 + line.index(content) + (value.at.column - 1 + quoted if number == 0 else 0)
        yield start, Position(value.at.line + number, column)


class _PolicyReader(FieldReader):
    def read(self, root: Value) -> Policy | None:
        entries = self.mapping(root, "the policy", POLICY_KEYS, ("policy", "facts", "rules"))
        if entries is None:
            return None
        self.policy_id = self._policy_id(entries)
        self._check_facts_version(entries)
        applies = (
            self.mapping(entries["applies_to"].value, "`applies_to`", APPLIES_TO_KEYS)
            if "applies_to" in entries
            else {}
        )
        tests = ExampleReader(self)
        return Policy(
            policy_id=self.policy_id,
            source=self.source,
            description=self.text(entries, "description"),
            tools=self.names(applies or {}, "tools", MAX_TOOLS),
            agents=self.condition(applies or {}, "agents"),
            args=self._argument_types(entries),
            mode=PolicyMode(self.choice(entries, "mode", [mode.value for mode in PolicyMode], PolicyMode.ENFORCE)),
            rules=self._rules(entries),
            tests=tuple(filter(None, map(tests.read, self.items(entries, "tests", MAX_TESTS)))),
        )

    def _policy_id(self, entries: Mapped) -> str:
        name = self.text(entries, "policy")
        if name and not POLICY_ID.match(name):
            form = "1 to 64 lower-case letters, digits, `-` and `_`"
            self.refuse(entries["policy"].value.at, f"`policy` must be a name of {form}, not {shown(name)}")
        return name

    def _check_facts_version(self, entries: Mapped) -> None:
        value = entries["facts"].value
        if isinstance(value.content, bool) or value.content != FACTS_VERSION:
            text = f"`facts` must be {FACTS_VERSION}, the version of the facts that this release has, not"
            self.refuse(value.at, f"{text} {shown(value.content)}")

    def _argument_types(self, entries: Mapped) -> dict[str, ArgumentType]:
        if "args" not in entries:
            return {}
        value = entries["args"].value
        if not isinstance(value.content, dict):
            self.refuse(value.at, f"`args` must map names to types, such as `amount: number`, not {value.kind}")
            return {}
        found: dict[str, ArgumentType] = {}
        for name, entry in value.content.items():
            if not IDENTIFIER.match(name):
                self.refuse(entry.at, f"the argument {shown(name)} must be an identifier of letters, digits and `_`")
            elif kind := self._argument_type(entry.value):
                found[name] = kind
        return found

    def _argument_type(self, value: Value) -> ArgumentType | None:
        if isinstance(value.content, list):
            element = self._argument_type(value.content[0]) if len(value.content) == 1 else None
            if element is None or element.name == "list":
                self.refuse(value.at, "a list type has one type in brackets, such as `[string]`")
                return None
            return ArgumentType("list", element)
        if value.content in SCALARS and isinstance(value.content, str):
            return ArgumentType(value.content)
        self.refuse(value.at, one_of(value.content, (*SCALARS, "[string]"), "type"))
        return None

    def _rules(self, entries: Mapped) -> tuple[PolicyRule, ...]:
        rules: dict[str, PolicyRule] = {}
        values = self.items(entries, "rules", MAX_RULES)
        if not values and not self.problems:
            self.refuse(entries["rules"].value.at, "`rules` is empty: add a rule with `id`, `when` and `then`")
        for value in values:
            self.rule_id = ""
            rule = self._rule(value)
            if rule is not None and rule.rule_id in rules:
                self.refuse(value.at, f"the rule {shown(rule.rule_id)} occurs twice: give each rule an id of its own")
            elif rule is not None:
                rules[rule.rule_id] = rule
        self.rule_id = ""
        return tuple(rules.values())

    def _rule(self, value: Value) -> PolicyRule | None:
        entries = self.mapping(value, "a rule", RULE_KEYS, ("id", "when", "then"))
        if entries is None:
            return None
        self.rule_id = self.text(entries, "id")
        if self.rule_id and not POLICY_ID.match(self.rule_id):
            form = "1 to 64 lower-case letters, digits, `-` and `_`"
            self.refuse(entries["id"].value.at, f"`id` must be a name of {form}, not {shown(self.rule_id)}")
        when = self.condition(entries, "when")
        then = PolicyAnswer(self.choice(entries, "then", [answer.value for answer in PolicyAnswer], PolicyAnswer.DENY))
        self._check_only(entries, then, PolicyAnswer.ASK, ("approvers", "overrides"))
        self._check_only(entries, then, PolicyAnswer.ALLOW, ("min_trust",))
        if when is None:
            return None
        return PolicyRule(
            rule_id=self.rule_id,
            at=value.at,
            when=when,
            then=then,
            approvers=self.names(entries, "approvers", MAX_APPROVERS),
            overrides_trust=self.choice(entries, "overrides", ("trust",), "") == "trust",
            min_trust=self._min_trust(entries),
            message=self.text(entries, "message"),
        )

    def _check_only(self, entries: Mapped, then: PolicyAnswer, wanted: PolicyAnswer, keys: Sequence[str]) -> None:
        for key in keys:
            if key in entries and then is not wanted:
                self.refuse(entries[key].at, f"`{key}` belongs to a rule with `then: {wanted}`: remove it")

    def _min_trust(self, entries: Mapped) -> int | None:
        if "min_trust" not in entries:
            return None
        value = entries["min_trust"].value
        level: Any = value.content
        if isinstance(level, str) and level in TRUST_LEVELS:
            level = TRUST_LEVELS.index(level)
        if isinstance(level, bool) or not isinstance(level, int) or not 1 <= level <= len(TRUST_LEVELS) - 1:
            levels = "1 to 3, `supervised`, `autonomous` or `trusted`"
            advice = did_you_mean(value.content, TRUST_LEVELS[1:]).rstrip()
            self.refuse(value.at, f"`min_trust` must be {levels}, not {shown(value.content)}{advice and f': {advice}'}")
            return None
        return level

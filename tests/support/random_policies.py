"""Policy sets, edits of them and calls, drawn at random from a seed."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from qwed.model.decision import Risk
from qwed.model.effect import Effect, EffectKind, risk_of
from qwed.model.facts import (
    ClaimFacts,
    EmailFacts,
    Facts,
    HttpFacts,
    ShellCommand,
    ShellFacts,
    SqlFacts,
)
from qwed.policy import CompiledPolicies, PolicyAgent, PolicyInput, PolicySource, PolicyTool, UsageKey, compile_policies
from tests.support.policy_calls import policy, rule

TOOLS = ("refund", "send_email", "read_file", "deploy", "query_db")
TEAMS = ("support", "hr", "ops")
PROGRAMS = ("git", "ls", "cat", "rm", "curl")
TABLES = ("orders", "salaries", "users")
PATHS = ("/srv/app/", "/srv/", "/etc/", "/tmp/")
HOSTS = ("api.corp.example", "corp.example", "evil.example")
ADDRESSES = ("a@corp.example", "b@evil.example", "corp.example")
TAGS = ("red", "blue", "green")
KINDS = ("READ", "WRITE", "DELETE", "NETWORK", "SPEND", "UNRESOLVED")
NUMBERS = (0, 1, 10, 50, 100, 500)
ARGS = "amount: number, count: integer, to: string, path: string, force: boolean, tags: [string]"
Random = random.Random


def _listed(rng: Random, values: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in rng.sample(values, rng.randint(1, 2))) + "]"


def _order(rng: Random) -> str:
    return rng.choice(("<", "<=", ">", ">="))


def _number(rng: Random) -> str:
    return str(rng.choice(NUMBERS))


ATOMS: tuple[Callable[[Random], str], ...] = (
    lambda rng: f"args.amount {_order(rng)} {_number(rng)}",
    lambda rng: f"args.amount {_order(rng)} {_number(rng)}.5",
    lambda rng: f"args.count {_order(rng)} {_number(rng)}",
    lambda rng: f"args.count + {rng.randint(1, 5)} {_order(rng)} {_number(rng)}",
    lambda rng: f"args.count % {rng.randint(2, 5)} == {rng.randint(0, 1)}",
    lambda rng: f'args.to == "{rng.choice(ADDRESSES)}"',
    lambda rng: f"args.to in {_listed(rng, ADDRESSES)}",
    lambda rng: f'args.to.{rng.choice(("startsWith", "endsWith", "contains"))}("{rng.choice(HOSTS)}")',
    lambda rng: f"size(args.to) {_order(rng)} {rng.randint(0, 20)}",
    lambda rng: f'has(args.to) && args.to != "{rng.choice(ADDRESSES)}"',
    lambda rng: f'args.path.startsWith("{rng.choice(PATHS)}")',
    lambda rng: f'args.path {_order(rng)} "{rng.choice(PATHS)}"',
    lambda rng: rng.choice(("args.force", "!args.force", "has(args.force)", "!has(args.amount)")),
    lambda rng: f'"{rng.choice(TAGS)}" in args.tags',
    lambda rng: f'args.tags.{rng.choice(("exists", "all"))}(t, t == "{rng.choice(TAGS)}")',
    lambda rng: f"args.tags.all(t, t in {_listed(rng, TAGS)})",
    lambda rng: f"size(args.tags) {_order(rng)} {rng.randint(0, 3)}",
    lambda rng: f'args.tags == ["{rng.choice(TAGS)}"]',
    lambda rng: f'size(args.tags) > 1 && args.tags[1] == "{rng.choice(TAGS)}"',
    lambda rng: f'sql.tables.exists(t, t == "{rng.choice(TABLES)}")',
    lambda rng: f"sql.tables.all(t, t in {_listed(rng, TABLES)})",
    lambda rng: f'sql.statements.all(s, s == "{rng.choice(("select", "update"))}")',
    lambda rng: rng.choice(("sql.has_where", "!sql.has_where")),
    lambda rng: f"has(sql.limit) && sql.limit {_order(rng)} {_number(rng)}",
    lambda rng: f"shell.commands.all(c, c.program in {_listed(rng, PROGRAMS)})",
    lambda rng: f'shell.commands.exists(c, c.program == "{rng.choice(PROGRAMS)}" && "-f" in c.options)',
    lambda rng: f'shell.paths_written.all(p, p.startsWith("{rng.choice(PATHS)}"))',
    lambda rng: f'http.method == "{rng.choice(("GET", "POST"))}"',
    lambda rng: f'http.host.endsWith("{rng.choice(HOSTS)}")',
    lambda rng: f'email.domains.all(d, d == "{rng.choice(HOSTS)}")',
    lambda rng: f'claim.status == "{rng.choice(("VERIFIED", "FAILED"))}"',
    lambda rng: f'risk_at_least("{rng.choice(("medium", "high", "critical"))}")',
    lambda rng: f"risk in {_listed(rng, ('low', 'medium', 'high', 'critical'))}",
    lambda rng: f"agent.trust {_order(rng)} {rng.randint(0, 3)}",
    lambda rng: f'agent.labels.team {rng.choice(("==", "!="))} "{rng.choice(TEAMS)}"',
    lambda rng: f'effects.exists(e, e.kind == "{rng.choice(KINDS)}")',
    lambda rng: f"effects.all(e, e.kind in {_listed(rng, KINDS)})",
    lambda rng: f'!effects.exists(e, e.target.startsWith("{rng.choice(PATHS)}"))',
    lambda rng: f'usage.count("{rng.choice(TOOLS[:2])}", duration("1h")) {_order(rng)} {rng.randint(0, 10)}',
    lambda rng: (
        f'usage.sum("refund", "amount", duration("24h")) + args.amount {rng.choice(("<", "<="))} {_number(rng)}.0'
    ),
    lambda rng: f'now.getHours("Europe/Berlin") {_order(rng)} {rng.randint(7, 19)}',
    lambda rng: f"now.getDayOfWeek() {_order(rng)} {rng.randint(0, 6)}",
    lambda rng: rng.choice(("tool.registered", 'tool.name == "refund"', 'action.type == "tool_call"')),
    lambda rng: rng.choice(('"no_pii" in checks_failed', "size(checks_failed) == 0")),
    lambda _rng: "true",
)
"""Parts of a condition."""


@dataclass(frozen=True)
class RandomRule:
    """A rule as its parts."""

    parts: tuple[str, ...]
    then: str
    more: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class RandomPolicy:
    """A policy as its parts."""

    name: str
    tools: tuple[str, ...]
    agents: str
    rules: tuple[RandomRule, ...]
    mode: str = "enforce"

    @property
    def text(self) -> str:
        """The document."""
        applies = [f"tools: [{', '.join(self.tools)}]"] if self.tools else []
        applies += [f"agents: '{self.agents}'"] if self.agents else []
        head = f"mode: {self.mode}\n" + (f"applies_to: {{{', '.join(applies)}}}\n" if applies else "")
        rules = [
            rule(" && ".join(part.parts), part.then, f"r{number}", **dict(part.more))
            for number, part in enumerate(self.rules)
        ]
        return policy(*rules, name=self.name, args=ARGS, head=head)


PolicySet = tuple[RandomPolicy, ...]


def compile_set(policies: PolicySet) -> CompiledPolicies | None:
    """Return the compiled set, or None if it is refused."""
    compiled = compile_policies(PolicySource(part.name, part.text) for part in policies)
    return compiled if isinstance(compiled, CompiledPolicies) else None


def _is_accepted(part: RandomPolicy) -> bool:
    return compile_set((part,)) is not None


def random_rule(rng: Random) -> RandomRule:
    """Return a rule that is accepted."""
    while True:
        parts = tuple(rng.choice(ATOMS)(rng) for _ in range(rng.randint(1, 3)))
        if len(parts) > 1 and rng.random() < 0.2:
            parts = (f"({parts[0]} || {parts[1]})", *parts[2:])
        then = rng.choice(("allow", "allow", "ask", "deny"))
        more: tuple[tuple[str, str], ...] = ()
        if then == "allow" and rng.random() < 0.3:
            more = (("min_trust", str(rng.randint(1, 3))),)
        if then == "ask" and rng.random() < 0.3:
            more = (("overrides", "trust"),)
        made = RandomRule(parts, then, more)
        if _is_accepted(RandomPolicy("tried", (), "", (made,))):
            return made


def random_set(rng: Random, rules: int, per_policy: int = 5) -> PolicySet:
    """Return a policy set with this many rules."""
    found = []
    names = (*TOOLS, *(f"tool_{number}" for number in range(rules // per_policy - len(TOOLS))))
    for number in range(-(-rules // per_policy)):
        # Policies for all tools are few, in large sets too.
        tools = () if number < 3 and rng.random() < 0.3 else tuple(rng.sample(names, rng.randint(1, 2)))
        agents = rng.choice(("", "", "", 'labels.team == "support"', "trust >= 1"))
        count = min(per_policy, rules - number * per_policy)
        found.append(RandomPolicy(f"p{number}", tools, agents, tuple(random_rule(rng) for _ in range(count))))
    return tuple(found)


_OPERATOR = re.compile(r"(?<![!<>=])(<=|>=|==|!=|<|>)(?!=)")
_LITERAL_NUMBER = re.compile(r"(?<=[<>=] )(\d+)")
_TEXT = re.compile(r'"([^"]*)"')


def _change_rule(
    policies: PolicySet, rng: Random, change: Callable[[RandomRule], RandomRule | None]
) -> PolicySet | None:
    place = rng.randrange(len(policies))
    chosen = policies[place]
    number = rng.randrange(len(chosen.rules))
    changed = change(chosen.rules[number])
    if changed is None:
        return None
    rules = (*chosen.rules[:number], changed, *chosen.rules[number + 1 :])
    return _replaced(policies, place, replace(chosen, rules=rules))


def _replaced(policies: PolicySet, place: int, part: RandomPolicy) -> PolicySet:
    return (*policies[:place], part, *policies[place + 1 :])


def _edit_part(pattern: re.Pattern[str], new: Callable[[Random, str], str]) -> "Edit":
    def edit(policies: PolicySet, rng: Random) -> PolicySet | None:
        def change(chosen: RandomRule) -> RandomRule | None:
            text = "\0".join(chosen.parts)
            matches = list(pattern.finditer(text))
            if not matches:
                return None
            match = rng.choice(matches)
            text = text[: match.start()] + new(rng, match[0]) + text[match.end() :]
            return replace(chosen, parts=tuple(text.split("\0")))

        return _change_rule(policies, rng, change)

    return edit


def _other_text(rng: Random, text: str) -> str:
    pools = (TEAMS, PROGRAMS, TABLES, PATHS, HOSTS, ADDRESSES, TAGS, KINDS)
    pool = next((pool for pool in pools if text.strip('"') in pool), (text.strip('"'),))
    return f'"{rng.choice(pool)}"'


def _drop_part(policies: PolicySet, rng: Random) -> PolicySet | None:
    def change(chosen: RandomRule) -> RandomRule | None:
        if len(chosen.parts) < 2:
            return None
        dropped = rng.randrange(len(chosen.parts))
        return replace(chosen, parts=chosen.parts[:dropped] + chosen.parts[dropped + 1 :])

    return _change_rule(policies, rng, change)


def _add_part(policies: PolicySet, rng: Random) -> PolicySet | None:
    return _change_rule(policies, rng, lambda chosen: replace(chosen, parts=(*chosen.parts, rng.choice(ATOMS)(rng))))


def _change_answer(policies: PolicySet, rng: Random) -> PolicySet | None:
    def change(chosen: RandomRule) -> RandomRule:
        return replace(chosen, then=rng.choice(("allow", "ask", "deny")), more=())

    return _change_rule(policies, rng, change)


def _change_options(policies: PolicySet, rng: Random) -> PolicySet | None:
    def change(chosen: RandomRule) -> RandomRule | None:
        options = {"allow": [("min_trust", str(rng.randint(1, 3)))], "ask": [("overrides", "trust")]}
        if chosen.then not in options:
            return None
        return replace(chosen, more=() if chosen.more else tuple(options[chosen.then]))

    return _change_rule(policies, rng, change)


def _add_tool(policies: PolicySet, rng: Random) -> PolicySet | None:
    place = rng.randrange(len(policies))
    chosen = policies[place]
    tools = {*chosen.tools} ^ {rng.choice(TOOLS)}
    return _replaced(policies, place, replace(chosen, tools=tuple(sorted(tools)))) if tools else None


def _change_agents(policies: PolicySet, rng: Random) -> PolicySet | None:
    place = rng.randrange(len(policies))
    agents = rng.choice(("", *(f'labels.team == "{team}"' for team in TEAMS), "trust >= 2"))
    return _replaced(policies, place, replace(policies[place], agents=agents))


def _shuffle(policies: PolicySet, rng: Random) -> PolicySet | None:
    shuffled = [replace(part, rules=tuple(rng.sample(part.rules, len(part.rules)))) for part in policies]
    return tuple(rng.sample(shuffled, len(shuffled)))


def _shadow(policies: PolicySet, rng: Random) -> PolicySet | None:
    place = rng.randrange(len(policies))
    return _replaced(policies, place, replace(policies[place], mode="shadow"))


def _remove_rule(policies: PolicySet, rng: Random) -> PolicySet | None:
    place = rng.randrange(len(policies))
    chosen = policies[place]
    if len(chosen.rules) < 2:
        return None
    number = rng.randrange(len(chosen.rules))
    return _replaced(policies, place, replace(chosen, rules=chosen.rules[:number] + chosen.rules[number + 1 :]))


def _add_rule(policies: PolicySet, rng: Random) -> PolicySet | None:
    place = rng.randrange(len(policies))
    chosen = policies[place]
    return _replaced(policies, place, replace(chosen, rules=(*chosen.rules, random_rule(rng))))


Edit = Callable[[PolicySet, Random], PolicySet | None]
EDITS: dict[str, Edit] = {
    "change a bound": _edit_part(
        _LITERAL_NUMBER, lambda rng, text: str(max(0, int(text) + rng.choice((-10, -1, 1, 10))))
    ),
    "swap an operator": _edit_part(
        _OPERATOR, lambda rng, text: rng.choice(("==", "!=") if text in ("==", "!=") else ("<", "<=", ">", ">="))
    ),
    "change a text": _edit_part(_TEXT, _other_text),
    "drop a conjunct": _drop_part,
    "add a conjunct": _add_part,
    "change the answer": _change_answer,
    "change the options": _change_options,
    "add or remove a tool": _add_tool,
    "change the agents": _change_agents,
    "reorder": _shuffle,
    "put into shadow": _shadow,
    "remove a rule": _remove_rule,
    "add a rule": _add_rule,
}
"""Edits of a policy set; one that does not apply returns None."""


def random_edit(policies: PolicySet, rng: Random, name: str) -> tuple[CompiledPolicies, PolicySet]:
    """Return an edit of a policy set, compiled and as its parts."""
    for _ in range(200):
        edited = EDITS[name](policies, rng)
        compiled = compile_set(edited) if edited is not None else None
        if compiled is not None and edited is not None:
            return compiled, edited
    raise AssertionError(f"no edit was found: {name}")


_NUMBER_IN_TEXT = re.compile(r"(?<![\w.])(\d+)(\.\d+)?")


def numbers_of(*sets: PolicySet) -> list[Decimal]:
    """Return the numbers of the conditions, and those close to them."""
    texts = (" ".join(part.parts) for policies in sets for one in policies for part in one.rules)
    found = {Decimal(match[0]) for text in texts for match in _NUMBER_IN_TEXT.finditer(text)}
    near = {number + step for number in found for step in (Decimal(-1), Decimal(0), Decimal(1), Decimal("0.25"))}
    return sorted(near)


def random_call(
    rng: Random, tools: Sequence[str], numbers: Sequence[Decimal], usage: Sequence[UsageKey]
) -> PolicyInput:
    """Return a call; most of its values are ones that conditions speak about."""
    effects = tuple(
        Effect(EffectKind(rng.choice(KINDS)), rng.choice((*PATHS, "x"))) for _ in range(rng.choice((0, 1, 1, 2)))
    )
    trust = rng.randint(0, 3)
    name = rng.choice((*tools, *tools, "other", ""))
    # Only a call of a tool has a tool of another name than its type.
    action_type = rng.choice(("tool_call", "tool_call", "tool_call", name or "database_query"))
    return PolicyInput(
        action_type=action_type,
        tool=PolicyTool(name=name if action_type != "database_query" else "", registered=rng.random() < 0.5),
        args=_random_args(rng, numbers),
        effects=effects,
        risk=Risk(rng.randint(int(risk_of(effects)), 3)),
        checks_failed=tuple(rng.sample(("no_pii", "other"), rng.choice((0, 0, 1)))),
        facts=_random_facts(rng, numbers),
        agent=PolicyAgent(
            agent_id="agent_1",
            trust=trust,
            registered_trust=rng.choice((trust, trust, rng.randint(0, 3))),
            labels={"team": rng.choice(TEAMS)} if rng.random() < 0.7 else {},
        ),
        now=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=30 * rng.randrange(48 * 8)),
        usage={key: _random_usage(rng, key, numbers) for key in usage},
    )


def _random_usage(rng: Random, key: UsageKey, numbers: Sequence[Decimal]) -> Decimal | int:
    return rng.randint(0, 12) if key.measure == "count" else rng.choice((Decimal(0), Decimal("10.5"), *numbers))


def _random_args(rng: Random, numbers: Sequence[Decimal]) -> dict[str, Any]:
    chosen = rng.choice((*numbers, Decimal(5)))
    values: dict[str, Any] = {
        "amount": int(chosen) if chosen == int(chosen) and rng.random() < 0.5 else chosen,
        "count": int(rng.choice((*numbers, Decimal(5)))),
        "to": rng.choice((*ADDRESSES, *(f"x@{host}" for host in HOSTS), "", "z")),
        "path": rng.choice(PATHS) + rng.choice(("", "file", "sub/file")),
        "force": rng.random() < 0.5,
        "tags": [rng.choice((*TAGS, "grey")) for _ in range(rng.randint(0, 3))],
    }
    for name in list(values):
        if rng.random() < 0.1:
            del values[name]
        elif rng.random() < 0.04:
            values[name] = rng.choice((None, "text", 3, True, [], [1], {"a": 1}, Decimal("1e30")))
    return values


def _random_facts(rng: Random, numbers: Sequence[Decimal]) -> Facts:
    def some(values: Sequence[str], most: int = 2) -> tuple[str, ...]:
        return tuple(rng.choice((*values, "other")) for _ in range(rng.randint(0, most)))

    def complete() -> bool:
        return rng.random() < 0.8

    groups: dict[str, Any] = {
        "sql": SqlFacts(
            complete=complete(),
            statements=some(("select", "select", "update")),
            tables=some(TABLES),
            has_where=rng.random() < 0.5,
            limit=rng.choice((None, *(int(number) for number in numbers if number >= 0), 7)),
        ),
        "shell": ShellFacts(
            complete=complete(),
            commands=tuple(
                ShellCommand(program=rng.choice(PROGRAMS), options=some(("-f",), 1)) for _ in range(rng.randint(0, 2))
            ),
            paths_written=tuple(rng.choice(PATHS) + "x" for _ in range(rng.randint(0, 2))),
        ),
        "http": HttpFacts(complete=complete(), method=rng.choice(("GET", "POST")), host=rng.choice(HOSTS), path="/"),
        "email": EmailFacts(complete=complete(), domains=some(HOSTS)),
        "claim": ClaimFacts(complete=complete(), status=rng.choice(("VERIFIED", "FAILED", "UNCERTAIN"))),
    }
    return Facts(**{name: group for name, group in groups.items() if rng.random() < 0.5})

"""Hostile policy documents, conditions and calls, generated deterministically."""

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.model.effect import Effect, EffectKind
from qwed.model.facts import MAX_ENTRIES, Facts, ShellCommand, ShellFacts, SqlFacts
from tests.support.policy_calls import policy, rule

SEED = 11
VALID = policy(rule("args.amount > 50 && sql.tables.exists(t, t == 'x')", "deny"), args="amount: number")


class HostileCase(NamedTuple):
    """A document with one allow that never holds, or none at all, and the call it is asked about."""

    name: str
    document: str
    args: dict[str, Any] = {}  # noqa: RUF012 - a default of a NamedTuple is never changed
    facts: Facts = Facts()
    effects: tuple[Effect, ...] = ()


def cases() -> list[HostileCase]:
    """Return all cases."""
    return [*_documents(), *_mutations(), *_conditions(), *_values(), *_loops()]


def _documents() -> Iterator[HostileCase]:
    for depth in (17, 100, 1_000, 60_000):
        for name, text in (("[", "]"), ("{a: ", "}"), ('{"a":', "}"), ("- ", ""), ("? ", ""), ("a:\n" + " ", "")):
            yield HostileCase(f"{depth} times {name!r}", (name * depth + text * depth)[:250_000])
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{level}: &a{level} [*a{level - 1}, *a{level - 1}]\n" for level in range(1, 40)
    )
    yield HostileCase("bomb of aliases", bomb)
    yield HostileCase("alias to itself", "&a [*a]")
    yield HostileCase("merge bomb", "x: &x {a: 1}\n" + "y: {" + "<<: *x, " * 1_000 + "}\n")
    for size in (10_000, 60_000):
        yield HostileCase(f"{size} keys", "\n".join(f"k{number}: 1" for number in range(size))[:250_000])
        yield HostileCase(f"{size} entries", f"policy: p\nfacts: 1\nrules: [{'a, ' * size}]"[:250_000])
        yield HostileCase(f"{size} tools", policy(rule("true"), head=f"applies_to: {{tools: [{'a, ' * size}]}}\n"))
    yield HostileCase("one long line", "policy: " + "p" * 250_000)
    yield HostileCase("one long key", "p" * 250_000 + ": 1")
    yield HostileCase("long number", policy(rule("true")).replace("facts: 1", "facts: " + "9" * 200_000))
    yield HostileCase("infinite number", policy(rule("true")).replace("facts: 1", "facts: 1e999"))
    for char in (
        "\x00",
        "\x01",
        "\x1b",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ud800",
        "\udfff",
        "\U0010ffff",
        "\u202e",
    ):
        for at in (0, 4, len(VALID) // 2, len(VALID)):
            yield HostileCase(f"{char!a} at {at}", VALID[:at] + char + VALID[at:])
    for tag in ("!!python/object/apply:os.system [id]", "!!binary aGk=", "!!set {a}", "!!timestamp 2026-01-01", "!x y"):
        yield HostileCase(f"tag {tag}", f"policy: {tag}\nfacts: 1\nrules: []\n")


def _mutations() -> Iterator[HostileCase]:
    chance = random.Random(SEED)
    pieces = [
        "\n",
        " ",
        ":",
        "-",
        "[",
        "]",
        "{",
        "}",
        "'",
        '"',
        "&",
        "*",
        "!",
        "|",
        ">",
        "#",
        "%",
        "@",
        "`",
        "\t",
        "?",
        ",",
    ]
    for number in range(150):
        text = list(VALID)
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(text))
            if chance.random() < 0.5:
                text[at] = chance.choice(pieces)
            else:
                del text[at : at + chance.randint(1, 12)]
        yield HostileCase(f"mutation {number}", "".join(text))


def _conditions() -> Iterator[HostileCase]:
    never = 'tool.name == "never"'
    for depth in (10, 31, 33, 200, 2_000):
        yield _condition(f"{depth} parentheses", "(" * depth + never + ")" * depth)
        yield _condition(f"{depth} negations", "!" * (2 * depth) + f"({never})")
        yield _condition(f"{depth} minus signs", "-" * depth + "1 == 2")
        yield _condition(f"{depth} lists", "[" * depth + "]" * depth + " == [1]")
        yield _condition(f"{depth} terms", " + ".join(["1"] * depth) + " == 0")
        yield _condition(f"{depth} choices", "false ? true : " * depth + "false")
        yield _condition(f"{depth} fields", "tool" + ".name" * depth + ' == "x"')
        yield _condition(f"{depth} ands", " && ".join([never] * depth))
        yield _condition(f"{depth} list elements", f"tool.name in [{', '.join(['tool.server'] * depth)}]")
        yield _condition(f"{depth} loops", "effects.exists(e, " * depth + "false" + ")" * depth)
    broken = [
        "",
        " ",
        "&&",
        "||",
        "true &&",
        "?",
        "a ? b",
        "1 2",
        "'",
        '"',
        "'''",
        "\\",
        "//",
        "/*",
        "$",
        "#",
        "`",
        ";",
    ]
    broken += ["true; false", "true\nfalse", "import os", "__import__('os')", "args.__class__", "self", "this", "null"]
    broken += ["{}", "[]", "()", "{1: 2}", "true == 1", "1 == 1u", "b'a' == b'a'", "r'\\' == ''", "'\\u0000' == 'a'"]
    broken += [
        "'\\ud800' == ''",
        "'\\U00110000' == ''",
        "'\\xff' == 'a'",
        "'\\777' == ''",
        "has(a)",
        "has(sql)",
        "has(1)",
    ]
    broken += [
        "optional.of(1)",
        "cel.bind(x, 1, true)",
        "dyn(true)",
        "type(1) == int",
        "google.protobuf.Any{}",
        "sql{}",
    ]
    broken += ["risk", "now", "agent", "effects", "args", "usage", "usage.count", "usage.count('a')", "sql.complete"]
    broken += ["usage.sum('a', 'b', duration('-1h')) > 0.0", "duration('999999999999h') > duration('1s')"]
    broken += ["timestamp('9999-12-31T23:59:59.9999999999Z') < timestamp('0001-01-01T00:00:00Z')"]
    broken += [
        "9223372036854775807 + 1 == 0",
        "-9223372036854775808 - 1 == 0",
        "9223372036854775808 == 0",
        "1 / 0 == 0",
    ]
    broken += [
        "1 % 0 == 0",
        "1.0 / 0.0 == 0.0",
        "0.0 / 0.0 == 0.0",
        "[1][1] == 1",
        "[1][-1] == 1",
        "{'a': 1}['b'] == 1",
    ]
    broken += ["int('9' ) == 8", "int('x') == 1", "int(1e300) == 1", "string(b'\\xff') == 'x'", "double('nan') == 1.0"]
    broken += ["'a'.matches('(')", "'a'.matches('a{1001}')", "'a'.matches('(?<x>a)\\\\1')", "''.matches('\\\\C')"]
    for number, text in enumerate(broken):
        yield _condition(f"broken {number}: {text}", text)
    for size in (1_000, 4_090, 5_000, 100_000):
        yield _condition(f"{size} characters of text", f"tool.name == '{'x' * size}'")
        yield _condition(f"{size} blanks", " " * size + never)
        yield _condition(f"{size} letters", "é" * size + " == 1")
        yield _condition(f"a pattern of {size} characters", f"tool.name.matches('{'(a|b)*' * (size // 6)}c')")


def _condition(name: str, text: str) -> HostileCase:
    return HostileCase(name, policy(rule(text, "allow"), args="text: string, amount: number, n: integer"))


_PATTERNS = (
    "(a+)+$",
    "(a|aa)+$",
    "(.*a){20}$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(x+x+)+y",
    "([a-zA-Z]+)*$",
    "(a?){50}a{50}$",
)
_TEXTS = ("a" * 50_000 + "!", "\x00" * 1_000, "\ud800", "é" * 10_000, "\U0001f600" * 5_000, "", " ", "x" * 500_000)
_NUMBERS: tuple[Any, ...] = (
    *(2**power for power in (31, 53, 62, 63, 64, 100, 1_000)),
    *(-(2**power) for power in (53, 63, 64, 1_000)),
    *(float("nan"), float("inf"), float("-inf"), 1e308, 5e-324, -0.0),
    *(Decimal("NaN"), Decimal("Infinity"), Decimal("1e400"), Decimal("0.12345678901234567890"), Decimal("sNaN")),
    *(True, False, None, "1", "0x1", b"1", [], {}, [1], {"a": 1}, object(), 1 + 2j, (1,)),
)


def _values() -> Iterator[HostileCase]:
    for pattern in _PATTERNS:
        for number, text in enumerate(_TEXTS):
            condition = f"args.text.matches({pattern!r}) && tool.name == 'never'"
            yield HostileCase(f"{pattern} on text {number}", _stated(condition), {"text": text})
    for value in _NUMBERS:
        for condition in ("args.amount > 0 && args.amount < 0", "args.n > 0 && args.n < 0", "args.text == 'never'"):
            args = {"amount": value, "n": value, "text": value}
            yield HostileCase(f"{condition} with {value!r:.40}", _stated(condition), args)


def _stated(condition: str) -> str:
    return policy(rule(condition, "allow"), args="text: string, amount: number, n: integer, many: [string]")


def _loops() -> Iterator[HostileCase]:
    many = [f"/srv/{number}" for number in range(MAX_ENTRIES)]
    commands = tuple(ShellCommand(program="ls", arguments=tuple(many[:100])) for _ in range(MAX_ENTRIES))
    shell = ShellFacts(complete=True, commands=commands, paths_read=tuple(many), paths_written=tuple(many))
    facts = Facts(shell=shell, sql=SqlFacts(complete=True, tables=tuple(many), columns=tuple(many)))
    effects = tuple(Effect(EffectKind.READ, path) for path in many)
    conditions = [
        "shell.paths_read.all(a, shell.paths_written.exists(b, a == b))",
        "shell.commands.all(c, c.arguments.all(a, a != 'x'))",
        "shell.commands.all(c, shell.commands.all(d, c.program == d.program))",
        "effects.all(e, effects.all(f, effects.all(g, true)))",
        "effects.map(e, e.target).filter(t, effects.exists(e, e.target == t)).size() > 0",
        "(sql.tables + sql.columns + sql.tables).all(t, sql.columns.exists(c, c == t))",
        "args.many.all(a, args.many.all(b, a + b != 'x'))",
        "args.many.exists_one(a, args.many.exists(b, a == b)) || true",
        "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, args.many.all(b, sql.tables.all(c, true)))",
        "args.many.map(a, args.many.map(b, args.many)).size() > 0",
        "args.many.all(a, a.size() > 0)",
    ]
    for condition in conditions:
        for size in (0, 1_000, 20_000):
            args = {"many": ["x" * 10] * size, "text": "x" * (100_000 if size == 1_000 else 10)}
            never = f"({condition}) && tool.name == 'never'"
            yield HostileCase(f"{condition} over {size}", _stated(never), args, facts, effects)

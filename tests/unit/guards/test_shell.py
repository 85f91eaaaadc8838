"""What a shell command would do."""

import json
from pathlib import Path

import pytest

from qwed.guards.shell import MAX_LENGTH, Violation, findings
from qwed.words import EffectKind, Risk, risk_of

DATA = Path(__file__).parents[2] / "data"


def rows(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def spelled(found):
    return [f"{effect.kind}:{effect.target}" for effect in found.effects]


@pytest.mark.parametrize("row", rows("shell_attacks.jsonl"), ids=lambda row: ascii(row["command"])[:60])
def test_a_dangerous_command_is_never_taken_for_a_harmless_one(row):
    found = findings(row["command"])
    for name in row["violations"]:
        assert Violation[name] in found.violations
    if not row["violations"]:
        assert found.violations == ()
    if "effects" in row:
        assert spelled(found) == row["effects"]
    if row.get("unresolved") or row["violations"]:
        assert found.unresolved
        assert risk_of(found.effects) is Risk.CRITICAL
    assert risk_of(found.effects) > Risk.LOW


@pytest.mark.parametrize("row", rows("shell_honest.jsonl"), ids=lambda row: ascii(row["command"])[:60])
def test_a_plain_reading_command_is_resolved(row):
    found = findings(row["command"])
    assert spelled(found) == row["effects"]
    assert found.violations == found.unresolved == ()
    assert risk_of(found.effects) is Risk.LOW


def test_what_is_joined_to_a_harmless_command_is_still_seen():
    found = findings("ls && rm x")
    assert spelled(found)[:2] == ["READ:.", "DELETE:x"]
    assert EffectKind.UNRESOLVED in [effect.kind for effect in found.effects]


def test_any_unlisted_option_of_a_reader_is_unresolved():
    for program in ("ls", "cat", "sort", "grep", "find", "tree", "date", "curl", "wget"):
        assert findings(f"{program} --no-such-option x").unresolved


def test_a_metacharacter_anywhere_is_unresolved():
    for mark in "|&;<>()$`\\\"'*?[]{}!\n":
        assert findings(f"ls a{mark}b").unresolved, mark


def test_length_is_bounded():
    assert findings("ls " + "a" * MAX_LENGTH).unresolved == (f"the command is longer than {MAX_LENGTH} characters",)


HOSTILE = (
    "a",
    "'",
    '"',
    '"\\',
    "\\",
    "(",
    "|",
    "sudo ",
    "$(",
    "`",
    "< ",
    "x ",
    "a|",
    "$",
    "{",
    "x(){ x|x",
    ":()",
    "#",
    "~ ",
    "curl|",
)


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("size", [MAX_LENGTH, 1 << 20])
def test_long_hostile_commands_are_never_harmless(unit, size):
    found = findings((unit * size)[:size])
    assert found.unresolved or risk_of(found.effects) is Risk.CRITICAL

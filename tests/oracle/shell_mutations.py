"""Mutations of shell commands: quoting, options, order, nesting, wrappers, redirections, variables.

Values are chosen so that a value that is run, or a file that is written, leaves a trace in the project.
"""

import random
from collections.abc import Callable, Sequence

from tests.oracle.commands import tokens
from tests.oracle.tables import load

_TABLE = load("shell")
VALUES = _TABLE["values"]
"""Values for options and operands."""
_DEEDS = _TABLE["deeds"]
_WRAPPERS = _TABLE["wrappers"]
_ASSIGNMENTS = _TABLE["assignments"]
_REDIRECTIONS = _TABLE["redirections"]
_JOINTS = (" ; ", " && ", " || ", " | ", "\n", " & ", " |& ")

Mutation = Callable[[random.Random, str, Sequence[str]], str]


def _parts(command: str) -> tuple[list[str], list[int]]:
    parts = tokens(command)
    return parts, [index for index, part in enumerate(parts) if part.strip() and part[0] not in ";|&()<>"]


def _quote(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    place = rng.choice(places)
    word = parts[place]
    if word[0] in "'\"$" or "'" in word or "\\" in word:
        return command
    cut = rng.randrange(len(word))
    hexed = "".join(f"\\x{byte:02x}" for byte in word.encode())
    forms = (
        f"'{word}'",
        f'"{word}"',
        f"$'{hexed}'",
        f"\\{word}",
        f"{word[:cut]}''{word[cut:]}",
        f'{word[:cut]}"{word[cut:]}"',
        f"$'{word}'",
    )
    parts[place] = rng.choice(forms)
    return "".join(parts)


def _abbreviate(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    long = [place for place in places if parts[place].startswith("--") and len(parts[place]) > 4]
    if not long:
        return _swap(rng, command, _others)
    place = rng.choice(long)
    name, equals, value = parts[place].partition("=")
    parts[place] = name[: rng.randrange(3, len(name) + 1)] + (equals + value if rng.random() < 0.8 else " " + value)
    return "".join(parts)


def _swap(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    one, two = rng.choice(places), rng.choice(places)
    parts[one], parts[two] = parts[two], parts[one]
    return "".join(parts)


def _move(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    word = parts.pop(rng.choice(places))
    parts.insert(rng.randrange(len(parts) + 1), f" {word} ")
    return "".join(parts)


def _insert(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    place = rng.choice(places)
    value = rng.choice(VALUES)
    shown = value if rng.random() < 0.4 else "'" + value.replace("'", "'\\''") + "'"
    glue = rng.choice((" ", " ", " ", "=", ""))
    parts[place] = f"{parts[place]}{glue}{shown}"
    return "".join(parts)


def _replace(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    value = rng.choice(VALUES)
    parts[rng.choice(places)] = value if rng.random() < 0.4 else "'" + value.replace("'", "'\\''") + "'"
    return "".join(parts)


def _drop(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    del parts[rng.choice(places)]
    return "".join(parts)


def _cross(rng: random.Random, command: str, others: Sequence[str]) -> str:
    """Insert a run of words of another command."""
    parts, places = _parts(command)
    donor = [part for part in tokens(rng.choice(others)) if part.strip()]
    if not donor:
        return command
    start = rng.randrange(len(donor))
    run = donor[start : start + rng.choice((1, 1, 2, 3))]
    place = rng.choice(places)
    parts[place] = f"{parts[place]} {' '.join(run)}"
    return "".join(parts)


def _wrap(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    inner = rng.choice(_DEEDS) if rng.random() < 0.3 else command
    return rng.choice(_WRAPPERS).format(inner)


def _assign(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    assignment = rng.choice(_ASSIGNMENTS)
    return f"export {assignment}; {command}" if rng.random() < 0.3 else f"{assignment} {command}"


def _redirect(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    return f"{command} {rng.choice(_REDIRECTIONS)}"


def _join(rng: random.Random, command: str, others: Sequence[str]) -> str:
    other = rng.choice(_DEEDS) if rng.random() < 0.3 else rng.choice(others)
    pair = (command, other) if rng.random() < 0.5 else (other, command)
    return rng.choice(_JOINTS).join(pair)


def _variable(rng: random.Random, command: str, _others: Sequence[str]) -> str:
    parts, places = _parts(command)
    place = rng.choice(places)
    word, parts[place] = parts[place], rng.choice(("$v", "${v}", '"$v"', "${v:-x}", "${!n}", "${v%x}", "${v[0]}"))
    return f"v={word} n=v; {''.join(parts)}"


MUTATIONS: tuple[Mutation, ...] = (
    *(_quote, _abbreviate, _swap, _move, _insert, _insert, _insert, _replace, _replace, _drop, _cross, _cross, _cross),
    *(_wrap, _wrap, _assign, _redirect, _join, _variable),
)


def mutate(rng: random.Random, command: str, others: Sequence[str]) -> str:
    """Return a command changed in one to three ways."""
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        if not _parts(command)[1]:
            break
        command = rng.choice(MUTATIONS)(rng, command, others)
    return command

"""Generator of commands from option data: names of subcommands and options, and how many values each takes."""

import gzip
import json
import random
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle.shell_mutations import VALUES
from tests.oracle.tables import load


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """Options and subcommands of one program; an option maps to the number of its values, `?` if one is optional."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    subcommands: Mapping[str, "ProgramOptions"] = field(default_factory=dict)


def from_file(path: Path) -> list[ProgramOptions]:
    """Read programs from a compressed JSON object of option data."""
    with gzip.open(path, "rt") as file:
        data: dict[str, Any] = json.load(file)
    return [_program(name, row) for name, row in data.items() if re.fullmatch(r"[a-z][\w.+-]*", name)]


def _program(name: str, row: Mapping[str, Any]) -> ProgramOptions:
    subcommands = {inner: _program(inner, rest) for inner, rest in (row.get("subcommands") or {}).items()}
    return ProgramOptions(name, row.get("options") or {}, subcommands)


_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z0-9][\w-]*)(\[?[= ]?[<\[]?[A-Z][A-Z_-]*|=<?\w+)?")


def from_help(name: str) -> ProgramOptions:
    """Read the options of an installed program from its --help."""
    try:
        finished = subprocess.run(
            [name, "--help"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=10,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return ProgramOptions(name)
    lines = (finished.stdout + finished.stderr).splitlines()
    options = {
        match[1]: "?" if match[2] and match[2].startswith("[") else "1" if match[2] else "0"
        for line in lines
        if line.lstrip().startswith("-")
        for match in _OPTION.finditer(line)
    }
    return ProgramOptions(name, options)


def generate(rng: random.Random, program: ProgramOptions) -> str:
    """Return one command of a program."""
    words, level = [program.name], program
    while level.subcommands and rng.random() < 0.9:
        if rng.random() < 0.25:
            words += _options(rng, level, 1)
        level = level.subcommands[rng.choice(sorted(level.subcommands))]
        words.append(level.name)
    words += _options(rng, level, rng.choice((0, 1, 1, 2, 3)))
    words += [_value(rng) for _ in range(rng.choice((0, 1, 1, 2)))]
    if rng.random() < 0.2 and len(words) > 2:
        words.append(words.pop(rng.randrange(1, len(words))))
    return " ".join(words)


def _options(rng: random.Random, program: ProgramOptions, count: int) -> list[str]:
    words: list[str] = []
    names = sorted(program.options)
    for _ in range(count if names else 0):
        name = rng.choice(names)
        arity = program.options[name].rstrip("p")
        takes_value = arity not in ("0", "") if rng.random() < 0.85 else arity in ("0", "")
        if name.startswith("--") and len(name) > 5 and rng.random() < 0.15:
            name = name[: rng.randrange(4, len(name))]
        words.append(_with_value(rng, name) if takes_value else name)
    return words


def _with_value(rng: random.Random, name: str) -> str:
    glue = "=" if name.startswith("--") and rng.random() < 0.6 else rng.choice((" ", ""))
    return f"{name}{glue}{_value(rng)}"


def _value(rng: random.Random) -> str:
    return shlex.quote(rng.choice(VALUES))


INSTALLED: Sequence[str] = load("shell")["installed"]
"""Programs of which most are installed on any Linux; each command is run by what is there."""

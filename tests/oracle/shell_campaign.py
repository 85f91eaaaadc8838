"""Inputs of the shell oracle: tables, mutations of them, and commands generated from option data."""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.oracle import shell_grammar
from tests.oracle.commands import leading_program
from tests.oracle.predictions import predict_shell
from tests.oracle.shell_mutations import mutate
from tests.support.case_tables import DATA


@cache
def tables() -> tuple[str, ...]:
    """Return the commands of every shell table."""
    rows = [json.loads(line) for path in sorted(DATA.glob("shell*.jsonl")) for line in path.read_text().splitlines()]
    texts = [row.get("command") or row.get("input") for row in rows]
    return tuple(
        dict.fromkeys(text for text in texts if isinstance(text, str) and 0 < len(text) < 400 and text.isprintable())
    )


@cache
def programs(grammar: Path | None) -> tuple[shell_grammar.ProgramOptions, ...]:
    """Return option data: of installed programs, and of the file if there is one."""
    installed = [shell_grammar.from_help(name) for name in shell_grammar.INSTALLED]
    named = shell_grammar.from_file(grammar) if grammar else []
    wanted = set(shell_grammar.INSTALLED)
    # What is installed shows real effects, so it is drawn three times as often as what a stand-in records.
    return tuple([*installed, *(row for row in named if row.name in wanted)] * 3 + named)


def generate(seed: int, grammar: Path | None = None, extra: Sequence[str] = ()) -> Iterator[str]:
    """Yield commands without end: half of them mutations, half from option data."""
    rng = random.Random(seed)
    known = [*tables(), *extra]
    by_program: dict[str, list[str]] = defaultdict(list)
    for command in known:
        by_program[leading_program(command)].append(command)
    families = sorted(by_program)
    data = programs(grammar)
    while True:
        if rng.random() < 0.6:
            family = by_program[rng.choice(families) if rng.random() < 0.5 else leading_program(rng.choice(known))]
            command = rng.choice(family)
            yield mutate(rng, command, family if rng.random() < 0.7 else known)
        else:
            command = shell_grammar.generate(rng, rng.choice(data))
            yield mutate(rng, command, known) if rng.random() < 0.3 else command


def select(seed: int, inputs: Iterator[str], one_in: int = 8) -> Iterator[str]:
    """Yield every command that is predicted to be harmless and has not been seen, and one in `one_in` of the others."""
    rng = random.Random(seed)
    seen: set[int] = set()
    for command in inputs:
        if hash(command) in seen:
            continue
        seen.add(hash(command))
        if predict_shell(command).is_harmless or rng.random() * one_in < 1:
            yield command

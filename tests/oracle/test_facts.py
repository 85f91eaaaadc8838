"""Complete facts of a command list every file that it changes when it is run."""

import fnmatch
import itertools
from collections.abc import Iterator

from qwed.engines import shell
from qwed.model.facts import ShellFacts
from tests.oracle import shell_campaign
from tests.oracle.shell_execution import execute

PROJECT = "/home/dev/project"
SEEDS = (11, 12)
COMMANDS = 400
_INDEX = f"{PROJECT}/.git/index"
"""Any git command may refresh it."""


def complete_commands(seed: int) -> Iterator[tuple[str, ShellFacts]]:
    """Yield generated commands with complete facts that write something, or that may write nothing."""
    for number, command in enumerate(shell_campaign.generate(seed)):
        text = f"cd {PROJECT} || exit\n{command}"
        facts = shell.findings(text).facts.shell
        if facts is not None and facts.complete and (facts.paths_written or number % 4 == 0):
            yield text, facts


def is_listed(path: str, facts: ShellFacts) -> bool:
    """Return True if the path, a directory above it, a pattern for it, or something below it is listed."""
    return path == _INDEX or any(
        fnmatch.fnmatch(f"{path}/", f"{listed}/*") or f"{listed}/".startswith(f"{path}/") or listed == "/"
        for listed in facts.paths_written
    )


def test_complete_facts_list_every_file_that_a_command_changes() -> None:
    for seed in SEEDS:
        selected = list(itertools.islice(complete_commands(seed), COMMANDS))
        programs = {command.program for _, facts in selected for command in facts.commands}
        observations = execute([text for text, _ in selected], programs, traced=False)
        assert sum(bool(observation.changes) for observation in observations) > COMMANDS // 10
        for (text, facts), observation in zip(selected, observations, strict=True):
            changed = [path if path.startswith("/") else f"{PROJECT}/{path}" for _, path in observation.changes]
            assert [path for path in changed if not is_listed(path, facts)] == [], text

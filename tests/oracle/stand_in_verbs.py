"""Verbs of programs that are recorded instead of run, read by option tables of our own.

The tables are independent of the classifiers: which global options take a value, and which verbs only read.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.oracle.tables import names, read_json


class VerbTable(NamedTuple):
    """Global options with a value, and the verbs that only read; two words where the first is a group."""

    valued: frozenset[str]
    reads: frozenset[str]
    lists: frozenset[str] = frozenset()
    """Verbs that only list what they could run if nothing follows them."""


_AWS_READS = names("describe list get head lookup search filter batch-get select query scan view tail ls help")
VERBS: Mapping[str, VerbTable] = {
    name: VerbTable(frozenset(row["valued"]), frozenset(row["reads"]), frozenset(row.get("lists", ())))
    for name, row in read_json("verbs").items()
}
_VALUED_COMPOSE = frozenset(
    names("-f --file -p --project-name --env-file --profile --project-directory --ansi --parallel --progress")
)
_SAME = {"pip3": "pip", "docker-compose": "docker"}
_VALUED_AWS = frozenset(
    names(
        "--profile --region --output --query --endpoint-url --color --ca-bundle --cli-read-timeout "
        "--cli-connect-timeout"
    )
)


def deed(arguments: Sequence[str]) -> str:
    """Return the verb of a recorded program if it does more than read, or an empty string."""
    if not arguments:
        return ""
    name = arguments[0].rpartition("/")[2]
    if name == "aws":
        words = operands(arguments[1:], _VALUED_AWS)
        return "" if len(words) < 2 or words[1].startswith(_AWS_READS) else " ".join(words[:2])
    table = VERBS.get(_SAME.get(name, name))
    if table is None or {"--help", "-h", "--version"} & {*arguments}:
        return ""
    compose = _VALUED_COMPOSE if name == "docker-compose" or "compose" in arguments else frozenset()
    words = operands(arguments[1:], table.valued | compose)
    if name == "docker-compose" and words:
        words = ["compose", *words]
    if not words or words[0] in table.reads or " ".join(words[:2]) in table.reads:
        return ""
    if len(words) == 1 and words[0] in table.lists:
        return ""
    if len(words) == 1 and any(verb.startswith(f"{words[0]} ") for verb in table.reads):
        return ""  # a group alone prints its help
    return " ".join(words[:2])


def _is_abbreviated(word: str, valued: frozenset[str]) -> bool:
    """Return True for the beginning of a long option, which some programs accept."""
    return len(word) > len("--x") and word.startswith("--") and any(name.startswith(word) for name in valued)


def operands(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    rest: list[str] = []
    pending = iter(words)
    for word in pending:
        if word in valued or _is_abbreviated(word, valued):
            next(pending, None)
        elif not word.startswith("-"):
            rest.append(word)
    return rest

"""Types of a command-line grammar: commands, options and operands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from qwed.guards._shell.command_model import names_in

EFFECTS = names_in(
    """
    - read write delete change remove network communicate spend execute admin secret escape unresolved
    stdin-bang stdin-escape stdin-schedule stdin-script
    """
)
"""Effects of a command. `-` and `read` add nothing to the effects of options and operands; `write` and `delete` change
files below the current directory, `change` and `remove` objects that are not files."""

TRAITS = names_in(
    "abbrev at-files bool-values bundle go leading no-options number open posix unparsed verb-abbrev words"
)
"""Syntax of a command:

- `abbrev`: long options may be abbreviated, as by getopt_long
- `at-files`: `@file` stands for the options and operands in a file
- `bool-values`: flags may have a value, as in `--wait=false`
- `bundle`: the first word holds short options without a dash, as in `tar xzf`
- `go`: one or two dashes make no difference, and flags may have a value
- `leading`: an option after an operand is an operand, or an error
- `no-options`: every word is an operand
- `number`: a dash and digits are an option, as in `head -20`
- `open`: options that are not listed are accepted as parameters
- `posix`: options end at the first operand
- `unparsed`: unknown options are accepted; only for commands that are critical whatever their arguments are
- `verb-abbrev`: subcommands may be abbreviated
- `words`: one dash starts a whole word, never a cluster of letters
"""


REST_ROLES = frozenset({"command", "command-for-each", "script", "mlr-files"})
"""Roles of a command, a script or a list of files that is made of all the remaining words."""


class Slot(NamedTuple):
    """One operand position."""

    roles: tuple[str, ...]
    number: str = ""
    """Empty for exactly one, `?` for at most one, `*` for any number, `+` for at least one."""
    default: str = ""
    """Value if the operand is missing."""

    @property
    def takes_rest(self) -> bool:
        """True if all words from here on are one command or one script."""
        return self.roles[0] in REST_ROLES


class Outcome(NamedTuple):
    """Effects of a command with these operands."""

    effects: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()

    def accepts(self, count: int) -> bool:
        """Return True if the command may have this number of operands."""
        least = sum(slot.number in ("", "+") for slot in self.slots)
        unlimited = any(slot.number in ("*", "+") or slot.takes_rest for slot in self.slots)
        return count >= least and (unlimited or count <= len(self.slots))


class Option(NamedTuple):
    """One option: the roles of its values, the effects it adds, and how it changes the command."""

    name: str
    roles: tuple[str, ...] = ()
    """One role for each value."""
    optional: bool = False
    """True if the value may only be attached: `--color=always`."""
    many: bool = False
    """True if all words up to the next option are values."""
    effects: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    """Effects and operands of the command if the option selects a mode, such as `tar -t`."""
    kind: str = ""
    """`about` if the program prints its help or version when this is its only argument, `in-place` if the files that
    the command reads are changed, `give` if the value takes the place of the first operand (`grep -e pattern file`),
    or the name of a switch that a rule in code looks for."""
    is_global: bool = False
    """True if subcommands accept it too."""

    @property
    def takes_rest(self) -> bool:
        """True if all words after it are one command or one script."""
        return bool(self.roles) and self.roles[0] in REST_ROLES

    @property
    def meaning(self) -> tuple[object, ...]:
        """Everything except the name; two options with one meaning are synonyms."""
        return self[1:]


@dataclass(slots=True)
class Command:
    """A program or a subcommand."""

    name: str
    outcomes: tuple[Outcome, ...] = ()
    options: dict[str, Option] = field(default_factory=dict)
    subcommands: dict[str, "Command"] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    address: str = ""
    """Target of its network effect, if it is not the whole command line."""
    pending: Callable[[], None] | None = None
    """Parses the lines of a subcommand when it is first needed."""

    def complete(self) -> "Command":
        """Parse the lines of the subcommand if that is still to be done, and return it."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending()
        return self

    def subcommand(self, name: str) -> "Command | None":
        """Return the subcommand with this name, or None; a pattern such as `describe-*` applies to other names."""
        exact = self.subcommands.get(name)
        if exact is not None:
            return exact.complete()
        if "verb-abbrev" in self.traits:
            matches = {id(command): command for verb, command in self.subcommands.items() if verb.startswith(name)}
            return next(iter(matches.values())).complete() if len(matches) == 1 and name else None
        patterns = [verb for verb in self.subcommands if verb.endswith("*") and name.startswith(verb[:-1])]
        return self.subcommands[max(patterns, key=len)].complete() if patterns else None

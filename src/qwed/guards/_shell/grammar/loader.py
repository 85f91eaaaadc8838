"""Loader of the grammar files.

A line that starts in the first column begins a program or, with `%`, a template:

    sort gsort : - : read*            names : effects : operands [| effects : operands for another number]
      use gnu                         lines of a template
      is abbrev                       traits (`model.TRAITS`)
      flag -r --reverse               options without a value and without an effect
      text -k --key                   options with a value that is only text; `text,read` has two values
      text? --color                   a value that may only be attached
      text* --columns                 all words up to the next option are values
      write -o --output               the role of the value (`roles.ROLES`)
      +delete --remove                options that add effects; `+network:text` has a value too
      mode -t --list : read : read*   options that select other effects and operands
      in-place -i                     the files it reads are changed
      give:text -e                    the value takes the place of the first operand
      about --help                    prints and exits if it is the only argument
      =recursive -r                   a switch that a rule in code looks for
      ^text -C                        with `^`, subcommands accept the option too
      at github.com                   target of the network effect
      > verb other : effects : operands
        ...                           a subcommand, with lines of its own

Operands are roles, each followed by nothing, `?`, `*` or `+`, and `=default`. `read&delete` gives an operand two roles.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from qwed.guards._shell.grammar.model import EFFECTS, TRAITS, Command, Option, Outcome, Slot

_DATA = Path(__file__).parent / "data"
_CRITICAL = frozenset({"admin", "delete", "escape", "execute", "remove", "secret", "spend", "unresolved"})
_KINDS = frozenset({"flag", "about", "in-place", "give", "mode"})


@cache
def _known_roles() -> frozenset[str]:
    from qwed.guards._shell.grammar.roles import ROLES

    return frozenset(ROLES)


class GrammarError(ValueError):
    """A line of a grammar file that cannot be understood."""


class _Line(NamedTuple):
    place: str
    depth: int
    text: str
    is_shared: bool = False
    """True if the line comes from a template; lines of the command itself override it."""

    @property
    def words(self) -> list[str]:
        """The words of the line."""
        return self.text.split()

    @property
    def is_verb(self) -> bool:
        """True if the line begins a subcommand."""
        return self.text.lstrip().startswith("> ")

    def error(self, reason: str) -> GrammarError:
        return GrammarError(f"{self.place}: {reason}: `{self.text.strip()}`")


@dataclass(slots=True)
class Library:
    """All grammar files; a program is parsed when it is first needed."""

    blocks: dict[str, list[_Line]] = field(default_factory=dict)
    templates: dict[str, list[_Line]] = field(default_factory=dict)
    programs: dict[str, Command] = field(default_factory=dict)

    def add_file(self, name: str, text: str) -> None:
        """Add the programs of one file, without parsing them."""
        block: list[_Line] = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            row = _Line(f"{name}:{number}", len(line) - len(line.lstrip(" ")), line)
            if row.depth:
                block.append(row)
            else:
                block = self._start_block(row)

    def _start_block(self, row: _Line) -> list[_Line]:
        block = [row]
        names = row.text.partition(" : ")[0].split()
        table = self.templates if names[0].startswith("%") else self.blocks
        for name in names:
            if name in table:
                raise row.error(f"`{name}` is described twice")
            table[name] = block
        return block

    def program(self, name: str) -> Command | None:
        """Return the grammar of a program, or None if the program is not known."""
        if name not in self.blocks:
            return None
        if name not in self.programs:
            self.programs[name] = self._parse_block(name, self.blocks[name])
        return self.programs[name]

    def _parse_block(self, name: str, block: list[_Line]) -> Command:
        header = block[0]
        command = Command(name, _outcomes(header, header.text.partition(" : ")[2]))
        self._fill(command, block, {}, frozenset())
        return command

    def _fill(self, command: Command, block: list[_Line], inherited: dict[str, Option], traits: frozenset[str]) -> None:
        """Add the lines after its header to a command: options, traits and subcommands."""
        command.options.update(inherited)
        command.traits = traits
        listed: set[str] = set()
        blocks = list(self._inner_blocks(block[1:], ()))
        # Lines of the command itself come after those of its templates and override them.
        for line, *rest in sorted(blocks, key=lambda inner: not inner[0].is_shared):
            if line.is_verb:
                continue
            if rest:
                raise rest[0].error("only a subcommand has lines of its own")
            _add_line(command, line, listed)
        if "unparsed" in command.traits and not all(_CRITICAL & {*row.effects} for row in _possible_outcomes(command)):
            raise block[0].error("only the arguments of a critical command may stay unparsed")
        passed = {name: option for name, option in command.options.items() if option.is_global or _is_help(option)}
        for inner in blocks:
            if inner[0].is_verb:
                self._add_subcommand(command, inner, passed)

    def _inner_blocks(self, lines: list[_Line], seen: tuple[str, ...]) -> Iterator[list[_Line]]:
        """Yield each line of the first level with the deeper lines behind it; those of a template in place of `use`."""
        if not lines:
            return
        starts = [index for index, line in enumerate(lines) if line.depth <= lines[0].depth]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            line = lines[start]
            if line.words[0] != "use":
                yield [row._replace(is_shared=True) for row in lines[start:end]] if seen else lines[start:end]
                continue
            for name in line.words[1:]:
                template = self.templates.get(f"%{name}")
                if template is None or name in seen:
                    raise line.error(f"`{name}` is not a template")
                yield from self._inner_blocks(template[1:], (*seen, name))

    def _add_subcommand(self, command: Command, block: list[_Line], inherited: dict[str, Option]) -> None:
        line = block[0]
        names, _, rest = line.text.strip().removeprefix("> ").partition(" : ")
        subcommand = Command(f"{command.name} {names.split()[0]}", _outcomes(line, rest), address=command.address)
        for name in names.split():
            if name in command.subcommands and not line.is_shared:
                raise line.error(f"`{name}` is listed twice")
            command.subcommands.setdefault(name, subcommand)
        traits = command.traits - {"bundle", "no-options", "open", "unparsed", "verb-abbrev"}
        if names.strip() == "*":
            # Any other word may be a plugin, which decides itself what its `--help` does.
            inherited = {name: option for name, option in inherited.items() if option.is_global}
        own = [line, *(row._replace(is_shared=False) for row in block[1:])]
        subcommand.pending = partial(self._fill, subcommand, own, inherited, traits)


def _is_help(option: Option) -> bool:
    """Return True for `--help` of a program, which its subcommands have too."""
    return option.name == "--help" and option.kind == "about"


def _possible_outcomes(command: Command) -> list[Outcome]:
    """Return the outcomes of a command, those of its modes included."""
    return [*command.outcomes, *(outcome for option in command.options.values() for outcome in option.outcomes)]


def _add_line(command: Command, line: _Line, listed: set[str]) -> None:
    head, _, rest = line.text.strip().partition(" ")
    if head == "is":
        _require_known(line, rest.split(), TRAITS, "trait")
        command.traits |= {*rest.split()}
    elif head == "at":
        command.address = rest.strip()
    else:
        names, _, outcome = rest.partition(" : ")
        option = _option(line, head, outcome)
        for name in names.split():
            if name in listed and not line.is_shared:
                raise line.error(f"`{name}` is listed twice")
            if not name.startswith(("-", "+")):
                raise line.error(f"`{name}` is not an option")
            listed |= set() if line.is_shared else {name}
            command.options[name] = option._replace(name=name)


def _option(line: _Line, head: str, outcome: str) -> Option:
    """Parse the first word of an option line."""
    is_global = head.startswith("^")
    head = head.removeprefix("^")
    count = head[-1] if head[-1] in "?*" else ""
    kind, _, roles_text = head.rstrip("?*").partition(":")
    effects: tuple[str, ...] = ()
    if kind.startswith("+"):
        effects, kind = tuple(kind[1:].split(",")), ""
        _require_known(line, list(effects), EFFECTS, "effect")
    elif kind.startswith("="):
        kind = kind[1:]
    elif kind not in _KINDS:
        kind, roles_text = "", kind
    roles = tuple(roles_text.split(",")) if roles_text else ()
    _require_known(line, list(roles), _known_roles(), "role")
    if count and not roles:
        raise line.error("an optional value needs a role")
    outcomes = _outcomes(line, outcome)
    if (kind == "mode") is not bool(outcomes):
        raise line.error("a mode, and nothing else, has effects after a colon")
    return Option("", roles, count == "?", count == "*", effects, outcomes, "" if kind == "flag" else kind, is_global)


def _outcomes(line: _Line, text: str) -> tuple[Outcome, ...]:
    return tuple(_outcome(line, part) for part in text.split(" | ")) if text.strip() else ()


def _outcome(line: _Line, text: str) -> Outcome:
    effects, _, operands = text.partition(":")
    _require_known(line, effects.split(), EFFECTS, "effect")
    if not effects.split():
        raise line.error("the effects are missing, write `-` for none")
    slots = tuple(_slot(line, operand) for operand in operands.split())
    if sum(slot.number in ("*", "+") for slot in slots) > 1:
        raise line.error("only one operand may repeat")
    return Outcome(tuple(effect for effect in effects.split() if effect not in ("-", "read")), slots)


def _slot(line: _Line, text: str) -> Slot:
    role, _, default = text.partition("=")
    count = role[-1] if role[-1] in "?*+" else ""
    roles = role.rstrip("?*+").split("&")
    _require_known(line, roles, _known_roles(), "role")
    return Slot(tuple(roles), count, default)


def _require_known(line: _Line, names: list[str], known: frozenset[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise line.error(f"`{name}` is not a known {what}")


@cache
def library() -> Library:
    """Return the library of all grammar files."""
    result = Library()
    for path in sorted(_DATA.glob("*.grammar")):
        result.add_file(path.name, path.read_text(encoding="utf-8"))
    return result


def program(name: str) -> Command | None:
    """Return the grammar of a program, or None if the program is not known."""
    return library().program(name)


def known_program(name: str) -> Command:
    """Return the grammar of a program that has a rule in code; raises if there is none."""
    grammar = program(name)
    if grammar is None:
        raise GrammarError(f"`{name}` has no grammar")
    return grammar

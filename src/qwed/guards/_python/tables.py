"""How a row about a name of Python's libraries reads, and all of the rows together.

The longest dotted prefix that has a row speaks for a name. A mention is judged like a call: whoever can name
`os.system` can call it in a way no reader would see. `()` stands for what a call gives back, so `pathlib.Path().unlink`
is a method of a path; a value that a library made is silent unless its method has a row of its own.
"""

from dataclasses import dataclass

from qwed.guards._python import packages, provers, stdlib
from qwed.guards.code_words import Danger
from qwed.words import EffectKind


@dataclass(frozen=True, slots=True)
class Rule:
    """One of: harmless, some effects, a violation, unknown."""

    effects: tuple[EffectKind, ...] = ()
    danger: Danger | None = None

    @property
    def unknown(self) -> bool:
        """Whether nobody knows what the name does."""
        return EffectKind.UNRESOLVED in self.effects


HARMLESS = Rule()
UNKNOWN = Rule(effects=(EffectKind.UNRESOLVED,))


def words(text: str) -> frozenset[str]:
    """The names in `text`."""
    return frozenset(text.split())


def _rule(kind: str) -> Rule:
    if kind in Danger.__members__:
        return Rule(danger=Danger[kind])
    if kind in ("HARMLESS", "UNKNOWN"):
        return HARMLESS if kind == "HARMLESS" else UNKNOWN
    return Rule(effects=tuple(EffectKind[each] for each in kind.split("+")))


def _rows(table: str) -> dict[str, Rule]:
    """`KIND prefix: names`, one a line; a line that begins with a blank goes on with the names."""
    rows: dict[str, Rule] = {}
    rule, prefix = HARMLESS, ""
    for line in filter(None, table.splitlines()):
        names = line
        if not line.startswith(" "):
            head, _, names = line.partition(":")
            kind, _, prefix = head.partition(" ")
            rule = _rule(kind)
        rows.update({prefix + name: rule for name in names.split()})
    return rows


RULES: dict[str, Rule] = _rows(stdlib.TABLE) | _rows(packages.TABLE) | _rows(provers.TABLE)

PARENTS = frozenset(name.rpartition(".")[0] for name in RULES if "." in name)


def _prefixes() -> frozenset[str]:
    found: set[str] = set()
    for name in (*RULES, *stdlib.RETURNS, *packages.RETURNS):
        parts = name.replace("()", ".()").split(".")
        for end in range(1, len(parts) + 1):
            found.add(".".join(parts[:end]).replace(".()", "()"))
    return frozenset(found)


def _told_of() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, rule in RULES.items():
        if "." in name and (rule.danger is not None or rule.effects) and not rule.unknown:
            found.setdefault(name.partition(".")[0].partition("(")[0], set()).add(name.rpartition(".")[2])
    return {root: frozenset(names) for root, names in found.items()}


TOLD_OF: dict[str, frozenset[str]] = _told_of()
"""Last names, by library, of what does something: a library offers the same thing at several places."""


KNOWN = _prefixes()
"""Every row and everything a row begins with."""
RETURNS: dict[str, str] = {**stdlib.RETURNS, **packages.RETURNS}
"""What a name stands for instead: `pathlib.Path().parent` is a path again."""
ASSUMED: dict[str, str] = {**stdlib.ASSUMED, **packages.ASSUMED}
"""Names that everybody imports in one way: where nothing binds them they mean this."""

BUILTINS = words(stdlib.BUILTINS)
DANGEROUS_BUILTINS = words(stdlib.DANGEROUS_BUILTINS)
ALIASES = stdlib.ALIASES

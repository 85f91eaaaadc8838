"""Rules for names of Python libraries, and the format of the rule tables.

The longest dotted prefix with a rule applies to a name. A mention counts as a call: code that can name `os.system` can
call it in a way that is not visible. `()` stands for the result of a call, so `pathlib.Path().unlink` is a method of a
path; the methods of a library's results are harmless unless they have a rule of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import TypeVar

from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind
from qwed.model.data_files import read_mapping, read_rules, read_table


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule for a name: harmless, some effects, a violation, or unknown."""

    effects: tuple[EffectKind, ...] = ()
    violation: ViolationKind | None = None

    @property
    def unknown(self) -> bool:
        """True if the effect of the name is not known."""
        return EffectKind.UNRESOLVED in self.effects


HARMLESS = Rule()
UNKNOWN = Rule(effects=(EffectKind.UNRESOLVED,))


def words(text: str) -> frozenset[str]:
    """Return the set of names in `text`."""
    return frozenset(text.split())


_Result = TypeVar("_Result")


def cached(function: Callable[[str], _Result]) -> Callable[[str], _Result]:
    """Cache a pure function of a dotted name, for names of ordinary length."""
    remembered = lru_cache(maxsize=4096)(function)

    @wraps(function)
    def result(path: str) -> _Result:
        return remembered(path) if len(path) <= _ORDINARY_LENGTH else function(path)

    return result


_ORDINARY_LENGTH = 100


def _rule(kind: str) -> Rule:
    if kind in ViolationKind.__members__:
        return Rule(violation=ViolationKind[kind])
    if kind in ("HARMLESS", "UNKNOWN"):
        return HARMLESS if kind == "HARMLESS" else UNKNOWN
    return Rule(effects=tuple(EffectKind[effect_name] for effect_name in kind.split("+")))


_FILES = ("stdlib_rules.txt", "package_rules.txt", "solver_rules.txt")
"""Tables of the standard library, of common packages, and of libraries for writing verifications; any other package is
unknown."""
RULES: dict[str, Rule] = {name: _rule(kind) for file in _FILES for name, kind in read_rules(__file__, file).items()}

RETURNS: dict[str, str] = read_mapping(__file__, "returns.txt")
"""Names with the meaning of another: `pathlib.Path().parent` is a path again."""

PARENTS = frozenset(name.rpartition(".")[0] for name in RULES if "." in name)


def _prefixes() -> frozenset[str]:
    prefixes: set[str] = set()
    for name in (*RULES, *RETURNS):
        parts = name.replace("()", ".()").split(".")
        for end in range(1, len(parts) + 1):
            prefixes.add(".".join(parts[:end]).replace(".()", "()"))
    return frozenset(prefixes)


def _effect_names() -> dict[str, frozenset[str]]:
    names_by_root: dict[str, set[str]] = {}
    for name, rule in RULES.items():
        if "." in name and (rule.violation is not None or rule.effects):
            names_by_root.setdefault(name.partition(".")[0].partition("(")[0], set()).add(name.rpartition(".")[2])
    return {root: frozenset(names) for root, names in names_by_root.items()}


EFFECT_NAMES: dict[str, frozenset[str]] = _effect_names()
"""Last components, by library, of the names with effects: a library may offer the same thing under several paths."""


def _result_effects() -> dict[str, dict[str, set[EffectKind]]]:
    effects: dict[str, dict[str, set[EffectKind]]] = {}
    for name, rule in RULES.items():
        root, dot, method = name.partition("().")
        if dot and rule.effects and "." not in root and "(" not in method and root not in OWN_METHODS:
            effects.setdefault(root, {})[method] = set(rule.effects)
    return effects


OWN_METHODS = words("asyncio sqlite3 duckdb psutil cProfile profile trace tkinter turtle tracemalloc optparse unittest")
"""Libraries with method names that many other values have, too: only their own results count."""
RESULT_EFFECTS = _result_effects()
"""Effects of the methods of a library's results, for values that may come from it."""


def _result_rules() -> dict[str, dict[str, Rule]]:
    rules: dict[str, dict[str, Rule]] = {}
    for name, rule in RULES.items():
        owner, dot, method = name.rpartition("().")
        if dot and (rule.effects or rule.violation is not None):
            rules.setdefault(owner.partition(".")[0].partition("(")[0], {})[method] = rule
    return rules


RESULT_RULES = _result_rules()
"""Rules of the methods of a library's results, for objects of the program's own subclasses."""

RETURNING_ARRAYS = words("""
sympy scipy sklearn pandas xarray statsmodels networkx torch tensorflow cv2 PIL skimage shapely polars jax
""")
"""Libraries whose results may be arrays of numpy."""
_SHARED = words("pandas numpy matplotlib polars PIL plotly")
_AMBIGUOUS = words("serialize show dump save")


def _shared_methods() -> dict[str, set[EffectKind]]:
    methods: dict[str, set[EffectKind]] = {}
    for root in _SHARED:
        for name, kinds in RESULT_EFFECTS[root].items():
            methods.setdefault(name, set()).update(kinds if name not in _AMBIGUOUS else ())
    return methods


SHARED_METHODS = _shared_methods()
"""Effects of methods of frames, arrays, figures and images, which the results of many libraries contain."""
KNOWN_PREFIXES = _prefixes()
"""Every rule and every prefix of a rule."""
ASSUMED: dict[str, str] = read_mapping(__file__, "assumed.txt")
"""Common import names: the meaning of a name that nothing binds."""

BUILTINS = words(read_table(__file__, "builtins.txt"))
DANGEROUS_BUILTINS = words(read_table(__file__, "dangerous_builtins.txt"))
ALIASES = read_mapping(__file__, "aliases.txt")
"""Modules with more than one name."""

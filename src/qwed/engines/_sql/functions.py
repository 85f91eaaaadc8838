"""Classification of function calls: pure by name, with a known effect, or unknown."""

from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

from sqlglot import exp

from qwed.engines._sql.function_names import is_pure
from qwed.guards.path import resolve
from qwed.model import Effect, EffectKind
from qwed.model.data_files import read_rules

MAX_TARGET = 200
REMOTE = (
    "http:",
    "https:",
    "ftp:",
    "s3:",
    "s3a:",
    "gs:",
    "gcs:",
    "abfs:",
    "abfss:",
    "azure:",
    "az:",
    "hdfs:",
    "//",
    "\\\\",
)


class CallKind(Enum):
    """Kind of a function call."""

    PURE = "pure"
    STATEFUL = "stateful"
    DANGEROUS = "dangerous"


class FunctionEffect(NamedTuple):
    """Effect of a function, and the index of the argument that names its target."""

    kind: EffectKind
    argument: int = 0


def _read_effects(name: str) -> dict[str, FunctionEffect]:
    """Return the effects of a data file, in order."""
    effects = {}
    for function, kind in read_rules(__file__, name).items():
        effect, _, argument = kind.partition("@")
        effects[function] = FunctionEffect(EffectKind[effect], int(argument or 0))
    return effects


_EXECUTE = FunctionEffect(EffectKind.EXECUTE, -1)
_READ = FunctionEffect(EffectKind.READ)

DANGEROUS_NAMES = _read_effects("dangerous_functions.txt")
DANGEROUS_PREFIXES = tuple(_read_effects("dangerous_prefixes.txt").items())
DANGEROUS_PACKAGES = tuple(_read_effects("dangerous_packages.txt").items())
_HARMLESS_PACKAGES = frozenset({"dbms_lob", "dbms_random", "utl_raw", "utl_match", "dbms_crypto", "utl_i18n"})
STATEFUL_NAMES = frozenset(
    """
    nextval setval pg_advisory_lock pg_advisory_xact_lock pg_advisory_unlock pg_advisory_unlock_all pg_notify
    pg_advisory_lock_shared pg_advisory_xact_lock_shared pg_advisory_unlock_shared pg_try_advisory_lock
    pg_try_advisory_xact_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock_shared sys_guid_seq
    pg_current_xact_id txid_current setseed
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)

DANGEROUS_TYPES: tuple[type[exp.Expr], ...] = (exp.ReadCSV, exp.ReadParquet, exp.ToFile, exp.QueryTransform)
_EFFECT_OF_TYPE: dict[type[exp.Expr], FunctionEffect] = {
    exp.ReadCSV: _READ,
    exp.ReadParquet: _READ,
    exp.ToFile: FunctionEffect(EffectKind.WRITE),
    exp.QueryTransform: _EXECUTE,
}
NAMED_CALLS = (
    exp.Anonymous,
    exp.AnonymousAggFunc,
    exp.CombinedAggFunc,
    exp.ParameterizedAgg,
    exp.CombinedParameterizedAgg,
)


def classify_call(node: exp.Expr, dialect: str = "") -> CallKind:
    """Return the kind of the call; PURE for a node that is not a call, or that the dialect only computes."""
    if not _may_call(type(node)):  # type: ignore[arg-type]  # a class is hashable, mypy asks for its instances
        return CallKind.PURE
    if dialect and isinstance(node, NAMED_CALLS) and not _packages(node) and is_pure(call_name(node), dialect):
        return CallKind.STATEFUL if _sets_a_value(node) else CallKind.PURE
    if function_effect(node) is not None:
        return CallKind.STATEFUL if _tenant_setting(node) else CallKind.DANGEROUS
    stateful = isinstance(node, exp.NextValueFor) or call_name(node) in STATEFUL_NAMES or _sets_a_value(node)
    return CallKind.STATEFUL if stateful else CallKind.PURE


@cache
def _may_call(kind: type) -> bool:
    """Return True if a node of this type may be a call; cached, because most nodes are not."""
    return issubclass(kind, (exp.Func, *DANGEROUS_TYPES, exp.NextValueFor, *NAMED_CALLS))


def function_effect(node: exp.Expr) -> FunctionEffect | None:
    """Return the effect of a dangerous function, or None for any other node."""
    if isinstance(node, DANGEROUS_TYPES):
        return _EFFECT_OF_TYPE[type(node)]
    if not isinstance(node, exp.Func):
        return None
    packages = _packages(node)
    if _HARMLESS_PACKAGES & set(packages):
        return None
    by_package = (effect for package in packages for start, effect in DANGEROUS_PACKAGES if _begins(package, start))
    return next(by_package, None) or (effect_of_name(call_name(node)) if isinstance(node, NAMED_CALLS) else None)


def effect_of_name(name: str) -> FunctionEffect | None:
    """Return the effect of a function of this name, or None if it only computes."""
    if name in STATEFUL_NAMES:
        return None
    effect = DANGEROUS_NAMES.get(name)
    return effect or next((effect for start, effect in DANGEROUS_PREFIXES if name.startswith(start)), None)


def _begins(package: str, start: str) -> bool:
    return package.startswith(start) if start.endswith("_") else package == start


def effects_of_call(node: exp.Expr) -> Iterator[Effect]:
    """Yield the effects of a dangerous call on its target; a file that holds secrets adds one."""
    effect = function_effect(node)
    if effect is None:
        return
    target = _argument(node, effect.argument) or call_name(node)
    yield from file_effects(effect.kind, target)


def file_effects(kind: EffectKind, target: str) -> Iterator[Effect]:
    """Yield the effect on a file or an address, and SECRET if it holds secrets."""
    on_file = kind in {EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE}
    if on_file and target.lower().startswith(REMOTE):
        kind = EffectKind.NETWORK
    yield Effect(kind, target[:MAX_TARGET])
    if on_file and resolve(target, None).sensitive:
        yield Effect(EffectKind.SECRET, target[:MAX_TARGET])


def _argument(node: exp.Expr, index: int) -> str:
    if index < 0:
        return ""
    arguments = list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    literal = arguments[index] if index < len(arguments) else None
    return literal.name if isinstance(literal, exp.Literal) and literal.is_string else ""


def _sets_a_value(node: exp.Expr) -> bool:
    """Return True for `last_insert_id(5)`, which sets what it returns without an argument."""
    return call_name(node) == "last_insert_id" and bool(node.expressions)


def _tenant_setting(node: exp.Expr) -> bool:
    """Return True for `set_config('app.tenant', ...)`: a custom setting that the database itself ignores."""
    return call_name(node) == "set_config" and "." in _argument(node, 0)


def call_name(node: exp.Expr) -> str:
    """Return the function's name as written, folded."""
    if isinstance(node, NAMED_CALLS):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def _packages(node: exp.Expr) -> list[str]:
    parent = node.parent
    if not isinstance(node, exp.Func) or not isinstance(parent, exp.Dot) or parent.expression is not node:
        return []
    return [part.name.lower() for part in parent.this.find_all(exp.Identifier)] or [parent.this.name.lower()]

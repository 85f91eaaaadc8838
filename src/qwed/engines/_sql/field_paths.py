"""Fields that texts of a query name: paths into JSON and XML, keys of maps and structs."""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache

from sqlglot import exp

from qwed.engines._sql.functions import call_name

_PATH = re.compile(r"\s*(?:lax\s+|strict\s+)?\$(?:[.\[?]|$)")
_READER = re.compile(
    r"json|extract|^get|path|element|field|xml|tuple|param|subcolumn|struct|variant|^parseurl|transform|exist|pick|"
    r"^(?:try)?map|^value$|^objectget|setting|variable"
)
_BUILDER = re.compile(r"build|construct|agg|jsonobject$|jsonarray$|^tojson|^parsejson$|delete|remove|set$|insert$")
_FIELD = re.compile(r"[A-Za-z_]\w*")
_ESCAPE = re.compile(r"\\u(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))|\\x([0-9a-fA-F]{2})")
_KEY_COLUMNS = frozenset({"key", "k"})
_COMPARISONS = (exp.EQ, exp.Like, exp.ILike, exp.In)
_JOINED = (exp.DPipe, exp.Concat)
_READS_OF_JSON = (
    *(exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONExtract, exp.JSONExtractScalar),
    exp.ArrayContainsAll,
)


def fields_in(texts: Iterator[str]) -> Iterator[str]:
    """Yield the names of the fields in paths and keys."""
    for text in texts:
        yield from _FIELD.findall(_ESCAPE.sub(_unescaped, text))


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character that an escape such as `\\u0077` stands for."""
    code = int(escape[1] or escape[2] or escape[3], 16)
    return chr(code) if code <= sys.maxunicode else ""


@cache
def field_reader(kind: type[exp.Expr]) -> Callable[[exp.Expr], Iterator[str]] | None:
    """Return what yields the paths and keys that a node of this type names; cached, because most nodes name none."""
    return next((reader for kinds, reader in _READERS if issubclass(kind, kinds)), None)


def _path(text: exp.Expr) -> Iterator[str]:
    if text.args.get("is_string") and _PATH.match(text.name):
        yield text.name


def _path_of_column(constraint: exp.Expr) -> Iterator[str]:
    yield constraint.this.name


def _path_of_operator(operator: exp.Expr) -> Iterator[str]:
    for argument in operator.iter_expressions():
        if argument is not operator.this:
            yield from _texts(argument)


def _subscripts(bracket: exp.Expr) -> Iterator[str]:
    yield from (text for key in bracket.expressions for text in _texts(key))


def _text_names(reference: exp.Expr) -> Iterator[str]:
    """Yield names in quotes of a text, which SQLite accepts beside a dot."""
    yield from (text for side in (reference.this, reference.expression) for text in _texts(side))


def _keys_in_lambda(function: exp.Expr) -> Iterator[str]:
    yield from (text for comparison in function.find_all(*_COMPARISONS) for text in _compared(comparison))


def _compared_key(comparison: exp.Expr) -> Iterator[str]:
    if _key_of(comparison) in _KEY_COLUMNS:
        yield from _compared(comparison)


def _arguments(call: exp.Expr) -> Iterator[str]:
    if _reads_a_part(call):
        yield from (text for argument in call.iter_expressions() for text in _texts(argument))


def _reads_a_part(call: exp.Expr) -> bool:
    name = call_name(call).replace("_", "")
    return _READER.search(name) is not None and _BUILDER.search(name) is None


def _texts(argument: exp.Expr | None) -> Iterator[str]:
    """Yield the texts of an argument; those that it joins, as `'$.pass' || 'word'`, are one."""
    if isinstance(argument, exp.Literal):
        yield from [argument.name] if argument.is_string else []
    elif isinstance(argument, exp.Array):
        yield from (text for item in argument.expressions for text in _texts(item))
    elif isinstance(argument, exp.Paren | exp.DPipe | exp.Concat):
        yield "".join(part.name for part in argument.find_all(exp.Literal, bfs=False) if part.is_string)


def _compared(comparison: exp.Expr) -> Iterator[str]:
    """Yield the texts that a comparison names."""
    for side in (comparison.this, comparison.args.get("expression"), *comparison.args.get("expressions", ())):
        yield from _texts(side)


def _key_of(comparison: exp.Expr) -> str:
    """Return the folded name of the column that is compared, or the empty string."""
    sides = (comparison.this, comparison.args.get("expression"))
    return next((side.name.lower() for side in sides if isinstance(side, exp.Column)), "")


def _settings_of(select: exp.Expr) -> Iterator[str]:
    """Yield the settings that a query of `pg_settings` asks for by name."""
    source, where = select.args.get("from_"), select.args.get("where")
    if source is not None and where is not None and source.this.name.lower() == "pg_settings":
        named = (node for node in where.find_all(*_COMPARISONS) if _key_of(node) == "name")
        yield from (text for node in named for text in _compared(node))


_READERS: tuple[tuple[tuple[type[exp.Expr], ...], Callable[[exp.Expr], Iterator[str]]], ...] = (
    ((exp.Literal,), _path),
    ((exp.PathColumnConstraint,), _path_of_column),
    (_READS_OF_JSON, _path_of_operator),
    ((exp.Bracket,), _subscripts),
    ((exp.Dot,), _text_names),
    ((exp.Lambda,), _keys_in_lambda),
    (_COMPARISONS, _compared_key),
    ((exp.Select,), _settings_of),
    (_JOINED, lambda _: iter(())),
    ((exp.Func,), _arguments),
)

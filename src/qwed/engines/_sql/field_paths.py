"""Fields that texts of a query name: paths into JSON and XML, keys of maps and structs."""

import re
from collections.abc import Iterator

from sqlglot import exp

from qwed.engines._sql.functions import call_name

_PATH = re.compile(r"\s*(?:lax\s+|strict\s+)?\$(?:[.\[?]|$)")
_READER = re.compile(
    r"json|extract|^get|path|element|field|xml|tuple|param|subcolumn|struct|variant|^parseurl|transform|exist|pick|"
    r"^(?:try)?map|^value$|^objectget|setting|variable"
)
_BUILDER = re.compile(r"build|construct|agg|jsonobject$|jsonarray$|^tojson|^parsejson$|delete|remove|set$|insert$")
_FIELD = re.compile(r"[A-Za-z_]\w*")
_KEY_COLUMNS = frozenset({"key", "k"})
_READS_OF_JSON = (
    *(exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONExtract, exp.JSONExtractScalar),
    exp.ArrayContainsAll,
)


def fields_in_text(text: exp.Literal) -> Iterator[str]:
    """Yield the fields that a text names, if it is a path or key and not a value."""
    if not text.is_string:
        return
    if _PATH.match(text.name) or _is_path(text) or _is_key(text):
        yield from _FIELD.findall(_whole_text(text))


def _is_path(text: exp.Expr) -> bool:
    """Return True for an argument of a function that reads a part of a value, and for PATH in a list of columns."""
    holder = text.parent
    while isinstance(holder, exp.DPipe | exp.Concat | exp.Array | exp.Paren):
        text, holder = holder, holder.parent
    if isinstance(holder, exp.PathColumnConstraint) or (isinstance(holder, _READS_OF_JSON) and text is not holder.this):
        return True
    if not isinstance(holder, exp.Func):
        return False
    name = call_name(holder).replace("_", "")
    return _READER.search(name) is not None and _BUILDER.search(name) is None


def _is_key(text: exp.Expr) -> bool:
    """Return True for a text that the name of a field is compared with: in a lambda, or in a column `key`."""
    comparison = text.parent
    if not isinstance(comparison, exp.EQ | exp.Like | exp.ILike | exp.In):
        return False
    column = comparison.this if comparison.this is not text else comparison.expression
    if not isinstance(column, exp.Column | exp.Identifier):
        return comparison.find_ancestor(exp.Lambda) is not None
    settings = any(table.name.lower() == "pg_settings" for table in comparison.root().find_all(exp.Table))
    named = column.name.lower() in (_KEY_COLUMNS | {"name"} if settings else _KEY_COLUMNS)
    return named or comparison.find_ancestor(exp.Lambda) is not None


def _whole_text(text: exp.Literal) -> str:
    """Return the text, with the texts that it is joined with: `'$.pass' || 'word'`."""
    root: exp.Expr = text
    while isinstance(root.parent, exp.DPipe | exp.Concat):
        root = root.parent
    return "".join(part.name for part in root.find_all(exp.Literal, bfs=False))

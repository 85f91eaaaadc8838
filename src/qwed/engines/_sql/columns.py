"""Which columns a statement reads and writes, and where it says `*`."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from sqlglot import exp

from qwed.engines._sql.names import Names, table_name

Listing = Callable[[str], tuple[str, ...]]

_LONGEST_NAME = 60
_BEFORE = (
    "hashed encrypted enc user usr member customer employee patient admin root db database account login app service "
    "client api auth oauth bearer access refresh session reset remember signing shared webhook master primary smtp "
    "email wifi old new current temp plain raw totp otp mfa card"
)
_AFTER = "hash hashed digest salt encrypted enc plain plaintext text value md5 sha1 sha256 bcrypt"
_ALSO = {
    "password": "userpass passhash passphrase",
    "secret": "secretkey secretaccesskey",
    "ssn": "socialsecuritynumber socialsecurityno",
    "cvv": "cvc cvv2 cvc2",
    "credit_card": "creditcardnumber creditcardno ccnumber",
    "private_key": "privkey",
    "token": "",
    "pin": "",
    "passwd": "",
    "pwd": "",
    "api_key": "",
    "card_number": "cardno",
}
"""Names that are known to hold secrets, and other words for each."""


@lru_cache(maxsize=64)
def _secret_names(sensitive: frozenset[str]) -> re.Pattern[str]:
    words = [word.replace("_", "") for name in sensitive & _ALSO.keys() for word in (name, *_ALSO[name].split())]
    inner = "|".join(sorted(words)) or r"(?!)"
    return re.compile(rf"(?:{'|'.join(_BEFORE.split())})*(?:{inner})(?:{'|'.join(_AFTER.split())})*")


def is_sensitive(column: str, sensitive: frozenset[str]) -> bool:
    """Whether a folded name is listed, or is one of those that hold secrets with a word before or after it."""
    if column in sensitive:
        return True
    return len(column) <= _LONGEST_NAME and _secret_names(sensitive).fullmatch(column.replace("_", "")) is not None


def columns_read(statement: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Every place a column's value is used, with the folded name; what is only assigned to is left out."""
    for node in statement.walk():
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            if not _only_named(node) and node.table.lower() != "excluded":
                yield node, node.name.lower()
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            yield node, node.expression.name.lower()
        else:
            yield from ((node, each.lower()) for each in _names_in(node))


def _names_in(node: exp.Expr) -> list[str]:
    """Columns and fields named outside a column reference: USING, `x['name']`, a path into JSON."""
    if isinstance(node, exp.Join):
        return [each.name for each in node.args.get("using") or ()]
    if isinstance(node, exp.Bracket):
        return [each.name for each in node.expressions if isinstance(each, exp.Literal) and each.is_string]
    if isinstance(node, exp.StructExtract):
        return [node.expression.name]
    return [str(node.this)] if isinstance(node, exp.JSONPathKey) else []


def _only_named(column: exp.Expr) -> bool:
    """Whether no value is read: left of the `=` in SET, in the list of an INSERT, in `* EXCEPT`, in a definition."""
    place = column.parent if isinstance(column.parent, exp.Tuple | exp.Paren) else column
    holder = place.parent
    if isinstance(holder, exp.Insert):
        return place.arg_key == "this"
    if isinstance(holder, exp.EQ) and place.arg_key == "this" and holder.arg_key == "expressions":
        return isinstance(holder.parent, exp.Update | exp.OnConflict)
    return isinstance(holder, exp.Star) or column.find_ancestor(exp.ColumnDef, exp.Constraint) is not None


def is_written(statement: exp.Expr, names: Names) -> Iterator[tuple[str, str]]:
    """(table, column) for each column an INSERT lists."""
    for insert in statement.find_all(exp.Insert):
        if isinstance(insert.this, exp.Schema) and isinstance(insert.this.this, exp.Table):
            target = names.name_of(insert.this.this)
            yield from ((target, column.name) for column in insert.this.expressions)


def stars(statement: exp.Expr) -> Iterator[exp.Expr]:
    """Each `*` that stands for columns: not the one of COUNT(*), nor in EXISTS, where no value is read."""
    for node in statement.find_all(exp.Star, exp.Columns, exp.Summarize):
        holder = node.parent if isinstance(node.parent, exp.Column) else node
        if isinstance(holder.parent, exp.Count | exp.Columns):
            continue
        select = holder.parent
        if isinstance(select, exp.Select) and isinstance(select.parent, exp.Exists):
            continue
        yield holder


def star_sources(statement: exp.Expr, names: Names, listing: Listing) -> Iterator[tuple[str, frozenset[str]]]:
    """(table, columns left out) for each real table a `*` or a whole-row reference opens."""
    for holder in stars(statement):
        qualifier = holder.args["table"].name if isinstance(holder, exp.Column) and holder.table else ""
        for table in _opened(holder, names):
            if not qualifier or (table.alias_or_name.lower() == qualifier.lower()):
                yield names.name_of(table), left_out(holder)
    for node, name in columns_read(statement):
        table_behind = names.behind(name) if isinstance(node, exp.Column) and not node.table else ""
        if table_behind and not any(name in listing(each) for each in names.names):
            yield table_behind, frozenset()


def left_out(holder: exp.Expr) -> frozenset[str]:
    """The names in `* EXCEPT (...)`."""
    star = holder.this if isinstance(holder, exp.Column) else holder
    listed = star.args.get("except_") if isinstance(star, exp.Star) else None
    return frozenset(each.name.lower() for each in listed or ())


def _opened(holder: exp.Expr, names: Names) -> list[exp.Table]:
    """The real tables in reach of a star: those of its SELECT, or the target its RETURNING belongs to."""
    scope = holder.find_ancestor(exp.Select, exp.Returning)
    if scope is None:
        return list(names.tables)
    owner = scope.parent if isinstance(scope, exp.Returning) else scope
    return [table for table in names.tables if table.find_ancestor(exp.Select, exp.DML) is owner]


def derived(node: exp.Expr, names: Names) -> bool:
    """Whether the column comes out of a subquery, a CTE or an alias of this query, which are judged on their own."""
    if not isinstance(node, exp.Column):
        return False
    if node.table:
        return names.is_derived(node.table)
    return _is_output_alias(node) or not any(_direct_tables(select, names) for select in _selects_above(node))


def _is_output_alias(node: exp.Column) -> bool:
    clause = node.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Qualify, exp.Select)
    if clause is None or isinstance(clause, exp.Select):
        return False
    query = clause.parent
    outputs = query.expressions if isinstance(query, exp.Select) else ()
    return any(isinstance(each, exp.Alias) and each.alias.lower() == node.name.lower() for each in outputs)


def _selects_above(node: exp.Expr) -> Iterator[exp.Expr]:
    owner = node.find_ancestor(exp.Select, exp.DML)
    while owner is not None:
        yield owner
        owner = owner.find_ancestor(exp.Select, exp.DML)


def _direct_tables(owner: exp.Expr, names: Names) -> bool:
    return any(table_name(table) and table.find_ancestor(exp.Select, exp.DML) is owner for table in names.tables)

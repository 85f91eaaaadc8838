"""Function calls as they are written: every word before a parenthesis that is not grammar."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect

from qwed.engines._sql.function_names import is_pure
from qwed.engines._sql.parse import ParsedSql
from qwed.engines._sql.readings import BEFORE_A_NAME
from qwed.engines._sql.table_names import normal_name

_GRAMMAR = frozenset(
    """
    select distinct all from where and or not in exists any some as on using over partition by filter within group
    order having case when then else end between like ilike rlike regexp similar to escape is join lateral union
    except intersect minus limit offset fetch top with recursive rows range groups into set table cube rollup grouping
    sets values returning check unique key primary references foreign default tablesample sample pivot unpivot for
    window qualify return semi anti cross apply outer inner full natural asof match_recognize pattern define measures
    prewhere final exclude rename columns materialized at collate div xor overlaps conflict constraint duplicate prior
    option include options index force ignore use keep explain analyze insert columns settings
    generated always identity autoincrement auto_increment only glob match percent row rows set nulls array both
    leading trailing path root
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Words that may stand before a parenthesis without being called."""
_CONTEXTUAL = frozenset(
    """
    option options within keep include pattern define measures sample settings force ignore use generated always
    identity only exclude rename final prewhere asof apply semi anti at path root percent nulls
    overlaps over partition index key cluster
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Words of the grammar that may also be the name of a function, where an expression begins."""
_SAMPLING_METHODS = frozenset({"system", "bernoulli", "block", "reservoir"})
_SAMPLING = frozenset({"tablesample", "sample"})
_BUILT_IN_SCHEMAS = {"pg_catalog": ("", "postgres", "redshift", "materialize", "risingwave"), "safe": ("", "bigquery")}
_TEXTS = frozenset({TokenType.STRING, TokenType.NATIONAL_STRING})
_AFTER_A_VALUE = frozenset({TokenType.STRING, TokenType.R_PAREN, TokenType.R_BRACKET})


_BEFORE_A_LIST = frozenset(
    {TokenType.ALIAS, TokenType.DOT, TokenType.INTO, TokenType.INSERT, TokenType.UPDATE, TokenType.TABLE, TokenType.ON}
)
_BETWEEN_CTES = frozenset({TokenType.COMMA, TokenType.WITH})


class Call(NamedTuple):
    """Call of a function by its folded name."""

    name: str
    qualifiers: tuple[str, ...] = ()
    argument: str = ""
    """First argument, if it is a text."""

    @property
    def path(self) -> str:
        """The name with its qualifiers."""
        return ".".join((*self.qualifiers, self.name))


def calls_in(parsed: ParsedSql, dialect: str = "") -> Iterator[Call]:
    """Yield every call of a statement, by its tokens: the tree does not keep how a name was written."""
    fold = Dialect.get_or_raise(dialect or "postgres")
    lists = _names_with_lists(parsed.statements)
    tokens = parsed.tokens
    for index, token in enumerate(tokens[:-1]):
        if tokens[index + 1].token_type is not TokenType.L_PAREN or not _is_word(token, parsed.text):
            continue
        call = Call(_called_name(token, fold), tuple(_qualifiers(tokens, index)), _text_at(tokens, index + 2))
        quoted = token.token_type is TokenType.IDENTIFIER
        if not quoted and not call.qualifiers and _is_grammar(call.name, tokens[index - 1] if index else None):
            continue
        if lists[call.name] > 0 and _may_have_list(tokens, index):
            lists[call.name] -= 1
            continue
        yield call


def _called_name(token: Token, fold: Dialect) -> str:
    """Return the folded name; a quoted one in other letters than the plain one is a function of the users' own."""
    plain = token.text.lower()
    if token.token_type is not TokenType.IDENTIFIER:
        return plain
    unquoted = fold.normalize_identifier(exp.to_identifier(plain, quoted=False)).name
    quoted = fold.normalize_identifier(exp.to_identifier(token.text, quoted=True)).name
    return plain if quoted == unquoted else f'"{token.text}"'


def _text_at(tokens: Sequence[Token], index: int) -> str:
    """Return the text of a string token, or the empty string for any other token."""
    return tokens[index].text if index < len(tokens) and tokens[index].token_type in _TEXTS else ""


def _is_word(token: Token, text: str) -> bool:
    first = text[token.start]
    return token.token_type is TokenType.IDENTIFIER or first.isalpha() or first in "_$@"


def _is_grammar(name: str, before: Token | None) -> bool:
    if name in _SAMPLING_METHODS:
        return before is not None and before.text.lower() in _SAMPLING
    if name in _CONTEXTUAL and before is not None and before.token_type in BEFORE_A_NAME:
        return False
    return name in _GRAMMAR or " " in name or "\n" in name


def _qualifiers(tokens: Sequence[Token], index: int) -> list[str]:
    """Return the names before the dots, outermost first; none if a value is before the first dot."""
    parts: list[str] = []
    while index >= 2 and tokens[index - 1].token_type is TokenType.DOT:
        index -= 2
        if tokens[index].token_type in _AFTER_A_VALUE:
            return []
        parts.append(tokens[index].text.lower())
    return parts[::-1]


def _may_have_list(tokens: Sequence[Token], index: int) -> bool:
    """Return True where a name may have a list of columns: not where an expression begins."""
    before = tokens[index - 1].token_type if index else TokenType.SELECT
    if before in _BEFORE_A_LIST or before not in BEFORE_A_NAME:
        return True
    return before in _BETWEEN_CTES and _follows_list(tokens, index) is TokenType.ALIAS


def _follows_list(tokens: Sequence[Token], index: int) -> TokenType | None:
    """Return the type of the token after the parenthesis that is opened behind a name."""
    depth = 0
    for position in range(index + 1, len(tokens)):
        kind = tokens[position].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return tokens[position + 1].token_type if position + 1 < len(tokens) else None
    return None


def _names_with_lists(statements: Sequence[exp.Expr]) -> Counter[str]:
    """Return the names that a list of columns follows, as in `INSERT INTO t (a)` or `AS t (a)`, with their number."""
    names: Counter[str] = Counter()
    for statement in statements:
        for node in statement.find_all(exp.TableAlias, exp.Schema, exp.Index):
            if isinstance(node, exp.TableAlias):
                names.update([node.name.lower()] if node.args.get("columns") else [])
            else:
                names.update(table.name.lower() for table in node.find_all(exp.Table))
    return names


_METHODS = {"tsql": frozenset({"value", "nodes", "exist"}), "fabric": frozenset({"value", "nodes", "exist"})}
"""Methods of a column, which look like functions of a schema; their first argument is a path."""


def is_known(call: Call, dialect: str, allowed: frozenset[str]) -> bool:
    """Return True if a call only computes, or the permissions allow it by name."""
    if normal_name(call.path) in allowed:
        return True
    if call.name in _METHODS.get(dialect, ()) and call.argument.startswith(("/", "(/", "(.", ".")):
        return True
    qualifiers = call.qualifiers
    if len(qualifiers) == 1 and dialect in _BUILT_IN_SCHEMAS.get(qualifiers[0], ()):
        qualifiers = ()
    return is_pure(".".join((*qualifiers, call.name)), dialect)


def unknown_calls(parsed: ParsedSql, dialect: str, allowed: frozenset[str]) -> list[str]:
    """Return the calls of which the effects are not known, as written."""
    return list(dict.fromkeys(call.path for call in calls_in(parsed, dialect) if not is_known(call, dialect, allowed)))

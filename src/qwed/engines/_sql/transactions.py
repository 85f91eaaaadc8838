"""Transaction blocks: `BEGIN; ...; COMMIT` in the words of each dialect, and what may be inside one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from qwed.engines._sql.effects import statement_name
from qwed.engines._sql.lexer import other_readings, rules_by_dialect
from qwed.engines._sql.parse import MAX_CHARACTERS, ParsedSql, UnparsableSql, parse_any_dialect
from qwed.model.data_files import DataFileError, read_rows

MAX_STATEMENTS = 100
"""Maximum number of statements in a block, BEGIN and COMMIT included."""
_MAX_SHOWN = 40
_MODE_WORDS = frozenset(
    """
    BEGIN START TRANSACTION TRAN WORK ISOLATION LEVEL READ ONLY WRITE COMMITTED UNCOMMITTED REPEATABLE SERIALIZABLE
    SNAPSHOT WITH CONSISTENT NOT DEFERRABLE DEFERRED IMMEDIATE EXCLUSIVE CONCURRENT ATOMIC NAME ,
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Words by which a statement would begin a transaction in some dialect: a mistake, but no other statement."""
_MAX_WORDS = 20
"""Words of a statement that are compared; no pattern has as many."""
_MAY_BEGIN = re.compile(r"\b(?:begin|start)\b", re.IGNORECASE)
_CONTROL_WORDS = frozenset(
    {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SAVE", "PREPARE"}
)
_FORMS = {"tsql": "BEGIN TRANSACTION", "fabric": "BEGIN TRANSACTION", "presto": "START TRANSACTION"}
_FORMS |= {"trino": "START TRANSACTION"}
"""Words that begin a transaction where BEGIN alone does not."""
_OPENING_WORDS = frozenset({"BEGIN", "START"})
_CLOSING_WORDS = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
_ROLES = ("begin", "inside", "end")
_READS = (exp.Query, exp.Values, exp.Pivot, exp.Summarize, exp.Show, exp.Describe)
_READS_AND_CHANGES = (*_READS, exp.Insert, exp.Update, exp.Delete, exp.Merge)
_DEFINITIONS = (exp.Create, exp.Alter, exp.Drop, exp.TruncateTable, exp.Comment, exp.Grant, exp.Revoke)
_DEFINED_KINDS = frozenset({"TABLE", "INDEX", "VIEW", "COLUMN"})
_TRANSACTIONAL_DEFINITIONS = frozenset({"postgres", "sqlite", "duckdb", "tsql"})
"""Dialects in which CREATE, ALTER and DROP belong to the transaction and do not end it."""


class BlockStatement(NamedTuple):
    """Statement of a block, with its position in the text; BEGIN is the first one."""

    number: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionBlock:
    """Text that begins with BEGIN: its statements without those that control the transaction."""

    text: str
    dialect: str
    tokens: Sequence[Token]
    statements: tuple[BlockStatement, ...]
    problem: str = ""
    """Why the text is not one complete block; the empty string if it is."""
    stacked: bool = False
    """True if statements follow the end of the transaction."""


class _Patterns(NamedTuple):
    begin: re.Pattern[str]
    inside: re.Pattern[str]
    end: re.Pattern[str]


@cache
def _patterns_by_dialect() -> dict[str, _Patterns]:
    """Return the words of each dialect that has transactions; without a dialect, those of all."""
    listed: dict[str, dict[str, list[str]]] = {}
    for role, dialects, pattern in read_rows(__file__, "transactions.txt", 3):
        unknown = set(dialects.split()) - rules_by_dialect().keys()
        if role not in _ROLES or unknown:
            raise DataFileError(f"`transactions.txt` has an unknown role or dialect: `{role}` `{dialects}`")
        for dialect in ("", *dialects.split()):
            listed.setdefault(dialect, {}).setdefault(role, []).append(pattern)
    return {dialect: _Patterns(*(_either(rows.get(role, ())) for role in _ROLES)) for dialect, rows in listed.items()}


def _either(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for any of these; one that matches nothing if there is none."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)")


def read_block(text: str, dialect: str) -> TransactionBlock | None:
    """Return the transaction block of a text, or None if the text does not begin with BEGIN and a semicolon.

    Without a dialect, the first one is taken in which all statements parse.
    """
    block = _block_in(text, dialect)
    if block is None or dialect or block.problem:
        return block
    joined = parse_any_dialect(";\n".join(statement.text for statement in block.statements))
    if isinstance(joined, UnparsableSql) or not joined.dialect:
        return block
    other = _block_in(text, joined.dialect)
    same = other is not None and other.statements == block.statements
    return replace(block, dialect=joined.dialect) if same else block


def _block_in(text: str, dialect: str) -> TransactionBlock | None:
    if ";" not in text or len(text) > MAX_CHARACTERS or not _MAY_BEGIN.search(text):
        return None
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return None
    parts = _parts(tokens)
    words = _words(text, parts[0]) if len(parts) > 1 else []
    patterns = _patterns_by_dialect().get(dialect)
    begins = patterns is not None and patterns.begin.fullmatch(" ".join(words)) is not None
    if not begins and not (words[:1] and words[0] in _OPENING_WORDS and _MODE_WORDS.issuperset(words)):
        return None
    block = TransactionBlock(text=text, dialect=dialect, tokens=tokens, statements=())
    if patterns is None:
        return replace(block, problem=f"{dialect} has no transaction blocks here: send the statements one by one")
    if len(parts) > MAX_STATEMENTS:
        return replace(block, problem=f"the block has more than {MAX_STATEMENTS} statements: divide it")
    if not begins:
        where, form = dialect or "any database", _FORMS.get(dialect, "BEGIN")
        return replace(block, problem=f"`{' '.join(words)}` does not begin a transaction in {where}: use `{form}`")
    return _read_parts(block, parts, patterns)


def _read_parts(block: TransactionBlock, parts: Sequence[Sequence[Token]], patterns: _Patterns) -> TransactionBlock:
    """Return the block with its statements, or with the problem of the first part that does not fit."""
    statements: list[BlockStatement] = []
    savepoints: list[str] = []
    problem, start = "", parts[0][-1].end + 1
    for number, part in enumerate(parts[1:], 2):
        words = _words(block.text, part)
        plain = " ".join(words)
        last = number == len(parts)
        if last and patterns.end.fullmatch(plain):
            break
        if patterns.inside.fullmatch(plain):
            problem = problem or _savepoint_problem(number, words, savepoints)
        else:
            problem = problem or _control_problem(number, words)
            statements.append(BlockStatement(number, block.text[start : part[-1].end + 1].lstrip("; \t\r\n")))
        start = part[-1].end + 1
    else:
        problem = problem or "the transaction block has no end: add COMMIT as its last statement"
    if not statements:
        problem = problem or "the transaction block has no statement between BEGIN and COMMIT: send one"
    stacked = any(_is_end(_words(block.text, part)) for part in parts[1:-1])
    return replace(block, statements=tuple(statements), problem=problem, stacked=stacked)


def _savepoint_problem(number: int, words: Sequence[str], savepoints: list[str]) -> str:
    """Return why a savepoint cannot be released or returned to; note in `savepoints` which of them are set."""
    name = words[-1]
    if words[0] in {"SAVEPOINT", "SAVE"}:
        savepoints.append(name)
        return ""
    if name not in savepoints:
        return (
            f"statement {number} names the savepoint `{name[:_MAX_SHOWN]}`, which the block has not set: add SAVEPOINT"
        )
    last = len(savepoints) - 1 - savepoints[::-1].index(name)
    del savepoints[last + (words[0] == "ROLLBACK") :]
    return ""


def _is_end(words: Sequence[str]) -> bool:
    """Return True for COMMIT and its like; ROLLBACK TO leaves the transaction open, AND CHAIN begins the next one."""
    return words[0] in _CLOSING_WORDS and "TO" not in words[:3] and words[-1] != "CHAIN"


def _control_problem(number: int, words: Sequence[str]) -> str:
    """Return why a statement that is not the last one may not control the transaction, or the empty string."""
    shown = f"statement {number} (`{' '.join(words)[:_MAX_SHOWN]}`)"
    if _is_end(words):
        return f"{shown} ends the transaction before the text ends: send one block at a time, with COMMIT as its end"
    if words[0] in _OPENING_WORDS:
        return f"{shown} begins a transaction inside another one: send one block at a time"
    if words[:2] == ["SET", "TRANSACTION"]:
        return (
            f"{shown} is not understood in a transaction block: state it with BEGIN, as in `BEGIN ISOLATION LEVEL ...`"
        )
    if words[0] in _CONTROL_WORDS:
        return (
            f"{shown} is not understood in a transaction block: use BEGIN, SAVEPOINT, RELEASE, ROLLBACK TO and COMMIT"
        )
    return ""


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each statement; more than the maximum is not read."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            parts[-1].append(token)
        elif parts[-1]:
            parts.append([])
            if len(parts) > MAX_STATEMENTS + 1:
                break
    return [part for part in parts if part]


def _words(text: str, part: Sequence[Token]) -> list[str]:
    """Return the first words as they are written, so that a quoted name is not taken for a word."""
    written = " ".join(text[token.start : token.end + 1] for token in part[:_MAX_WORDS])
    return written.upper().split()


def definition_problem(statement: BlockStatement, tree: exp.Expr, target: str) -> str:
    """Return why a statement may not be in a block, or the empty string for a read, a change, and a definition that
    belongs to the transaction."""
    name = statement_name(tree)
    shown = f"statement {statement.number} (`{name[:_MAX_SHOWN]}`)"
    if isinstance(tree, _READS_AND_CHANGES):
        return ""
    if not isinstance(tree, _DEFINITIONS):
        return f"{shown} may change how the statements after it are read: send it outside the transaction block"
    if target not in _TRANSACTIONAL_DEFINITIONS:
        if target:
            return f"{shown} may end the transaction by itself in {target}: send it outside the transaction block"
        advice = "send it outside the transaction block, or name the `dialect` in the agent's permissions"
        return f"{shown} ends the transaction by itself in some databases: {advice}"
    kind = str(tree.args.get("kind") or "TABLE").upper()
    if kind not in _DEFINED_KINDS or tree.find(exp.AlterRename, exp.RenameColumn):
        return f"{shown} gives a name another meaning for the statements after it: send it outside the block"
    return ""


def has_other_reading(block: TransactionBlock) -> bool:
    """Return True if some database ends the strings or comments of the block elsewhere."""
    return next(other_readings(block.text, block.dialect), None) is not None


def as_parsed(block: TransactionBlock, trees: Sequence[exp.Expr]) -> ParsedSql:
    """Return the whole text with the trees of its statements, for checks of the text."""
    return ParsedSql(text=block.text, dialect=block.dialect, tokens=block.tokens, statements=tuple(trees))

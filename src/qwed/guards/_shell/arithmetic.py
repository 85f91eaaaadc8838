"""Arithmetic and tests of a shell: understood over integers only, because a shell runs commands that it finds in the
text of a variable or an index."""

import re
from typing import TYPE_CHECKING, Protocol

from qwed.guards._shell.command_model import ShellReport, Word, names_in, refuse_code
from qwed.guards._shell.expansion import INTEGER_VARIABLES, ExpansionContext, expand_words, text_of
from qwed.guards._shell.variables import is_integer

if TYPE_CHECKING:
    from tree_sitter import Node


class ArithmeticContext(ExpansionContext, Protocol):
    """Interface of the shell visitor that arithmetic uses."""

    report: ShellReport

    def assign(self, name: str, values: list[Word]) -> None:
        """Assign one of several values to a variable."""

    def is_integer(self, name: str) -> bool:
        """Return True if a variable certainly holds an integer."""


INTEGER = Word("0", is_exact=False, pattern=True, is_computed=True, is_number=True)
_NUMBER = re.compile(r"-?[0-9]{1,18}|0[xX][0-9a-fA-F]{1,16}|[0-9]{1,2}#[0-9a-zA-Z]{1,16}")
_NAME = re.compile(r"[A-Za-z_]\w*")
_EXPRESSIONS = names_in(
    """
    binary_expression unary_expression postfix_expression ternary_expression parenthesized_expression
    arithmetic_expansion string variable_assignment
    """
)
_WORDS = frozenset({"simple_expansion", "expansion", "command_substitution"})
_QUOTED = frozenset({"raw_string", "ansi_c_string"})
_SETS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})


def visit_arithmetic(context: ArithmeticContext, node: "Node") -> None:
    """Report arithmetic over anything but integers, and follow what it assigns."""
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type in _EXPRESSIONS:
            pending += _operands(context, current)
        elif not _is_integer_operand(context, current):
            if current.type in _QUOTED:
                refuse_code(context.report, text_of(current))
            context.report.add_unresolved(f"`{text_of(node)[:64]}` is not arithmetic over known integers")


def _operands(context: ArithmeticContext, node: "Node") -> list["Node"]:
    operator = next((child.type for child in node.children if child.type in _SETS), "")
    operands = node.named_children
    if not operator:
        return operands
    name = next((text_of(child) for child in operands if child.type in ("variable_name", "word")), "")
    if operator == "=":
        operands = operands[1:]
    if _NAME.fullmatch(name):
        context.assign(name, [INTEGER])
    else:
        context.report.add_unresolved(f"`{text_of(node)[:64]}` does not assign a variable")
    return operands


def _is_integer_operand(context: ArithmeticContext, node: "Node") -> bool:
    if node.type in _WORDS:
        return all(map(is_integer, expand_words(context, node)))
    text = text_of(node)
    if node.type in ("number", "word", "string_content") and _NUMBER.fullmatch(text):
        return True
    if node.type in ("variable_name", "word") and _NAME.fullmatch(text):
        return context.is_integer(text) or (text in INTEGER_VARIABLES and context.is_inherited(text))
    context.visit(node)
    return False


_COMPARES_INTEGERS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_COMPARES_TEXT = frozenset({"=", "==", "!=", "<", ">", "=~", "&&", "||", "-a", "-o", "-nt", "-ot", "-ef"})
_ASKS = names_in(
    """
    ! -a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S
    """
)
_ASKS_VARIABLE = frozenset({"-v", "-R"})
_TESTS = frozenset({"binary_expression", "unary_expression", "parenthesized_expression"})


def visit_operand(context: ArithmeticContext, node: "Node", *, double: bool) -> None:
    """Visit an expression of `[ ]`, or of `[[ ]]` if it is double."""
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type not in _TESTS:
            _visit_word(context, current, double=double)
            continue
        operator = _operator(current)
        operands = [child for child in current.named_children if child.type != "test_operator"]
        if operator in _COMPARES_INTEGERS and double:
            for operand in operands:
                visit_arithmetic(context, operand)
        elif operator in _ASKS_VARIABLE:
            _require_name(context, operands)
        else:
            _require_known(context, operator, len(operands))
            pending += operands


def _operator(node: "Node") -> str:
    return next((text_of(child) for child in node.children if child.type == "test_operator" or not child.is_named), "(")


def _require_known(context: ArithmeticContext, operator: str, count: int) -> None:
    known = _ASKS | {"("} if count == 1 else _COMPARES_TEXT | _COMPARES_INTEGERS
    if operator not in known:
        context.report.add_unresolved(f"`{operator[:64]}` is not a test that is understood")


def _require_name(context: ArithmeticContext, operands: list["Node"]) -> None:
    for operand in operands:
        if not (operand.type == "word" and _NAME.fullmatch(text_of(operand))):
            context.report.add_unresolved(f"`{text_of(operand)[:64]}` is not the name of a variable")
            context.visit(operand)
            refuse_code(context.report, text_of(operand))


def may_be_operator(word: Word) -> bool:
    """Return True if a computed operand of `[ ]` may be read as an operator, or as several words."""
    return word.splits or (word.is_computed and word.text.startswith("-") and not is_integer(word))


def _visit_word(context: ArithmeticContext, node: "Node", *, double: bool) -> None:
    if node.type in ("regex", "extglob_pattern", "comment"):
        return
    words = expand_words(context, node)
    if not double and (len(words) != 1 or any(map(may_be_operator, words))):
        context.report.add_unresolved(f"`{text_of(node)[:64]}` may become another test: put it into quotes")


_SHOWS_OPERANDS = re.compile(r"=~|\s-(?:eq|ne|lt|le|gt|ge)\s")


def shows_operands(node: "Node") -> bool:
    """Return True for a test that keeps what it matched, or whose error shows what is no number."""
    return _SHOWS_OPERANDS.search(text_of(node)) is not None

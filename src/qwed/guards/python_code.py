"""DESIGN 3, effects and violations of Python source: what it would do, read off its syntax tree and never run.

Names are followed through imports, aliases, parameters, attributes, results and `getattr`, texts are put together where
they are made of constants; every binding of a name counts, in any order.
Mentioning a dangerous name is judged like calling it, and a module handed on as a value like using all of it, so
containers, decorators, lambdas and callbacks need no rules of their own.
"""

import ast
import re
import warnings

from qwed.guards._python.binders import read
from qwed.guards._python.check import check
from qwed.guards._python.harmless import LOUD_ATTRIBUTES, LOUD_NAMES, PLAIN_BUILTINS
from qwed.guards._python.quick import LOUD_WORDS, is_plain
from qwed.guards._python.report import PythonReport
from qwed.guards._python.scopes import TooComplex
from qwed.guards._python.tables import ASSUMED, BUILTINS
from qwed.guards.code_words import CodeFindings, Danger
from qwed.words.normal import MOST_MARKS, with_few_marks

MAX_BYTES = 250_000
MAX_NODES = 120_000

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN_ENCODINGS = frozenset({"utf-8", "utf8", "ascii", "us-ascii", "latin-1", "iso-8859-1", "utf-8-sig"})


TELLING = LOUD_NAMES | LOUD_ATTRIBUTES | LOUD_WORDS | ASSUMED.keys() | (BUILTINS - PLAIN_BUILTINS)
"""Words by which a program that imports nothing can do something that is known; without one of them it only computes,
or calls what nobody knows."""


def findings(code: str) -> CodeFindings:
    """What `code` would do; never runs it and never raises."""
    tree = _read(code)
    return tree if isinstance(tree, CodeFindings) else _judged(tree, len(code))


def findings_at_a_glance(code: str) -> CodeFindings | None:
    """The same where parsing and one look tell it; None where names have to be followed, which takes longer."""
    tree = _read(code)
    if isinstance(tree, CodeFindings):
        return tree
    return CodeFindings() if is_plain(tree, len(code)) else None


def _read(code: str) -> ast.Module | CodeFindings:
    """The program, or why it cannot be read."""
    refusal = _unreadable(code)
    if refusal is not None:
        return refusal
    try:
        return _parse(code)
    except SyntaxError as wrong:
        return CodeFindings(syntax_error=f"not Python: {wrong.msg}", error_line=wrong.lineno)
    except (RecursionError, MemoryError, ValueError, OverflowError) as surprise:
        return CodeFindings(syntax_error=f"cannot be parsed: {type(surprise).__name__}")


def _unreadable(code: str) -> CodeFindings | None:
    if len(code) > MAX_BYTES or (not code.isascii() and len(code.encode("utf-8", "replace")) > MAX_BYTES):
        return CodeFindings(syntax_error=f"longer than {MAX_BYTES} bytes, split it")
    if "\0" in code:
        return CodeFindings(syntax_error="holds a NUL byte")
    if with_few_marks(code) != code:
        # Python itself brings names into a normal form, and is not to be stopped at that.
        return CodeFindings(syntax_error=f"holds a letter with more than {MOST_MARKS} marks")
    # Hardly any program has the word of a cookie, and few have it in the lines that count.
    lines = re.split(r"\r\n|\r|\n", code, maxsplit=2)[:2] if "coding" in code else ()
    for number, line in enumerate(lines, 1):
        cookie = _COOKIE.match(line)
        if cookie and cookie[1].lower().replace("_", "-") not in _PLAIN_ENCODINGS:
            report = PythonReport()
            report.danger(Danger.OBFUSCATE, f"source encoding {cookie[1]}", number)
            return report.findings()
    return None


def _parse(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


def _with_examples(tree: ast.Module) -> ast.Module:
    """The program with the examples in its texts, which it has doctest run."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for example in (match[1] for text in texts for match in _EXAMPLE.finditer(text)):
        try:
            tree.body += _parse(_PROMPT.sub("", example)).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return tree


_EXAMPLE = re.compile(r"^[ \t]*>>> (.*(?:\n[ \t]*\.\.\.(?: .*)?$)*)", re.MULTILINE)
_PROMPT = re.compile(r"^[ \t]*\.\.\. ?", re.MULTILINE)
_NODES_OF_CHARACTER = 4
"""No character of a program makes more of them."""


def _judged(tree: ast.Module, length: int) -> CodeFindings:
    if length * _NODES_OF_CHARACTER > MAX_NODES and _too_many(tree):
        return CodeFindings(syntax_error=f"more than {MAX_NODES} syntax nodes, split it")
    if is_plain(tree, length):
        return CodeFindings()
    return _checked(tree)


def _checked(tree: ast.Module) -> CodeFindings:
    try:
        program = read(tree)
        if "doctest" in program.roots:
            program = read(_with_examples(tree))
        report = check(program)
    except (TooComplex, RecursionError, MemoryError):
        return CodeFindings(syntax_error="names are bound in a way that cannot be followed, write it plainly")
    return report.findings()


def _too_many(tree: ast.Module) -> bool:
    return sum(1 for _ in zip(ast.walk(tree), range(MAX_NODES + 1), strict=False)) > MAX_NODES

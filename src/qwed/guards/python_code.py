"""Effects and violations of Python source, derived from its syntax tree without running it (DESIGN 3).

Names are followed through imports, aliases, parameters, attributes, results and `getattr`; constant strings are
concatenated. Every binding of a name counts, in any order. Mentioning a dangerous name counts as calling it, and
passing a module as a value counts as using all of it, so containers, decorators, lambdas and callbacks need no rules of
their own.
"""

import ast
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

from qwed.guards._python.check import check
from qwed.guards._python.relevant_words import RELEVANT_WORDS
from qwed.guards._python.report import PythonReport
from qwed.guards._python.scope_builder import build_program
from qwed.guards._python.scopes import TooComplexError
from qwed.guards._python.syntax import NestingError, parse
from qwed.guards.code_findings import CodeFindings, ViolationKind
from qwed.model.unicode_normal import MAX_COMBINING_MARKS, limit_combining_marks

__all__ = ["MAX_BYTES", "MAX_NODES", "RELEVANT_WORDS", "findings"]

MAX_BYTES = 250_000
MAX_NODES = 120_000

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN_ENCODINGS = frozenset({"utf-8", "utf8", "ascii", "us-ascii", "latin-1", "iso-8859-1", "utf-8-sig"})


def findings(code: str) -> CodeFindings:
    """Return what `code` would do; never runs it and never raises."""
    with _collector_paused():
        tree = _read(code)
        return tree if isinstance(tree, CodeFindings) else _analyze(tree)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the collection of cyclic garbage: it would visit every node of the syntax tree many times, and find
    none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(code: str) -> ast.Module | CodeFindings:
    """Return the syntax tree, or the findings that say why the code cannot be parsed."""
    refusal = _unreadable(code)
    if refusal is not None:
        return refusal
    try:
        return parse(code)
    except SyntaxError as error:
        return CodeFindings(syntax_error=f"not Python: {error.msg}", error_line=error.lineno)
    except NestingError as error:
        return CodeFindings(syntax_error=f"{error}, simplify the code")
    except (ValueError, OverflowError) as error:
        return CodeFindings(syntax_error=f"cannot be parsed: {type(error).__name__}")


def _unreadable(code: str) -> CodeFindings | None:
    if len(code) > MAX_BYTES or (not code.isascii() and len(code.encode("utf-8", "replace")) > MAX_BYTES):
        return CodeFindings(syntax_error=f"longer than {MAX_BYTES} bytes, split it")
    if "\0" in code:
        return CodeFindings(syntax_error="contains a NUL byte")
    if limit_combining_marks(code) != code:
        # Python normalises names itself, and too many marks on one letter would make that very slow.
        return CodeFindings(syntax_error=f"contains a letter with more than {MAX_COMBINING_MARKS} marks")
    # Very few programs contain an encoding cookie, so the lines are split only if the word occurs.
    lines = re.split(r"\r\n|\r|\n", code, maxsplit=2)[:2] if "coding" in code else ()
    for number, line in enumerate(lines, 1):
        cookie = _COOKIE.match(line)
        if cookie and cookie[1].lower().replace("_", "-") not in _PLAIN_ENCODINGS:
            report = PythonReport()
            report.add_violation(ViolationKind.OBFUSCATE, f"source encoding {cookie[1]}", number)
            return report.findings()
    return None


def _with_examples(tree: ast.Module) -> ast.Module:
    """Add the doctest examples in the program's strings to its body, because the program lets doctest run them."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for example in (match[1] for text in texts for match in _EXAMPLE.finditer(text)):
        try:
            tree.body += parse(_PROMPT.sub("", example)).body
        except (SyntaxError, ValueError):
            continue
    return tree


_EXAMPLE = re.compile(r"^[ \t]*>>> (.*(?:\n[ \t]*\.\.\.(?: .*)?$)*)", re.MULTILINE)
_PROMPT = re.compile(r"^[ \t]*\.\.\. ?", re.MULTILINE)


def _analyze(tree: ast.Module) -> CodeFindings:
    try:
        program = build_program(tree)
        if "doctest" in program.roots:
            program = build_program(_with_examples(tree))
        if len(program.visits) > MAX_NODES // 3 and program.count() > MAX_NODES:
            return CodeFindings(syntax_error=f"more than {MAX_NODES} syntax nodes, split it")
        if program.unknown:
            report = PythonReport()
            report.add_lookup(f"syntax {min(program.unknown)}", 0)
            return report.findings()
        report = check(program)
        program.free_bindings()
    except NestingError as error:
        return CodeFindings(syntax_error=f"{error}, simplify the code")
    except (TooComplexError, RecursionError, MemoryError):
        return CodeFindings(syntax_error="names are bound in a way that cannot be followed, simplify the code")
    return report.findings()

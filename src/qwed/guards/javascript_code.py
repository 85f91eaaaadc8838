"""DESIGN 3, effects and violations of JavaScript and TypeScript source: read off its syntax tree and never run.

Names are followed through imports, aliases, patterns, fields, parameters and calls; text is put together, decoded and
turned round as the program would do it. Mentioning a dangerous name is judged like calling it.
"""

from qwed.guards._javascript.check import check
from qwed.guards._javascript.expressions import solve
from qwed.guards._javascript.scopes import settle
from qwed.guards._javascript.text import hidden
from qwed.guards._javascript.tree import Unreadable, parse
from qwed.guards.code_words import CodeFindings, Report

MAX_BYTES = 100_000


def findings(code: str, typescript: bool = False) -> CodeFindings:
    """What `code` would do; never runs it. ImportError where the parser is not installed, otherwise never raises."""
    if len(code) > MAX_BYTES or len(code.encode("utf-8", "replace")) > MAX_BYTES:
        return CodeFindings(syntax_error=f"longer than {MAX_BYTES} bytes, split it")
    if "\0" in code:
        return CodeFindings(syntax_error="holds a NUL byte")
    report = Report()
    try:
        source = parse(code, typescript)
        settle(source)
        check(source, solve(source), report)
    except Unreadable as unreadable:
        return CodeFindings(syntax_error=unreadable.reason, error_line=unreadable.line)
    except (RecursionError, MemoryError):
        return CodeFindings(syntax_error="nested too deeply to be read, write it plainly")
    hidden(code, source, report)
    return report.findings()

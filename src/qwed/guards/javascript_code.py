"""Effects and violations of JavaScript and TypeScript source, derived from its syntax tree without running it (DESIGN
3).

Names are followed through imports, aliases, patterns, fields, parameters and calls; strings are concatenated, decoded
and reversed as the program would do it. Mentioning a dangerous name counts as calling it.
"""

from qwed.guards._javascript.check import check
from qwed.guards._javascript.expressions import resolve_values
from qwed.guards._javascript.obfuscation import report_obfuscation
from qwed.guards._javascript.scopes import resolve_variables
from qwed.guards._javascript.syntax_tree import UnparsableScriptError, parse
from qwed.guards.code_findings import CodeFindings, CodeReport

MAX_BYTES = 100_000


def findings(code: str, typescript: bool = False) -> CodeFindings:
    """Return what `code` would do, without running it. Raises only ImportError, if the parser is not installed."""
    if len(code) > MAX_BYTES or len(code.encode("utf-8", "replace")) > MAX_BYTES:
        return CodeFindings(syntax_error=f"longer than {MAX_BYTES} bytes, split it")
    if "\0" in code:
        return CodeFindings(syntax_error="contains a NUL byte")
    report = CodeReport()
    try:
        source = parse(code, typescript)
        resolve_variables(source)
        check(source, resolve_values(source), report)
    except UnparsableScriptError as error:
        return CodeFindings(syntax_error=error.reason, error_line=error.line)
    except (RecursionError, MemoryError):
        return CodeFindings(syntax_error="nested too deeply to be parsed, simplify the code")
    report_obfuscation(code, source, report)
    return report.findings()

"""Rules for calls that access files, whose effect depends on their arguments."""

import ast
import re
from collections.abc import Callable

from qwed.guards._python.abstract_values import UNKNOWN
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.library_rules import words
from qwed.guards._python.report import rule_of
from qwed.guards._python.scopes import Scope
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

_READING = frozenset("rbtU")
_BUFFERS = frozenset({"io.BytesIO", "io.StringIO"})
_REACHING_SQL = re.compile(r"(?is)\b(?:attach\b|vacuum\b.*\binto\b|load_extension\b|writefile\b)")
_HARMLESS_SQL = re.compile(r"(?i)\s*(?:select|insert|update|delete|create|drop|alter|with|values|explain)\b")
_REACHING_DUCK = re.compile(
    r"(?i)\b(?:attach|copy|export|import|install|load|pragma|set|call|read_\w+|glob|sniff_csv|parquet_\w+)\b|\bfrom\s*'"
)
_READ_QUERY = re.compile(
    r"(?is)\s*(?:[\w.]+|select\b(?!.*\b(?:into|delete|insert|update|drop|alter|truncate|pg_\w+|lo_\w+|load_\w+)\b)[^;]*;?)\s*"
)
_EXPORT_WORDS = ("path_or_buf", "path", "buf", "path_or_buffer", "excel_writer", "file")
TEXT_EXPORTS = words("to_csv to_json to_html to_xml to_latex to_markdown to_string")


def argument_of(node: ast.Call, name: str, index: int) -> ast.expr | None:
    """Return the argument with this name or at this position."""
    if len(node.args) > index:
        return node.args[index]
    return next((word.value for word in node.keywords if word.arg == name), None)


def has_unpacking(node: ast.Call) -> bool:
    """Return True if arguments come from an unpacked sequence or mapping."""
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    return starred or any(word.arg is None for word in node.keywords)


def _open(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a read or a write, depending on the mode."""
    method = path.startswith("pathlib.Path()")
    if argument_of(node, "fileobj", 99) or (node.args and not method and is_in_memory(analysis, node.args[0], scope)):
        return
    mode = argument_of(node, "mode", 0 if method else 1)
    modes = analysis.folder.possible(mode, scope) if mode is not None else ("r",)
    # A mode such as `r:gz` also names the compression.
    reads = not has_unpacking(node) and all(
        set(str(value).partition(":")[0].partition("|")[0]) <= _READING for value in modes
    )
    targets = analysis.targets(node.func, scope)
    kind = EffectKind.READ if reads and UNKNOWN not in modes else EffectKind.WRITE
    analysis.report.add_access(kind, (targets[0] if targets else "") or path.rpartition(".")[2], node.lineno)


def _edit(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report access to lines of files, which may be rewritten in place."""
    inplace = argument_of(node, "inplace", 1)
    reads = not has_unpacking(node) and (inplace is None or (isinstance(inplace, ast.Constant) and not inplace.value))
    target = next(iter(analysis.targets(node.func, scope)), "") or path
    analysis.report.add_access(EffectKind.READ if reads else EffectKind.WRITE, target, node.lineno)


def _query(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a database query: only a table name or a single SELECT is a read."""
    statement = argument_of(node, "sql", 0) or argument_of(node, "query", 0)
    texts = analysis.folder.possible(statement, scope) if statement is not None else (UNKNOWN,)
    reads = not has_unpacking(node) and all(isinstance(text, str) and _READ_QUERY.fullmatch(text) for text in texts)
    analysis.report.add_access(EffectKind.READ if reads else EffectKind.WRITE, path.rpartition(".")[2], node.lineno)


def _file_type(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a command-line option that opens a file in the given mode."""
    modes = analysis.folder.possible(node.args[0], scope) if node.args else ("r",)
    reads = all(isinstance(mode, str) and set(mode) <= _READING for mode in modes)
    analysis.report.add_access(EffectKind.READ if reads else EffectKind.WRITE, path, node.lineno)


def bound_values(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> list[ast.expr]:
    """Return the expressions that a name may stand for, or the node itself."""
    if not isinstance(node, ast.Name):
        return [node]
    homes, _ = analysis.program.lookup(node.id, scope)
    values = [binding.value for home in homes for binding in home.names[node.id]]
    return [value if value is not None else node for value in values] or [node]


def is_in_memory(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    """Return True if a file can only be an in-memory buffer."""
    return all(_is_buffer(analysis, value, scope) for value in bound_values(analysis, node, scope))


def _is_buffer(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    paths = analysis.values.paths(node.func, scope) if isinstance(node, ast.Call) else frozenset()
    return bool(paths) and paths <= _BUFFERS


def mark_handled(analysis: PythonAnalysis, node: ast.expr) -> None:
    """Mark a dotted name as checked."""
    while isinstance(node, ast.Attribute):
        analysis.handled.add(id(node))
        node = node.value
    analysis.handled.add(id(node))


def _connect(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a database file, unless the database is in memory."""
    database = node.args[0] if node.args else argument_of(node, "database", 0)
    names = analysis.folder.possible(database, scope) if database is not None else (UNKNOWN,)
    if path.startswith("duckdb") and database is None:
        return
    if set(names) != {":memory:"}:
        analysis.report.add_access(
            EffectKind.WRITE, next((text for text in names if isinstance(text, str)), path), node.lineno
        )


def _array(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a file of arrays, and objects in it, which are unpickled."""
    allowed = argument_of(node, "allow_pickle", 2)
    plain = isinstance(allowed, ast.Constant) and allowed.value is False
    if (allowed is not None and not plain) or has_unpacking(node):
        analysis.report.add_violation(ViolationKind.DESERIALISE, "numpy.load with allow_pickle", node.lineno)
    if not (node.args and is_in_memory(analysis, node.args[0], scope)):
        target = next(iter(analysis.targets(node.func, scope)), "")
        analysis.report.add_access(EffectKind.READ, target or path, node.lineno)


def _tensors(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    plain = argument_of(node, "weights_only", 99)
    if isinstance(plain, ast.Constant) and plain.value is True:
        analysis.report.add_access(
            EffectKind.READ, next(iter(analysis.targets(node.func, scope)), "") or path, node.lineno
        )
    else:
        analysis.report.add_violation(ViolationKind.DESERIALISE, path, node.lineno)


def _log(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    for word in node.keywords:
        if word.arg in ("filename", None):
            analysis.report.add_access(EffectKind.WRITE, analysis.target(word.value, scope) or path, node.lineno)


def _replace(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report `Path.replace`, which takes one argument; `str.replace` takes two, and `list.copy` none."""
    if len(node.args) == 1:
        analysis.report.add_rule(path, rule_of(path), node.lineno, analysis.targets(node.func, scope))


def names_file(node: ast.Call) -> bool:
    """Return True if an export is given a file."""
    return bool(node.args) or any(word.arg in (*_EXPORT_WORDS, None) for word in node.keywords)


def _export(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report an export to a file; `frame.to_csv()` without a file returns the text."""
    if names_file(node) and not (node.args and is_in_memory(analysis, node.args[0], scope)):
        analysis.report.add_rule(path, rule_of(path), node.lineno, analysis.targets(node.func, scope))


def _statement(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report SQL on an in-memory database that accesses files by name."""
    values = analysis.folder.possible(node.args[0], scope) if node.args else ()
    texts = [text for text in values if isinstance(text, str)]
    reaches = _REACHING_SQL if path.startswith("sqlite3") else _REACHING_DUCK
    open_end = len(texts) < len(values) and not _has_harmless_verb(node.args[0], path)
    if open_end or has_unpacking(node) or any(map(reaches.search, texts)):
        analysis.report.add_access(EffectKind.WRITE, path.rpartition(".")[2], node.lineno)


def _has_harmless_verb(node: ast.expr, path: str) -> bool:
    """Return True for `f"select * from {table}"`: SQLite executes one statement, of the kind it begins with."""
    while isinstance(node, ast.BinOp | ast.JoinedStr):
        node = node.left if isinstance(node, ast.BinOp) else node.values[0]
    first = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return path in ("sqlite3().execute", "sqlite3().executemany") and _HARMLESS_SQL.match(first) is not None


def _reads_if_given(*names: str) -> "Handler":
    """Return a rule for a call that opens a file if one of these arguments is present."""

    def rule(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
        for word in node.keywords:
            if word.arg in (*names, None):
                analysis.report.add_access(EffectKind.READ, analysis.target(word.value, scope) or path, node.lineno)

    return rule


def _tree(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report `ElementTree(element, file)`."""
    file = argument_of(node, "file", 1)
    if file is not None or has_unpacking(node):
        analysis.report.add_access(EffectKind.READ, (analysis.target(file, scope) if file else "") or path, node.lineno)


def _schemas(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report `ISOGuard(schemas=directory)` as a read of the directory; without it only package data is read."""
    directory = argument_of(node, "schemas", 0)
    is_none = isinstance(directory, ast.Constant) and directory.value is None
    if (directory is not None and not is_none) or has_unpacking(node):
        analysis.report.add_access(
            EffectKind.READ, (analysis.target(directory, scope) if directory else "") or path, node.lineno
        )


Handler = Callable[[PythonAnalysis, ast.Call, Scope, str], None]
BY_NAME: dict[str, Handler] = {
    **dict.fromkeys(("open", "io.open", "builtins.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open"), _open),
    **dict.fromkeys(("tarfile.open", "zipfile.ZipFile", "tarfile.TarFile", "gzip.GzipFile", "wave.open"), _open),
    **dict.fromkeys(("bz2.BZ2File", "lzma.LZMAFile", "os.fdopen", "pathlib.Path().open", "aiofiles.open"), _open),
    **dict.fromkeys(("h5py.File", "jsonlines.open", "smart_open.open", "fsspec.open", "click.open_file"), _open),
    **dict.fromkeys(("sqlite3.connect", "duckdb.connect", "aiosqlite.connect"), _connect),
    **dict.fromkeys((f"pandas().{name}" for name in TEXT_EXPORTS), _export),
    **dict.fromkeys(("sqlite3.Connection", "sqlite3.dbapi2.Connection", "sqlite3.dbapi2.connect"), _connect),
    **dict.fromkeys((f"sqlite3().{name}" for name in ("execute", "executescript", "executemany")), _statement),
    **dict.fromkeys((f"duckdb().{name}" for name in ("execute", "executemany", "sql", "query")), _statement),
    **dict.fromkeys(("xml.etree.ElementTree.ElementTree", "lxml.etree.ElementTree"), _tree),
    "xml.etree.ElementTree.canonicalize": _reads_if_given("from_file"),
    "argparse.ArgumentParser": _reads_if_given("fromfile_prefix_chars"),
    "qwed_finance.ISOGuard": _schemas,
    **dict.fromkeys((f"pathlib.Path().{name}" for name in ("replace", "copy", "move")), _replace),
    "argparse.FileType": _file_type,
    **dict.fromkeys(("fileinput.input", "fileinput.FileInput"), _edit),
    **dict.fromkeys(("pandas.read_sql", "pandas.read_sql_query", "polars.read_database"), _query),
    "numpy.load": _array,
    "torch.load": _tensors,
    "logging.basicConfig": _log,
}

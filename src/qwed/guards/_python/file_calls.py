"""Calls that reach files, whose arguments decide how."""

import ast
import re
from collections.abc import Callable

from qwed.guards._python.choices import UNKNOWN
from qwed.guards._python.look import Look
from qwed.guards._python.report import rule_of
from qwed.guards._python.scopes import Scope
from qwed.guards._python.tables import words
from qwed.guards.code_words import Danger
from qwed.words import EffectKind

_READING = frozenset("rbtU")
_BUFFERS = frozenset({"io.BytesIO", "io.StringIO"})
_REACHING_SQL = re.compile(r"(?i)\b(?:attach\b|vacuum\s+into\b|load_extension\b|writefile\b)")
_HARMLESS_SQL = re.compile(r"(?i)\s*(?:select|insert|update|delete|create|drop|alter|with|values|explain)\b")
_REACHING_DUCK = re.compile(
    r"(?i)\b(?:attach|copy|export|import|install|load|pragma|set|call|read_\w+|glob|sniff_csv|parquet_\w+)\b|\bfrom\s*'"
)
_QUESTION = re.compile(
    r"(?is)\s*(?:[\w.]+|select\b(?!.*\b(?:into|delete|insert|update|drop|alter|truncate|pg_\w+|lo_\w+|load_\w+)\b)[^;]*;?)\s*"
)
_EXPORT_WORDS = ("path_or_buf", "path", "buf", "path_or_buffer", "excel_writer", "file")
_TEXT_EXPORTS = words("to_csv to_json to_html to_xml to_latex to_markdown to_string")


def word_of(node: ast.Call, name: str, index: int) -> ast.expr | None:
    """The argument of this name or at this place."""
    if len(node.args) > index:
        return node.args[index]
    return next((word.value for word in node.keywords if word.arg == name), None)


def spread(node: ast.Call) -> bool:
    """Whether arguments come from a sequence or mapping nobody has counted."""
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    return starred or any(word.arg is None for word in node.keywords)


def _opens(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """Reading or writing, as the mode says."""
    method = path.startswith("pathlib.Path()")
    if word_of(node, "fileobj", 99) or (node.args and not method and _in_memory(look, node.args[0], scope)):
        return
    mode = word_of(node, "mode", 0 if method else 1)
    modes = look.folder.possible(mode, scope) if mode is not None else ("r",)
    # A mode such as `r:gz` names the compression too.
    reads = not spread(node) and all(set(str(each).partition(":")[0].partition("|")[0]) <= _READING for each in modes)
    targets = look.targets(node.func, scope)
    kind = EffectKind.READ if reads and UNKNOWN not in modes else EffectKind.WRITE
    look.report.deed(kind, (targets[0] if targets else "") or path.rpartition(".")[2], node.lineno)


def _edits(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """Lines of files, which may be written in their place."""
    inplace = word_of(node, "inplace", 1)
    reads = not spread(node) and (inplace is None or (isinstance(inplace, ast.Constant) and not inplace.value))
    target = next(iter(look.targets(node.func, scope)), "") or path
    look.report.deed(EffectKind.READ if reads else EffectKind.WRITE, target, node.lineno)


def _queries(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """What is asked of a database may change it: only a table's name or one question is a read."""
    asked = word_of(node, "sql", 0) or word_of(node, "query", 0)
    found = look.folder.possible(asked, scope) if asked is not None else (UNKNOWN,)
    reads = not spread(node) and all(isinstance(text, str) and _QUESTION.fullmatch(text) for text in found)
    look.report.deed(EffectKind.READ if reads else EffectKind.WRITE, path.rpartition(".")[2], node.lineno)


def _file_type(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """A command line option that opens a file in the mode it is given."""
    modes = look.folder.possible(node.args[0], scope) if node.args else ("r",)
    reads = all(isinstance(mode, str) and set(mode) <= _READING for mode in modes)
    look.report.deed(EffectKind.READ if reads else EffectKind.WRITE, path, node.lineno)


def _in_memory(look: Look, node: ast.expr, scope: Scope) -> bool:
    """Whether a file can only be bytes in memory."""
    if isinstance(node, ast.Call):
        return look.values.paths(node.func, scope) <= _BUFFERS and bool(look.values.paths(node.func, scope))
    homes, _ = look.program.lookup(node.id, scope) if isinstance(node, ast.Name) else ([], False)
    bindings = [binding for home in homes for binding in home.names[ast.unparse(node)]]
    made = [binding.value for binding in bindings]
    return bool(made) and all(isinstance(value, ast.Call) and _in_memory(look, value, scope) for value in made)


def _connects(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """A database in a file, unless it is in memory."""
    where = node.args[0] if node.args else word_of(node, "database", 0)
    found = look.folder.possible(where, scope) if where is not None else (UNKNOWN,)
    if path.startswith("duckdb") and where is None:
        return
    if set(found) != {":memory:"}:
        look.report.deed(EffectKind.WRITE, next((text for text in found if isinstance(text, str)), path), node.lineno)


def _array(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    allowed = word_of(node, "allow_pickle", 2)
    plain = isinstance(allowed, ast.Constant) and allowed.value is False
    if (allowed is not None and not plain) or spread(node):
        look.report.danger(Danger.DESERIALISE, "numpy.load with allow_pickle", node.lineno)
    look.report.deed(EffectKind.READ, next(iter(look.targets(node.func, scope)), "") or path, node.lineno)


def _tensors(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    plain = word_of(node, "weights_only", 99)
    if isinstance(plain, ast.Constant) and plain.value is True:
        look.report.deed(EffectKind.READ, next(iter(look.targets(node.func, scope)), "") or path, node.lineno)
    else:
        look.report.danger(Danger.DESERIALISE, path, node.lineno)


def _logs(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    for word in node.keywords:
        if word.arg in ("filename", None):
            look.report.deed(EffectKind.WRITE, look.target(word.value, scope) or path, node.lineno)


def _replaces(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """`str.replace` takes two arguments, `Path.replace` one."""
    if len(node.args) == 1:
        look.report.judged(path, rule_of(path), node.lineno, look.targets(node.func, scope))


def _exports(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """`frame.to_csv()` without a file gives the text back."""
    if node.args or any(word.arg in (*_EXPORT_WORDS, None) for word in node.keywords):
        look.report.judged(path, rule_of(path), node.lineno, look.targets(node.func, scope))


def _statement(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """SQL on a database in memory still reaches files by name."""
    found = look.folder.possible(node.args[0], scope) if node.args else ()
    texts = [text for text in found if isinstance(text, str)]
    reaches = _REACHING_SQL if path.startswith("sqlite3") else _REACHING_DUCK
    open_end = len(texts) < len(found) and not _begins_harmlessly(node.args[0], path)
    if open_end or spread(node) or any(map(reaches.search, texts)):
        look.report.deed(EffectKind.WRITE, path.rpartition(".")[2], node.lineno)


def _begins_harmlessly(node: ast.expr, path: str) -> bool:
    """`f"select * from {table}"`: one statement of SQLite is of the kind it begins with."""
    while isinstance(node, ast.BinOp | ast.JoinedStr):
        node = node.left if isinstance(node, ast.BinOp) else node.values[0]
    first = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return path in ("sqlite3().execute", "sqlite3().executemany") and _HARMLESS_SQL.match(first) is not None


def _reads_if_told(*names: str) -> "Handler":
    """A call that opens a file where one of these arguments is given."""

    def judge(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
        for word in node.keywords:
            if word.arg in (*names, None):
                look.report.deed(EffectKind.READ, look.target(word.value, scope) or path, node.lineno)

    return judge


def _tree(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """`ElementTree(element, file)`."""
    where = word_of(node, "file", 1)
    if where is not None or spread(node):
        look.report.deed(EffectKind.READ, (look.target(where, scope) if where else "") or path, node.lineno)


def _schemas(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """`ISOGuard(schemas=directory)` reads what lies there; without it, nothing but what the package brings."""
    where = word_of(node, "schemas", 0)
    none = isinstance(where, ast.Constant) and where.value is None
    if (where is not None and not none) or spread(node):
        look.report.deed(EffectKind.READ, (look.target(where, scope) if where else "") or path, node.lineno)


Handler = Callable[[Look, ast.Call, Scope, str], None]
BY_NAME: dict[str, Handler] = {
    **dict.fromkeys(("open", "io.open", "builtins.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open"), _opens),
    **dict.fromkeys(("tarfile.open", "zipfile.ZipFile", "tarfile.TarFile", "gzip.GzipFile", "wave.open"), _opens),
    **dict.fromkeys(("bz2.BZ2File", "lzma.LZMAFile", "os.fdopen", "pathlib.Path().open", "aiofiles.open"), _opens),
    **dict.fromkeys(("h5py.File", "jsonlines.open", "smart_open.open", "fsspec.open", "click.open_file"), _opens),
    **dict.fromkeys(("sqlite3.connect", "duckdb.connect", "aiosqlite.connect"), _connects),
    **dict.fromkeys((f"pandas().{name}" for name in _TEXT_EXPORTS), _exports),
    **dict.fromkeys(("sqlite3.Connection", "sqlite3.dbapi2.Connection", "sqlite3.dbapi2.connect"), _connects),
    **dict.fromkeys((f"sqlite3().{name}" for name in ("execute", "executescript", "executemany")), _statement),
    **dict.fromkeys((f"duckdb().{name}" for name in ("execute", "executemany", "sql", "query")), _statement),
    "xml.etree.ElementTree.ElementTree": _tree,
    "xml.etree.ElementTree.canonicalize": _reads_if_told("from_file"),
    "argparse.ArgumentParser": _reads_if_told("fromfile_prefix_chars"),
    "qwed_finance.ISOGuard": _schemas,
    "pathlib.Path().replace": _replaces,
    "argparse.FileType": _file_type,
    **dict.fromkeys(("fileinput.input", "fileinput.FileInput"), _edits),
    **dict.fromkeys(("pandas.read_sql", "pandas.read_sql_query", "polars.read_database"), _queries),
    "numpy.load": _array,
    "torch.load": _tensors,
    "logging.basicConfig": _logs,
}

"""Startup hooks that common tools install, recognised by their content."""

import ast
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from qwed.guards._python.syntax import require_depth
from qwed.model.data_files import read_mapping

_MAX_DEPTH = 100
"""Levels of the syntax tree; a tree is dumped recursively."""
_SETUPTOOLS_SHIM = "enabled and __import__('_distutils_hack').add_shim()"
_COVERAGE = """
if os.getenv("COVERAGE_PROCESS_START") or os.getenv("COVERAGE_PROCESS_CONFIG"):
    try:
        import coverage
    except:
        pass
    else:
        coverage.process_startup(slug="pth")
"""
# Crash handler that Debian and Ubuntu install into every interpreter.
_APPORT = """
try:
    import apport_python_hook
except ImportError:
    pass
else:
    apport_python_hook.install()
"""
_SOURCES = (
    "",
    "import coverage; coverage.process_startup()",
    "import coverage\ncoverage.process_startup()",
    "import os" + _COVERAGE,
    "import sys\nimport os" + _COVERAGE,
    _APPORT,
    "import sys; sys.__plen = len(sys.path)",
    "import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0);"
    " sys.path[p:p]=new; sys.__egginsert = p+len(new)",
)

_DISTUTILS = tuple(
    f"import os; {enabled} == 'local'; {_SETUPTOOLS_SHIM}"
    for enabled in (
        "var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local')",
        "var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'stdlib')",
        "enabled = os.environ.get('SETUPTOOLS_USE_DISTUTILS')",
    )
)
_INSTALLERS = (
    re.compile(r"import (?P<module>_virtualenv)"),
    re.compile(r"import (?P<module>__editable___\w+_finder); (?P=module)\.install\(\)"),
    re.compile(r"import (?P<module>_editable_impl_\w+)"),
)

_NAMESPACE = (
    "import sys, types, os;has_mfs = sys.version_info > (3, 5);"
    "p = os.path.join(sys._getframe(1).f_locals['sitedir'], *{parts!r});"
    "importlib = has_mfs and __import__('importlib.util');has_mfs and __import__('importlib.machinery');"
    "m = has_mfs and sys.modules.setdefault({package!r}, importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec({package!r}, [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault({package!r}, types.ModuleType({package!r}));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)"
)
_NAMESPACE_CHILD = ";m and setattr(sys.modules[{parent!r}], {child!r}, m)"
_NAMESPACE_NAME = re.compile(r"sys\.modules\.setdefault\('([A-Za-z_][\w.]{0,200})'")

_FINDERS = {kind: frozenset(names.split()) for kind, names in read_mapping(__file__, "import_finders.txt").items()}
_FINDER_MODULES = _FINDERS["modules"]
_OS_MEMBERS = _FINDERS["os members"]
_FORBIDDEN_NAMES = _FINDERS["forbidden names"]
_FORBIDDEN_MEMBERS = _FINDERS["forbidden members"]
_IMPORTED_BY_NAME = ("setuptools", "distutils", "importlib")


def is_known_source(source: str | bytes) -> bool:
    """Return True if the source is equivalent to a known hook; layout, comments and quotes do not matter."""
    program = _program_dump(source)
    return program is not None and (program in _known_programs() or _is_namespace(source))


def module_installed_by(line: str) -> str:
    """Return the module that a known kind of line installs, which must be checked itself; "" if the line is not of a
    known kind."""
    if _program_dump(line) in _distutils_programs():
        return "_distutils_hack"
    matches = (pattern.fullmatch(line.strip().rstrip(";").rstrip()) for pattern in _INSTALLERS)
    return next((match["module"] for match in matches if match), "")


def is_plain_finder(source: bytes) -> bool:
    """Return True if the module only defines import finders: no file, process or network access."""
    tree = _parse(source)
    if tree is None:
        return False
    nodes = list(ast.walk(tree))
    attribute_owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    bare_uses = (
        node for node in nodes if isinstance(node, ast.Name) and node.id == "os" and id(node) not in attribute_owners
    )
    return not any(bare_uses) and all(_is_plain(node) for node in nodes)


def _is_plain(node: ast.AST) -> bool:
    check = _CHECKS.get(type(node))
    return check is None or check(node)


def _plain_import(node: ast.Import) -> bool:
    return all(alias.name.partition(".")[0] in _FINDER_MODULES and not alias.asname for alias in node.names)


def _plain_import_from(node: ast.ImportFrom) -> bool:
    module = (node.module or "").partition(".")[0]
    if node.level or module not in _FINDER_MODULES:
        return False
    if module == "os":
        return all(alias.name in _OS_MEMBERS for alias in node.names)
    return not any(alias.name in ("*", "import_module") for alias in node.names)


def _plain_name(node: ast.Name) -> bool:
    return node.id not in _FORBIDDEN_NAMES


def _plain_attribute(node: ast.Attribute) -> bool:
    on_os = isinstance(node.value, ast.Name) and node.value.id == "os"
    return node.attr in _OS_MEMBERS if on_os else node.attr not in _FORBIDDEN_MEMBERS


def _plain_call(node: ast.Call) -> bool:
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "import_module"):
        return True
    first = node.args[0] if node.args else None
    return isinstance(first, ast.Constant) and str(first.value).startswith(_IMPORTED_BY_NAME)


_CHECKS: dict[type[ast.AST], Callable[[Any], bool]] = {
    ast.Import: _plain_import,
    ast.ImportFrom: _plain_import_from,
    ast.Name: _plain_name,
    ast.Attribute: _plain_attribute,
    ast.Call: _plain_call,
}


def _is_namespace(source: str | bytes) -> bool:
    text = source.decode("utf-8", "replace") if isinstance(source, bytes) else source
    match = _NAMESPACE_NAME.search(text)
    if match is None:
        return False
    parent, _, child = match[1].rpartition(".")
    template = _NAMESPACE + (_NAMESPACE_CHILD if parent else "")
    expected = template.format(package=match[1], parts=tuple(match[1].split(".")), parent=parent, child=child)
    return _program_dump(expected) == _program_dump(text)


@cache
def _known_programs() -> frozenset[str | None]:
    return frozenset(map(_program_dump, _SOURCES))


@cache
def _distutils_programs() -> frozenset[str | None]:
    return frozenset(map(_program_dump, _DISTUTILS))


def _program_dump(source: str | bytes) -> str | None:
    """Return the dump of the syntax tree, with `exec` of a literal expanded; None if it is not Python or too deep."""
    tree = _parse(source)
    if tree is None:
        return None
    statements: list[ast.stmt] = []
    for statement in tree.body:
        inner = _parse(_executed(statement))
        statements += [statement] if inner is None else inner.body
    return ast.dump(ast.Module(body=_without_docstring(statements), type_ignores=[]))


def _without_docstring(statements: list[ast.stmt]) -> list[ast.stmt]:
    first = statements[0] if statements else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return statements[1:] if is_text else statements


def _executed(statement: ast.stmt) -> str | None:
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return None
    call = statement.value
    if not (isinstance(call.func, ast.Name) and call.func.id == "exec" and len(call.args) == 1 and not call.keywords):
        return None
    literal = call.args[0]
    return literal.value if isinstance(literal, ast.Constant) and isinstance(literal.value, str) else None


def _parse(source: str | bytes | None) -> ast.Module | None:
    if source is None:
        return None
    try:
        tree = ast.parse(source.strip())
        require_depth(tree, _MAX_DEPTH)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree

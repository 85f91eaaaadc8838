"""Rules for calls of library functions that read, write or look up what their arguments name."""

import ast
import re

from qwed.guards._python import string_eval_calls
from qwed.guards._python.abstract_values import UNKNOWN
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.attributes import INTERNALS, TRAVERSALS
from qwed.guards._python.file_calls import Handler, argument_of, has_unpacking
from qwed.guards._python.library_rules import words
from qwed.guards._python.name_resolution import canonical_path
from qwed.guards._python.scopes import Scope
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind


def _named_fields(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check the names of the fields of `namedtuple`: a class pattern looks them up by position."""
    for part in string_eval_calls.flatten_containers([*node.args[1:2], *(word.value for word in node.keywords)]):
        values = [item for value in analysis.folder.possible(part, scope) for item in _field_names(value)]
        for name in values:
            if name in INTERNALS or name in TRAVERSALS:
                analysis.report.add_violation(ViolationKind.REFLECT, str(name), node.lineno)
        if UNKNOWN in values and analysis.is_composed(part, scope):
            analysis.composed_fields[node.lineno] = path


def _field_names(value: object) -> list[object]:
    """Return the names of fields in a text or a container."""
    if isinstance(value, str):
        return [*value.replace(",", " ").split()]
    return [name for item in value for name in _field_names(item)] if isinstance(value, tuple | list) else [value]


def _mocked(analysis: PythonAnalysis, node: ast.Call, scope: Scope, _path: str) -> None:
    """Check `patch.dict("os.environ")` like `os.environ`: the object that it names is the result."""
    named = argument_of(node, "in_dict", 0)
    for text in analysis.folder.possible(named, scope) if named is not None else ():
        if isinstance(text, str):
            analysis.report_use(canonical_path(text), node, scope)
        elif text is UNKNOWN and isinstance(named, ast.Constant | ast.JoinedStr | ast.BinOp):
            analysis.report.add_lookup("patch.dict with a computed name", node.lineno)


_MARKDOWN = re.compile(
    r"(?:markdown\.extensions\.)?(?:extra|abbr|attr_list|def_list|fenced_code|footnotes|md_in_html|tables|admonition"
    r"|codehilite|legacy_attrs|legacy_em|meta|nl2br|sane_lists|smarty|toc|wikilinks)"
)
"""Extensions of the library itself, none of which reads files."""


def _extensions(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check extensions that are named by text: the library imports `module:name` and calls it."""
    named = [word.value for word in node.keywords if word.arg in ("extensions", "extension_configs")]
    chosen = argument_of(node, "extensions", 99)
    extensions = string_eval_calls.flatten_containers([chosen] if chosen is not None else [])
    for part in string_eval_calls.flatten_containers([*named, *node.args[1:]]):
        values = analysis.folder.possible(part, scope) if not isinstance(part, ast.Call) else ()
        texts = [text for value in values for text in (value if isinstance(value, tuple | list) else (value,))]
        is_foreign = part in extensions and any(
            isinstance(text, str) and not _MARKDOWN.fullmatch(text) for text in texts
        )
        if is_foreign or any(text is UNKNOWN or (isinstance(text, str) and ":" in text) for text in texts):
            analysis.report.add_lookup(f"{path} with named extensions", node.lineno)


def _units(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a registry of units that reads its definitions from a file, or keeps a cache."""
    _writes_if_given("cache_folder")(analysis, node, scope, path)
    file = argument_of(node, "filename", 0)
    if file is not None or has_unpacking(node):
        analysis.report.add_access(EffectKind.READ, (analysis.target(file, scope) if file else "") or path, node.lineno)


def _time_zone(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a time zone that may be a file."""
    name = argument_of(node, "name", 0)
    names = analysis.folder.possible(name, scope) if name is not None else ("UTC",)
    if has_unpacking(node) or not all(isinstance(text, str) and _ZONE.fullmatch(text) for text in names):
        analysis.report.add_access(EffectKind.READ, (analysis.target(name, scope) if name else "") or path, node.lineno)


_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")


def _schema(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a schema that may refer to another one, which the library fetches."""
    schema = argument_of(node, "schema", int(path.endswith("validate")))
    values = list(analysis.folder.possible(schema, scope)) if schema is not None else [UNKNOWN]
    for value in values:
        if isinstance(value, dict):
            references = [value[key] for key in _REFERENCES if key in value]
            values += [*value.values(), *(UNKNOWN for text in references if not str(text).startswith("#"))]
        elif isinstance(value, tuple | list):
            values += value
    if has_unpacking(node) or UNKNOWN in values:
        analysis.report.add_effect(EffectKind.NETWORK, path, node.lineno)


_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")


_DRAFTS = ("3", "4", "6", "7", "201909", "202012")


_DIRECTORIES = words("""
user_data_dir user_config_dir user_cache_dir user_state_dir user_log_dir site_data_dir site_config_dir site_cache_dir
user_data_path user_config_path user_cache_path user_state_path user_log_path site_data_path site_config_path
PlatformDirs
""")


def _writes_if_given(*names: str) -> Handler:
    """Return a rule for a call that writes a file if one of these arguments is present."""

    def rule(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
        for word in node.keywords:
            if word.arg in (*names, None):
                analysis.report.add_access(EffectKind.WRITE, analysis.target(word.value, scope) or path, node.lineno)

    return rule


def _backend(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a backend of matplotlib that is not a plain name: `module://name` imports a module."""
    named = [*node.args[:1], *(word.value for word in node.keywords if word.arg in ("backend", "newbackend"))]
    texts = [text for part in named for text in analysis.folder.possible(part, scope)]
    if has_unpacking(node) or not all(isinstance(text, str) and text.isalnum() for text in texts):
        analysis.report.add_lookup(f"{path} with a computed name", node.lineno)


def _grammar(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a grammar that keeps a cache, or imports other grammars from files."""
    _writes_if_given("cache")(analysis, node, scope, path)
    if has_unpacking(node) or any(word.arg in ("source_path", "import_paths") for word in node.keywords):
        analysis.report.add_access(EffectKind.READ, path, node.lineno)


def _style(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a style that is not one of the library's own: a file, or an address."""
    style = argument_of(node, "style", 0)
    values = analysis.folder.possible(style, scope) if style is not None else (UNKNOWN,)
    names = [name for value in values for name in (value if isinstance(value, tuple | list) else (value,))]
    if has_unpacking(node) or not all(isinstance(name, dict) or _is_style_name(name) for name in names):
        analysis.report.add_access(
            EffectKind.READ, (analysis.target(style, scope) if style else "") or path, node.lineno
        )


def _is_style_name(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[\w-]+", name) is not None


def _settings_file(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    file = argument_of(node, "fname", 1)
    if file is not None or has_unpacking(node):
        analysis.report.add_access(EffectKind.READ, (analysis.target(file, scope) if file else "") or path, node.lineno)


BY_NAME: dict[str, Handler] = {
    **dict.fromkeys(("markdown.markdown", "markdown.Markdown"), _extensions),
    "pint.UnitRegistry": _units,
    "collections.namedtuple": _named_fields,
    **dict.fromkeys(("matplotlib.use", "matplotlib.pyplot.switch_backend"), _backend),
    "lark.Lark": _grammar,
    **dict.fromkeys(("matplotlib.style.use", "matplotlib.style.context", "matplotlib.pyplot.style.use"), _style),
    **dict.fromkeys(("matplotlib.rc_context", "matplotlib.pyplot.rc_context"), _settings_file),
    **dict.fromkeys(("unittest.mock.patch.dict", "mock.patch.dict"), _mocked),
    **dict.fromkeys(("jsonschema.validate", "jsonschema.validators.validate"), _schema),
    **dict.fromkeys((f"jsonschema.Draft{version}Validator" for version in _DRAFTS), _schema),
    **dict.fromkeys(("dateutil.tz.gettz", "dateutil.tz.tz.gettz"), _time_zone),
    **dict.fromkeys((f"platformdirs.{name}" for name in _DIRECTORIES), _writes_if_given("ensure_exists")),
}

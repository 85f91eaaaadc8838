"""Rules for library calls that act only through some of their arguments: a file, a cache, an extension named by text.

The tables of `library_rules` give the same names an effect, which counts wherever a name is used in another way than
in a call that is checked here.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from qwed.guards._python.abstract_values import UNKNOWN
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.file_calls import Handler, argument_of, bound_values, has_unpacking, is_in_memory, mark_handled
from qwed.guards._python.library_rules import KNOWN_PREFIXES, words
from qwed.guards._python.name_resolution import canonical_path
from qwed.guards._python.report import rule_of
from qwed.guards._python.scopes import Scope
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind
from qwed.model.data_files import read_table

_ELSEWHERE = 99
"""Position of an argument that is passed by keyword only."""

ACTING_ARGUMENTS = read_table(__file__, "acting_arguments.txt")
"""Lines `EFFECT name ...: argument@position ...`: calls that act if one of the arguments is given."""

IN_MEMORY_CALLS = words("""
pandas.read_csv pandas.read_json pandas.read_table pandas.read_fwf numpy.loadtxt numpy.genfromtxt numpy.savetxt
numpy.save numpy.savez numpy.savez_compressed polars.read_csv polars.read_json polars.read_ndjson
openpyxl.load_workbook zipfile.is_zipfile xml.etree.ElementTree.parse xml.etree.ElementTree.iterparse
matplotlib.pyplot.savefig matplotlib().savefig matplotlib.pyplot.imsave pandas().to_pickle pandas().to_parquet
pandas().to_feather pandas().to_excel openpyxl().save docx().save PIL().save
""")
"""Calls that read or write the file in their first argument, and nothing if it is a buffer in memory."""

_SCHEMA_CALLS = words("""
validate Draft3Validator Draft4Validator Draft6Validator Draft7Validator Draft201909Validator Draft202012Validator
validators.validate
""")
_VALIDATORS = frozenset(f"jsonschema.{name}" for name in _SCHEMA_CALLS)
_BACKENDS = r"(?i)agg|svg|pdf|ps|pgf|cairo|template|tkagg|qt5?agg|qtcairo|gtk[34]agg|wxagg|macosx|inline"
_STYLES = r"""(?x)classic|default|fast|ggplot|bmh|dark_background|fivethirtyeight|grayscale|Solarize_Light2
|tableau-colorblind10|petroff\d+|seaborn(?:-[\w-]+)?|_mpl-gallery(?:-nogrid)?"""
_FORMATTERS = r"""(?xi)html|latex|tex|terminal|terminal256|256|console256|terminal16m|truecolor|null|text|raw|tokens
|rtf|svg|bbcode|bb"""
_EXTENSIONS = r"""(?x)(?:markdown\.extensions\.)?(?:abbr|admonition|attr_list|codehilite|def_list|extra|fenced_code
|footnotes|legacy_attrs|legacy_em|md_in_html|meta|nl2br|sane_lists|smarty|tables|toc|wikilinks)"""

_DATA_CALLS = words("lightgbm.Dataset xgboost.DMatrix xgboost.QuantileDMatrix")
_FRAME_OPTIONS = re.compile(r"(?:display|mode|compute|future|styler|io)\.[\w.]+")

NAMED_THINGS: dict[str, tuple[str, int, str]] = {
    "importlib.util.find_spec": ("name", 0, r"\w+"),
    **dict.fromkeys(("matplotlib.use", "matplotlib.pyplot.switch_backend"), ("backend", 0, _BACKENDS)),
    "jinja2.Environment": ("extensions", _ELSEWHERE, r"jinja2\.ext\.\w+"),
    **dict.fromkeys(
        (f"sklearn.feature_extraction.text.{name}Vectorizer" for name in ("Count", "Tfidf", "Hashing")),
        ("input", _ELSEWHERE, "content|file"),
    ),
    "dateutil.tz.gettz": ("name", 0, r"[A-Z]\w*(?:/[A-Z][\w+-]*)*"),
    **dict.fromkeys(("markdown.core.markdown", "markdown.core.Markdown"), ("extensions", _ELSEWHERE, _EXTENSIONS)),
}
"""Calls that look something up by a text: the argument, its position and the texts that are known to be harmless."""


Arguments = tuple[list[EffectKind], list[tuple[str, int]]]


def _by_path() -> dict[str, list[Arguments]]:
    by_path: dict[str, list[Arguments]] = {}
    for line in filter(None, ACTING_ARGUMENTS.splitlines()):
        head, _, rest = line.partition(":")
        kinds, *paths = head.split()
        arguments = [
            (name, int(index or _ELSEWHERE)) for name, _, index in (word.partition("@") for word in rest.split())
        ]
        for path in paths:
            by_path.setdefault(path, []).append(([EffectKind[kind] for kind in kinds.split("+")], arguments))
    return by_path


def _add(analysis: PythonAnalysis, kind: EffectKind, node: ast.expr | None, scope: Scope, path: str, line: int) -> None:
    target = analysis.target(node, scope) if node is not None and kind is not EffectKind.UNRESOLVED else ""
    analysis.report.add_access(kind, target or path, line)


def _is_given(analysis: PythonAnalysis, node: ast.expr | None, scope: Scope) -> bool:
    absent = node is None or (isinstance(node, ast.Constant) and not node.value)
    return not absent and node is not None and not is_in_memory(analysis, node, scope)


def _acts_if_given(rows: list[Arguments]) -> Handler:
    """Return a rule for a call that acts if one of these arguments is given."""

    def rule(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
        for kinds, arguments in rows:
            given = [argument_of(node, name, index) for name, index in arguments]
            acting = [argument for argument in given if _is_given(analysis, argument, scope)]
            if acting or has_unpacking(node):
                for kind in kinds:
                    _add(analysis, kind, acting[0] if acting else None, scope, path, node.lineno)

    return rule


def _unless_in_memory(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    if not (node.args and is_in_memory(analysis, node.args[0], scope)):
        analysis.report.add_rule(path, rule_of(path), node.lineno, analysis.targets(node.func, scope))


def _data(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report data that is given as the name of a file."""
    texts = [text for part in (*node.args[:1], *_keyword(node, "data")) for text in analysis.folder.texts(part, scope)]
    if texts or has_unpacking(node):
        analysis.report.add_access(EffectKind.READ, next(iter(texts), path), node.lineno)


def _keyword(node: ast.Call, name: str) -> list[ast.expr]:
    return [word.value for word in node.keywords if word.arg == name]


def _frame_options(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check the options of data frames: that of the plotting library is the name of a module."""
    names = [name for part in node.args[::2] for name in analysis.folder.possible(part, scope)]
    known = all(isinstance(name, str) and _FRAME_OPTIONS.fullmatch(name) for name in names)
    if not known or node.keywords or has_unpacking(node):
        analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)


_IMAGE_FORMATS = re.compile(r"(?i)png|svg|svgz|pdf|ps|eps|jpe?g|tiff?|webp|gif|avif|raw|rgba")


def _image_format(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report formats of images that are made by another program."""
    for word in node.keywords:
        texts = analysis.folder.possible(word.value, scope) if word.arg == "format" else ()
        if word.arg in ("backend", None) or not all(map(_is_image_format, texts)):
            analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)


def _is_image_format(text: Any) -> bool:
    return isinstance(text, str) and _IMAGE_FORMATS.fullmatch(text) is not None


def flatten(value: Any) -> Iterator[Any]:
    """Return the keys and items of a known value, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *flatten(item))
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from flatten(item)
    else:
        yield value


def _texts(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> list[Any]:
    """Return the possible texts of an argument and of its elements; a name of the program's own class is none."""
    elements = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    values = [
        value
        for element in elements
        if not _is_own_object(analysis, element)
        for value in analysis.folder.possible(element, scope)
    ]
    return [text for value in values for text in flatten(value)]


def _is_own_object(analysis: PythonAnalysis, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in analysis.program.classes


def _named(name: str, index: int, harmless: str) -> Handler:
    """Return a rule for a call that looks something up by a text, which must be one of the harmless ones."""
    pattern = re.compile(harmless)

    def rule(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
        argument = argument_of(node, name, index)
        texts = _texts(analysis, argument, scope) if argument is not None else []
        plain = all(isinstance(text, str) and pattern.fullmatch(text) for text in texts)
        if not plain or has_unpacking(node):
            analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)

    return rule


def _patch(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check `patch("module.name")` like the import of that module."""
    target = argument_of(node, "target", 0)
    texts = analysis.folder.possible(target, scope) if target is not None else (UNKNOWN,)
    if has_unpacking(node) or not all(map(_is_patched_name, texts)):
        analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)


def _is_patched_name(text: Any) -> bool:
    """Return True for the dotted name of an attribute of a module that a program may import."""
    if not isinstance(text, str) or "." not in text:
        return False
    root = canonical_path(text.partition(".")[0])
    if root == "__main__":
        return True
    rule = rule_of(root)
    imported = rule.violation is None and (not rule.unknown or root in KNOWN_PREFIXES)
    return (imported or root == "builtins") and rule_of(canonical_path(text)).violation is not ViolationKind.REFLECT


def _patch_mapping(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Allow `patch.dict` on a mapping of the program; a text names one of any module."""
    mapping = argument_of(node, "in_dict", 0)
    if mapping is None or has_unpacking(node) or not _is_mapping(analysis, mapping, scope):
        analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)


def _is_mapping(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    return all(
        isinstance(value, ast.Dict | ast.DictComp) or _calls_dict(value)
        for value in bound_values(analysis, node, scope)
    )


def _calls_dict(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict"


def _domain(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a message identifier without a domain, for which the name of the host is looked up."""
    if not _is_given(analysis, argument_of(node, "domain", 1), scope):
        analysis.report.add_access(EffectKind.NETWORK, path, node.lineno)


def _schema(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a JSON schema that is not known, or that refers to another document."""
    schema = argument_of(node, "schema", 1 if path.endswith("validate") else 0)
    values = _documents(analysis, schema, scope) if schema is not None else [UNKNOWN]
    if has_unpacking(node) or not all(map(_is_closed_schema, values)):
        analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)


def _documents(analysis: PythonAnalysis, schema: ast.expr, scope: Scope) -> list[Any]:
    """Return the possible values of a schema; a literal with a name counts if it is only passed to validators."""
    if isinstance(schema, ast.Name) and not _is_only_validated(analysis, schema.id):
        return [*analysis.folder.possible(schema, scope)]
    return [_literal(value) for value in bound_values(analysis, schema, scope)]


def _literal(node: ast.expr) -> Any:
    """Return the value of constants in lists and mappings, or UNKNOWN."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        items = [_literal(item) for item in node.elts]
        return UNKNOWN if UNKNOWN in items else items
    if not isinstance(node, ast.Dict) or not all(isinstance(key, ast.Constant) for key in node.keys):
        return UNKNOWN
    values = [_literal(value) for value in node.values]
    return UNKNOWN if UNKNOWN in values else dict(zip(map(_literal, filter(None, node.keys)), values, strict=True))


def _is_only_validated(analysis: PythonAnalysis, name: str) -> bool:
    """Return True if nothing can change the value of a name: every use of it is an argument of a validator."""
    validated = {
        id(part)
        for node, scope in analysis.program.calls
        if analysis.values.paths(node.func, scope) & _VALIDATORS
        for part in (*node.args, *(word.value for word in node.keywords))
    }
    uses = (node for node in analysis.program.nodes(ast.Name) if node.id == name)
    return all(id(node) in validated or isinstance(node.ctx, ast.Store) for node in uses)


def _is_closed_schema(value: Any) -> bool:
    """Return True if all references of a known schema lead into the schema itself."""
    if isinstance(value, dict):
        own = all(not str(key).endswith(("Ref", "$ref")) or str(item).startswith("#") for key, item in value.items())
        return own and all(map(_is_closed_schema, (*value.keys(), *value.values())))
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_closed_schema, value))
    return value is None or isinstance(value, str | int | float)


_IMPORT = re.compile(r"%import\s+(?!(?:common|python|lark|unicode)\b)")


def _grammar(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report a grammar that is not known, or that imports other files than those of the library."""
    grammar = argument_of(node, "grammar", 0)
    texts = analysis.folder.possible(grammar, scope) if grammar is not None else (UNKNOWN,)
    if not all(isinstance(text, str) and not _IMPORT.search(text) for text in texts):
        analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)


def _all(*rules: Handler) -> Handler:
    def rule(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
        for each in rules:
            each(analysis, node, scope, path)

    return rule


_SETTINGS = words("matplotlib.rcParams matplotlib.pyplot.rcParams")
_ACTING_SETTING = re.compile(
    r"backend|figure\.hooks|hooks|(?:text\.)?(?:usetex|latex\..*)|mathtext\.(?!fontset|default|fallback).*|(?:pgf|animation|webagg)\..*|savefig\.directory"
)
_EVALUATED_SETTING = re.compile(r"(?:axes\.)?prop_cycle")
"""A setting whose value is evaluated if it is a text."""


def check_setting(analysis: PythonAnalysis, node: ast.Subscript, scope: Scope) -> None:
    """Check `rcParams["key"]`: some settings name modules to import or programs to run."""
    if not isinstance(node.value, ast.Name | ast.Attribute) or not analysis.values.paths(node.value, scope) & _SETTINGS:
        return
    keys = analysis.folder.possible(node.slice, scope)
    stored = not isinstance(node.ctx, ast.Load)
    if not stored or not any(map(_is_acting_setting, keys)):
        mark_handled(analysis, node.value)


def check_setting_value(analysis: PythonAnalysis, node: ast.Assign, scope: Scope) -> None:
    """Check `rcParams["axes.prop_cycle"] = value`, which evaluates a text."""
    for target in node.targets:
        if isinstance(target, ast.Subscript) and analysis.values.paths(target.value, scope) & _SETTINGS:
            keys = analysis.folder.possible(target.slice, scope)
            _check_value(analysis, keys, node.value)


def _check_value(analysis: PythonAnalysis, keys: Iterable[Any], value: ast.expr) -> None:
    if any(isinstance(key, str) and _EVALUATED_SETTING.fullmatch(key) for key in keys) and not isinstance(
        value, ast.Call
    ):
        analysis.report.add_effect(EffectKind.UNRESOLVED, "matplotlib.rcParams", value.lineno)


def _is_acting_setting(key: Any) -> bool:
    return not isinstance(key, str) or _ACTING_SETTING.fullmatch(key) is not None


def _settings(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check settings that are passed as a mapping or by keyword."""
    for part in (*node.args, *(word.value for word in node.keywords if word.arg == "rc")):
        for value in bound_values(analysis, part, scope):
            if isinstance(value, ast.Dict):
                _check_settings(analysis, value, scope, path)
            elif not isinstance(value, ast.Constant | ast.Tuple):
                analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)
    for word in node.keywords:
        if word.arg is None or _is_acting_setting(word.arg):
            analysis.report.add_effect(EffectKind.UNRESOLVED, path, node.lineno)
        _check_value(analysis, (word.arg,), word.value)


def _check_settings(analysis: PythonAnalysis, settings: ast.Dict, scope: Scope, path: str) -> None:
    for key, value in zip(settings.keys, settings.values, strict=True):
        keys = analysis.folder.possible(key, scope) if key is not None else (UNKNOWN,)
        if any(map(_is_acting_setting, keys)):
            analysis.report.add_effect(EffectKind.UNRESOLVED, path, settings.lineno)
        _check_value(analysis, keys, value)


def _style(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check styles that are named by text, which may name a file, and styles that are settings."""
    style = argument_of(node, "style", 0)
    if style is not None and any(isinstance(value, ast.Dict) for value in bound_values(analysis, style, scope)):
        _settings(analysis, node, scope, path)
    else:
        _named("style", 0, _STYLES)(analysis, node, scope, path)


_FONT_WORDS = words("font fontproperties font_properties prop")
_FONT_NAME = re.compile(r"[\w ,.-]*")


def _check_fonts(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    """Report fonts of plots that are given as a file, or as a pattern that may name one."""
    if not analysis.program.roots & _PLOTTING:
        return
    for word in node.keywords:
        if word.arg in _FONT_WORDS and not all(
            _is_font(analysis, value, scope) for value in bound_values(analysis, word.value, scope)
        ):
            analysis.report.add_effect(EffectKind.UNRESOLVED, "font of a plot", node.lineno)


def _is_font(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    """Return True for the name of a font, or its properties without a file."""
    if isinstance(node, ast.Dict):
        return all(isinstance(key, ast.Constant) and key.value not in ("fname", "file") for key in node.keys)
    if isinstance(node, ast.Call):
        return _calls_dict(node) and not any(word.arg in ("fname", "file", None) for word in node.keywords)
    texts = analysis.folder.possible(node, scope)
    return all(text is None or (isinstance(text, str) and _FONT_NAME.fullmatch(text)) for text in texts)


_LEARNING = words("sklearn imblearn hdbscan")
_PLOTTING_LIBRARIES = re.compile("matplotlib|plotly|bokeh|hvplot|holoviews|loky|threading|multiprocessing")


def _check_caches(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    """Report the directory of a cache of models, documents given by file name, and modules that are to plot."""
    for word in node.keywords:
        texts = analysis.folder.possible(word.value, scope) if word.arg in ("input", "backend") else ()
        if word.arg == "memory" and analysis.program.roots & _LEARNING and _is_given(analysis, word.value, scope):
            analysis.report.add_access(EffectKind.WRITE, analysis.target(word.value, scope) or "memory", node.lineno)
        elif word.arg == "input" and analysis.program.roots & _LEARNING and "filename" in texts:
            analysis.report.add_access(EffectKind.READ, "input", node.lineno)
        elif word.arg == "backend" and "pandas" in analysis.program.roots and not all(map(_is_plotting_library, texts)):
            analysis.report.add_effect(EffectKind.UNRESOLVED, "backend of a plot", node.lineno)


def _is_plotting_library(text: Any) -> bool:
    return text is None or (isinstance(text, str) and _PLOTTING_LIBRARIES.fullmatch(text) is not None)


_PLOTTING = words("matplotlib seaborn pandas mpl_toolkits")
_COMMANDS = words("click typer")
_ENVIRONMENT_WORDS = words("env")


ACTING_KEYWORDS = _FONT_WORDS | _ENVIRONMENT_WORDS | words("context_settings memory input backend")
"""Keywords that are checked in any call."""


def check_keywords(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    """Check arguments that are known by their keyword, in any call."""
    if not node.keywords:
        return
    _check_environment_words(analysis, node, scope)
    _check_fonts(analysis, node, scope)
    _check_caches(analysis, node, scope)


def _check_environment_words(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> None:
    """Report arguments of commands of click and typer that name variables of the environment."""
    if not analysis.program.roots & _COMMANDS:
        return
    for word in node.keywords:
        given = word.arg in _ENVIRONMENT_WORDS and _is_given(analysis, word.value, scope)
        keys = set(flatten(analysis.folder.possible(word.value, scope))) if word.arg == "context_settings" else set()
        if given or keys & {UNKNOWN, "auto_envvar_prefix"}:
            analysis.report.add_effect(EffectKind.UNRESOLVED, f"{word.arg} of a command", node.lineno)


_ACTING = {path: _acts_if_given(rows) for path, rows in _by_path().items()}
BY_NAME: dict[str, Handler] = {
    **_ACTING,
    **{name: _named(*row) for name, row in NAMED_THINGS.items()},
    **dict.fromkeys(IN_MEMORY_CALLS, _unless_in_memory),
    **dict.fromkeys(("unittest.mock.patch", "unittest.mock.patch.multiple"), _patch),
    "unittest.mock.patch.dict": _patch_mapping,
    "email.utils.make_msgid": _domain,
    **dict.fromkeys(_DATA_CALLS, _data),
    **dict.fromkeys(("pandas.set_option", "pandas.option_context"), _frame_options),
    "pygments.formatters.get_formatter_by_name": _all(
        _ACTING["pygments.formatters.get_formatter_by_name"], _named("_alias", 0, _FORMATTERS)
    ),
    **dict.fromkeys(("matplotlib.pyplot.savefig", "matplotlib().savefig"), _all(_unless_in_memory, _image_format)),
    **dict.fromkeys(_VALIDATORS, _schema),
    "lark.lark.Lark": _all(_ACTING["lark.lark.Lark"], _grammar),
    **dict.fromkeys(("matplotlib.style.use", "matplotlib.style.context"), _style),
    **dict.fromkeys((f"{name}.update" for name in _SETTINGS), _settings),
    **dict.fromkeys(("matplotlib.rc", "matplotlib.pyplot.rc"), _settings),
    "matplotlib.pyplot.rc_context": _all(_ACTING["matplotlib.pyplot.rc_context"], _settings),
}

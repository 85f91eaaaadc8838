"""Rules for calls that run a text as a formula, a query or a template: allowed if it is a plain literal."""

import ast
import builtins
import re
from collections.abc import Callable, Iterator

from qwed.guards._python import argument_rules
from qwed.guards._python.abstract_values import UNKNOWN, items_of
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.annotations import check_annotation
from qwed.guards._python.attributes import TEXT_CODE
from qwed.guards._python.file_calls import Handler, has_unpacking
from qwed.guards._python.library_rules import words
from qwed.guards._python.module_names import is_pure
from qwed.guards._python.scopes import Scope
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

_NUMBERS = words("abs min max sum pow round divmod int float complex bool True False None")
_BUILTINS = frozenset(name for name in dir(builtins) if name.islower()) - _NUMBERS
_FORMULA = re.compile(r"(?!.*(?:__|[A-Za-z_\])]\s*\.\s*[A-Za-z_]))[\w\s+\-*/^().,=<>!|&~%\[\]{}:]*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUERY_REACHES = re.compile(
    r"__|\bimport\b|@|\.\s*(?:to_(?!list\b|numpy\b|period\b|timestamp\b)\w+|read_\w+|pipe|apply|eval|query)\b"
)
_TAG = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_TAG_REACHES = re.compile(
    r"""\\|\battr\b|__|\bimport\b|\binclude\b|['"]_|_['"]|\.\s*_
    |\[\s*(?!(?:['"][\w\s.-]*['"]|-?\d*(?::-?\d*)?|loop\.index0?)\s*\])|\battribute\s*=\s*(?!['"][\w.]+['"]\s*[,)])""",
    re.VERBOSE,
)
"""Template syntax that can compose an interpreter attribute name."""


def is_formula(text: str) -> bool:
    """Return True if sympy may run the text: arithmetic on names, and nothing else."""
    return _FORMULA.fullmatch(text) is not None and not _BUILTINS.intersection(_WORD.findall(text))


def _is_query(text: str) -> bool:
    return _QUERY_REACHES.search(text) is None


def _is_template(text: str) -> bool:
    return not any(_TAG_REACHES.search(tag) for tag in _TAG.findall(text)) and "<%" not in text


def _formula(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    if not node.args or not all(isinstance(text, str) and is_formula(text) for text in _values(analysis, node, scope)):
        analysis.report.add_violation(ViolationKind.DYNAMIC, path, node.lineno)


def _constants(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check the constants of `mpmath.identify`, which are run as formulas."""
    for part in flatten_containers([*node.args[1:], *(word.value for word in node.keywords)]):
        texts = [item for value in analysis.folder.possible(part, scope) for item in items_of(value)]
        plain = isinstance(part, ast.Constant) and not isinstance(part.value, str)
        if not plain and not all(isinstance(text, str) and is_formula(text) for text in texts):
            analysis.report.add_violation(ViolationKind.DYNAMIC, path, node.lineno)


def _values(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> tuple[object, ...]:
    return tuple(analysis.folder.possible(node.args[0], scope))


def _expression(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    if not node.args or not all(isinstance(text, str) and _is_query(text) for text in _values(analysis, node, scope)):
        analysis.report.add_violation(ViolationKind.DYNAMIC, path, node.lineno)


def _environment(analysis: PythonAnalysis, node: ast.Call, _scope: Scope, path: str) -> None:
    """Report a template environment with a syntax of its own: its templates are not understood."""
    if has_unpacking(node) or any(_SYNTAX.fullmatch(word.arg or "") for word in node.keywords):
        analysis.report.add_lookup(f"{path} with its own syntax", node.lineno)


_SYNTAX = re.compile(r"\w+_string|line_\w+_prefix|finalize|extensions")


def _template(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    _environment(analysis, node, scope, path)
    if not node.args or not all(
        isinstance(text, str) and _is_template(text) for text in _values(analysis, node, scope)
    ):
        analysis.report.add_violation(ViolationKind.DYNAMIC, path, node.lineno)


def _frame_text(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check methods of a data frame that take an expression as text."""
    if node.args and not all(isinstance(text, str) and _is_query(text) for text in _values(analysis, node, scope)):
        analysis.report.add_effect(EffectKind.UNRESOLVED, path.rpartition(".")[2], node.lineno)


def _is_model(text: str) -> bool:
    """Return True if the text of a statistical model names columns, functions and numpy functions that compute."""
    if _MODEL.fullmatch(text) is None or "__" in text or _BUILTINS.intersection(_WORD.findall(text)):
        return False
    return all(is_pure(f"numpy.{name}") for name in _DOTTED.findall(text))


_MODEL = re.compile(r"(?:np\.(?=\w)|\.astype(?=\()|[\w\s+\-*/^(),:~|='\"<>\[\]]|(?<=\d)\.|\.(?=\d))*")
_DOTTED = re.compile(r"\bnp\.(\w+)")


def check_model(analysis: PythonAnalysis, node: ast.Call, scope: Scope, paths: frozenset[str]) -> None:
    """Check the formula of a statistical model, which is run as code."""
    named = [word.value for word in node.keywords if word.arg == "formula"]
    if paths and any(path.startswith("statsmodels.formula") for path in paths):
        named += node.args[:1]
    for part in named:
        for text in analysis.folder.possible(part, scope):
            hidden = text is UNKNOWN and analysis.is_obfuscated(part, scope)
            if hidden or (isinstance(text, str) and not _is_model(text)):
                analysis.report.add_lookup("text of a formula", node.lineno)


def _timeit(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report timeit on text, which it runs as code; a function of the program is checked where it is defined."""
    timed = [*node.args[:2], *(word.value for word in node.keywords if word.arg in ("stmt", "setup"))]
    own = [isinstance(argument, ast.Lambda) or _is_own_function(analysis, argument, scope) for argument in timed]
    if not timed or not all(own) or has_unpacking(node):
        analysis.report.add_violation(ViolationKind.DYNAMIC, path, node.lineno)


def _is_own_function(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    return (
        isinstance(node, ast.Name)
        and node.id in analysis.program.functions
        and not analysis.values.paths_of_name(node.id, scope)
    )


_NAMING = words("symbols Symbol Function Dummy Wild var IndexedBase MatrixSymbol Idx")
_PRINTING = words("latex pprint init_printing")
FORMULA_METHODS = words("subs equals diff integrate series limit coeff collect")


def check_formulas(analysis: PythonAnalysis, node: ast.Call, scope: Scope, paths: frozenset[str]) -> None:
    """Check the arguments of sympy functions and of methods of sympy objects, which run texts as formulas."""
    if "sympy" not in analysis.program.roots:
        return
    last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    # A function that is called where it is created, selected or taken from a container has no name to follow.
    nameless = not isinstance(node.func, ast.Name | ast.Attribute | ast.Lambda)
    is_sympy = (
        _is_sympy(paths) or nameless or (bool(paths & HIGHER_ORDER) and _has_sympy_argument(analysis, node, scope))
    )
    called = {path.rpartition(".")[2] for path in paths}
    if not (is_sympy and not called & _PRINTING) and last not in FORMULA_METHODS:
        return
    accepts = _is_name if is_sympy and called & _NAMING else is_formula
    for part in flatten_containers(
        [*node.args, *(word.value for word in node.keywords if word.arg not in _PLAIN_WORDS)]
    ):
        _check_formula_argument(analysis, part, scope, node, accepts)
    if any(word.arg == "printer" for word in node.keywords) or ("lambdify" in called and _has_own_printer(analysis)):
        analysis.report.add_violation(ViolationKind.DYNAMIC, "code that a printer writes for sympy", node.lineno)


def _has_own_printer(analysis: PythonAnalysis) -> bool:
    """Return True if an object of the program defines how it is printed as code."""
    attributes = {node.attr for node in analysis.program.nodes(ast.Attribute)}
    return any(_OWN_PRINTING.fullmatch(name.lstrip("_")) for name in analysis.program.methods | attributes)


_OWN_PRINTING = re.compile(r"\w*code|sympystr|sympyrepr")


def check_index(analysis: PythonAnalysis, node: ast.Subscript, scope: Scope) -> None:
    """Check the index of a sympy object, which runs a text as a formula, and of settings."""
    argument_rules.check_setting(analysis, node, scope)
    if "sympy" in analysis.program.roots and _is_sympy(analysis.values.paths(node.value, scope)):
        for part in flatten_containers([node.slice]):
            _check_formula_argument(analysis, part, scope, node)


def check_item_assignment(analysis: PythonAnalysis, node: ast.Assign | ast.For, scope: Scope) -> None:
    """Check items assigned to a sympy object, which runs a text as a formula, and to settings."""
    if isinstance(node, ast.Assign):
        argument_rules.check_setting_value(analysis, node, scope)
    if "sympy" not in analysis.program.roots:
        return
    targets, value = (node.targets, node.value) if isinstance(node, ast.Assign) else ([node.target], node.iter)
    if all(isinstance(target, ast.Name) for target in targets):
        return
    owners = [node_part.value for node_part in flatten_containers([*targets]) if isinstance(node_part, ast.Subscript)]
    if any(_is_sympy(analysis.values.paths(node_part, scope)) for node_part in owners):
        for part in flatten_containers([value]):
            _check_formula_argument(analysis, part, scope, node)


HIGHER_ORDER = words("map filter functools.partial functools.reduce itertools.starmap itertools.accumulate")
"""Functions that call their arguments."""


def _has_sympy_argument(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> bool:
    return any(_is_sympy(analysis.values.paths(part, scope)) for part in node.args)


def _is_sympy(paths: frozenset[str]) -> bool:
    return any(path.partition(".")[0] in ("sympy", "sympy()") for path in paths)


_PLAIN_WORDS = words("modules domain rational method dir cls printer order")
_TYPESET = str.maketrans("", "", "\\'$;?")


def _is_name(text: str) -> bool:
    """Return True if the text may be the name of a symbol: sympy turns the name into code again when it writes a
    function or parses a text."""
    return is_formula(text.translate(_TYPESET))


def _options(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Report options of z3, and statements that set them, if they name a file to write."""
    words_of = [word.arg or "" for word in node.keywords]
    texts = [text for part in node.args for text in analysis.folder.texts(part, scope)]
    if any(map(is_file_option, (*words_of, *texts))):
        analysis.report.add_effect(EffectKind.WRITE, path, node.lineno)


def is_file_option(text: str) -> bool:
    """Return True if an option of z3 names a file."""
    return _FILE_OPTION.search(text) is not None


_FILE_OPTION = re.compile(r"(?i)file|log(?!ic)|dump|channel|trace|path")
_TAKE_OPTIONS = """
set_param set_option Solver SolverFor SimpleSolver Optimize Fixedpoint Context parse_smt2_string With ParamsRef
"""
OPTION_CALLS = frozenset(
    [f"z3.{name}" for name in _TAKE_OPTIONS.split()] + ["z3().set", "z3().from_string", "z3().set_param"]
)


def flatten_containers(nodes: list[ast.expr]) -> list[ast.expr]:
    """Return the expressions, with lists, tuples and mappings replaced by their elements."""
    expressions: list[ast.expr] = []
    pending = list(nodes)
    while pending:
        current = pending.pop()
        if isinstance(current, ast.List | ast.Tuple | ast.Set):
            pending += current.elts
        elif isinstance(current, ast.Dict):
            pending += [item for item in (*current.keys, *current.values) if item is not None]
        else:
            expressions.append(current.value if isinstance(current, ast.Starred) else current)
    return expressions


def _check_formula_argument(
    analysis: PythonAnalysis,
    part: ast.expr,
    scope: Scope,
    node: ast.expr | ast.stmt,
    accepts: Callable[[str], bool] = is_formula,
) -> None:
    values = analysis.folder.possible(part, scope)
    texts = list(_leaves(values))
    hidden = UNKNOWN in texts and (
        analysis.is_obfuscated(part, scope) or analysis.has_node(_is_code_constant, ast.Constant)
    )
    if hidden or not all(accepts(text) for text in texts if isinstance(text, str)):
        analysis.report.add_violation(ViolationKind.DYNAMIC, "text that sympy runs", node.lineno)


def _leaves(values: tuple[object, ...]) -> Iterator[object]:
    """Yield the values in containers of containers."""
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, tuple | list):
            pending += value
        else:
            yield value


def _is_code_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and is_code_text(node.value)


def is_code_text(text: str) -> bool:
    """Return True for a text that would do more than compute if a library ran it as a formula."""
    if "(" not in text or is_formula(text):
        return False
    return "__" in text or not _BUILTINS.isdisjoint(_CALLED.findall(text))


_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")


def _evaluate_annotations(analysis: PythonAnalysis, node: ast.Call, _scope: Scope, path: str) -> None:
    """Record that annotations are evaluated: literal ones are checked where they are written, others are hidden."""
    eval_str = next((word.value for word in node.keywords if word.arg == "eval_str"), None)
    always = path.endswith("get_type_hints")
    if always or (eval_str is not None and not (isinstance(eval_str, ast.Constant) and eval_str.value is False)):
        analysis.evaluated[node.lineno] = path


def _generic_alias(analysis: PythonAnalysis, node: ast.Call, scope: Scope, _path: str) -> None:
    """Check the arguments of `types.GenericAlias` and `TypeVar` like those of an annotation."""
    for part in flatten_containers([*node.args[1:], *(word.value for word in node.keywords)]):
        check_annotation(analysis, part, scope)


def _declare_type(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check the types of `TypedDict("T", {...})` as annotations."""
    named = path != "pydantic.TypeAdapter"
    for part in flatten_containers([*node.args[named:], *(word.value for word in node.keywords)]):
        check_annotation(analysis, part, scope)


BY_NAME: dict[str, Handler] = {
    **argument_rules.BY_NAME,
    **dict.fromkeys((f"mpmath.{owner}identify" for owner in ("", "mp.", "fp.", "iv.")), _constants),
    **dict.fromkeys(("sympy.sympify", "sympy.parse_expr", "sympy.S"), _formula),
    **dict.fromkeys(OPTION_CALLS, _options),
    "pandas.eval": _expression,
    **dict.fromkeys(("jinja2.Environment", "jinja2.sandbox.SandboxedEnvironment"), _environment),
    **dict.fromkeys(("jinja2.Template", "jinja2().from_string", "mako.template.Template"), _template),
    **dict.fromkeys(("jinja2.Environment().from_string", "flask.render_template_string"), _template),
    **dict.fromkeys((f"pandas().{name}" for name in TEXT_CODE), _frame_text),
    **dict.fromkeys(("timeit.timeit", "timeit.repeat", "timeit.Timer"), _timeit),
    **dict.fromkeys(("typing.get_type_hints", "inspect.get_annotations", "inspect.signature"), _evaluate_annotations),
    **dict.fromkeys((f"typing_extensions.get_{name}" for name in ("type_hints", "annotations")), _evaluate_annotations),
    "inspect.Signature.from_callable": _evaluate_annotations,
    **dict.fromkeys(("typing.TypedDict", "typing.NamedTuple", "typing_extensions.TypedDict"), _declare_type),
    "pydantic.TypeAdapter": _declare_type,
    "msgspec.defstruct": _declare_type,
    **dict.fromkeys(("types.GenericAlias", "typing.TypeVar", "typing_extensions.TypeVar"), _generic_alias),
}

"""Calls that run a text of theirs as a formula, a query or a template: fine where it is written out and plain."""

import ast
import builtins
import re
from collections.abc import Callable

from qwed.guards._python.annotations import annotated
from qwed.guards._python.attributes import TEXT_CODE
from qwed.guards._python.choices import UNKNOWN
from qwed.guards._python.file_calls import Handler, spread
from qwed.guards._python.look import Look
from qwed.guards._python.scopes import Scope
from qwed.guards._python.tables import words
from qwed.guards.code_words import Danger
from qwed.words import EffectKind

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
    |\[\s*(?!['"]?[\w\s.-]*['"]?\s*\])|\battribute\s*=\s*(?!['"][\w.]+['"]\s*[,)])""",
    re.VERBOSE,
)
"""What may spell an inner name piece by piece, besides the name itself."""


def is_formula(text: str) -> bool:
    """Whether sympy may run the text: arithmetic on names, and nothing else."""
    return _FORMULA.fullmatch(text) is not None and not _BUILTINS.intersection(_WORD.findall(text))


def _is_query(text: str) -> bool:
    return _QUERY_REACHES.search(text) is None


def _is_template(text: str) -> bool:
    return not any(_TAG_REACHES.search(tag) for tag in _TAG.findall(text)) and "<%" not in text


def _formula(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    if not node.args or not all(isinstance(text, str) and is_formula(text) for text in _values(look, node, scope)):
        look.report.danger(Danger.DYNAMIC, path, node.lineno)


def _values(look: Look, node: ast.Call, scope: Scope) -> tuple[object, ...]:
    return tuple(look.folder.possible(node.args[0], scope))


def _expression(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    if not node.args or not all(isinstance(text, str) and _is_query(text) for text in _values(look, node, scope)):
        look.report.danger(Danger.DYNAMIC, path, node.lineno)


def _template(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    if not node.args or not all(isinstance(text, str) and _is_template(text) for text in _values(look, node, scope)):
        look.report.danger(Danger.DYNAMIC, path, node.lineno)


def _frame_text(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """Methods of a data frame that take an expression as text."""
    if node.args and not all(isinstance(text, str) and _is_query(text) for text in _values(look, node, scope)):
        look.report.effect(EffectKind.UNRESOLVED, path.rpartition(".")[2], node.lineno)


def _timed(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """timeit runs text as code; a function of the program's own is judged where it stands."""
    timed = [*node.args[:2], *(word.value for word in node.keywords if word.arg in ("stmt", "setup"))]
    own = [isinstance(each, ast.Lambda) or _is_own_function(look, each, scope) for each in timed]
    if not timed or not all(own) or spread(node):
        look.report.danger(Danger.DYNAMIC, path, node.lineno)


def _is_own_function(look: Look, node: ast.expr, scope: Scope) -> bool:
    return isinstance(node, ast.Name) and node.id in look.program.functions and not look.values.named(node.id, scope)


_NAMING = words("symbols Symbol Function Dummy Wild var IndexedBase MatrixSymbol Idx")
_PRINTING = words("latex pprint init_printing")
ON_FORMULAS = words("subs equals diff integrate series limit coeff collect")


def formulas(look: Look, node: ast.Call, scope: Scope, paths: frozenset[str]) -> None:
    """Every function of sympy, and every method of what it made, runs a text it is given for a formula."""
    if "sympy" not in look.program.roots:
        return
    last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    # What is called where it is made, chosen or taken out of something has no name that could be followed.
    nameless = not isinstance(node.func, ast.Name | ast.Attribute | ast.Lambda)
    ours = _of_sympy(paths) or nameless or (bool(paths & CALLING) and _given_sympy(look, node, scope))
    called = {path.rpartition(".")[2] for path in paths}
    if not (ours and not called & _PRINTING) and last not in ON_FORMULAS:
        return
    accepts = _is_name if ours and called & _NAMING else is_formula
    for part in parts([*node.args, *(word.value for word in node.keywords if word.arg not in _PLAIN_WORDS)]):
        _formula_given(look, part, scope, node, accepts)
    if any(word.arg == "printer" for word in node.keywords) or ("lambdify" in called and _prints_itself(look)):
        look.report.danger(Danger.DYNAMIC, "code that a printer writes for sympy", node.lineno)


def _prints_itself(look: Look) -> bool:
    """Whether some object of the program says what code it is."""
    names = {name.lstrip("_") for name in look.program.methods} | look.program.attributes
    return any(_OWN_PRINTING.fullmatch(name) for name in names)


_OWN_PRINTING = re.compile(r"\w*code|sympystr|sympyrepr")


def index(look: Look, node: ast.Subscript, scope: Scope) -> None:
    """What sympy made runs a text that it is indexed by."""
    if "sympy" in look.program.roots and _of_sympy(look.values.paths(node.value, scope)):
        for part in parts([node.slice]):
            _formula_given(look, part, scope, node)


def kept(look: Look, node: ast.Assign | ast.For, scope: Scope) -> None:
    """What sympy made runs a text that is put into it."""
    if "sympy" not in look.program.roots:
        return
    targets, value = (node.targets, node.value) if isinstance(node, ast.Assign) else ([node.target], node.iter)
    held = [each.value for each in parts([*targets]) if isinstance(each, ast.Subscript)]
    if any(_of_sympy(look.values.paths(each, scope)) for each in held):
        for part in parts([value]):
            _formula_given(look, part, scope, node)


CALLING = words("map filter functools.partial functools.reduce itertools.starmap itertools.accumulate")
"""They call what they are given."""


def _given_sympy(look: Look, node: ast.Call, scope: Scope) -> bool:
    return any(_of_sympy(look.values.paths(part, scope)) for part in node.args)


def _of_sympy(paths: frozenset[str]) -> bool:
    return any(path.partition(".")[0] in ("sympy", "sympy()") for path in paths)


_PLAIN_WORDS = words("modules domain rational method dir cls printer order")
_TYPESET = str.maketrans("", "", "\\'$;?")


def _is_name(text: str) -> bool:
    """What a symbol may be called: its name becomes code again where sympy writes a function or reads a text."""
    return is_formula(text.translate(_TYPESET))


def _options(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """Options of z3, and statements that set them: some name a file that it writes."""
    words_of = [word.arg or "" for word in node.keywords]
    texts = [text for part in node.args for text in look.folder.texts(part, scope)]
    if any(map(names_file, (*words_of, *texts))):
        look.report.effect(EffectKind.WRITE, path, node.lineno)


def names_file(text: str) -> bool:
    """Whether an option of z3 names a file."""
    return _NAMES_FILE.search(text) is not None


_NAMES_FILE = re.compile(r"(?i)file|log(?!ic)|dump|channel|trace|path")
_TAKE_OPTIONS = """
set_param set_option Solver SolverFor SimpleSolver Optimize Fixedpoint Context parse_smt2_string With ParamsRef
"""
OPTION_CALLS = frozenset(
    [f"z3.{name}" for name in _TAKE_OPTIONS.split()] + ["z3().set", "z3().from_string", "z3().set_param"]
)


def parts(nodes: list[ast.expr]) -> list[ast.expr]:
    """The expressions, and those that stand in a list, a tuple or a mapping among them."""
    found: list[ast.expr] = []
    pending = list(nodes)
    while pending:
        here = pending.pop()
        if isinstance(here, ast.List | ast.Tuple | ast.Set):
            pending += here.elts
        elif isinstance(here, ast.Dict):
            pending += [each for each in (*here.keys, *here.values) if each is not None]
        else:
            found.append(here.value if isinstance(here, ast.Starred) else here)
    return found


def _formula_given(
    look: Look, part: ast.expr, scope: Scope, node: ast.expr | ast.stmt, accepts: Callable[[str], bool] = is_formula
) -> None:
    found = look.folder.possible(part, scope)
    told = [text for value in found for text in (value if isinstance(value, tuple) else (value,))]
    unknown = UNKNOWN in told and look.hidden(part, scope)
    if unknown or not all(accepts(text) for text in told if isinstance(text, str)):
        look.report.danger(Danger.DYNAMIC, "text that sympy runs", node.lineno)


def _evaluates(look: Look, node: ast.Call, _scope: Scope, path: str) -> None:
    """Annotations are evaluated: those that are written down are judged where they stand, others nobody sees."""
    asked = next((word.value for word in node.keywords if word.arg == "eval_str"), None)
    always = path == "typing.get_type_hints"
    if always or (asked is not None and not (isinstance(asked, ast.Constant) and asked.value is False)):
        look.evaluated[node.lineno] = path


def _declares(look: Look, node: ast.Call, scope: Scope, _path: str) -> None:
    """`TypedDict("T", {...})`: the types are annotations."""
    for part in parts([*node.args[1:], *(word.value for word in node.keywords)]):
        annotated(look, part, scope)


BY_NAME: dict[str, Handler] = {
    **dict.fromkeys(("sympy.sympify", "sympy.parse_expr", "sympy.S"), _formula),
    **dict.fromkeys(OPTION_CALLS, _options),
    "pandas.eval": _expression,
    **dict.fromkeys(("jinja2.Template", "jinja2().from_string", "mako.template.Template"), _template),
    **dict.fromkeys(("jinja2.Environment().from_string", "flask.render_template_string"), _template),
    **dict.fromkeys((f"pandas().{name}" for name in TEXT_CODE), _frame_text),
    **dict.fromkeys(("timeit.timeit", "timeit.repeat", "timeit.Timer"), _timed),
    **dict.fromkeys(("typing.get_type_hints", "inspect.get_annotations", "inspect.signature"), _evaluates),
    "inspect.Signature.from_callable": _evaluates,
    **dict.fromkeys(("typing.TypedDict", "typing.NamedTuple", "typing_extensions.TypedDict"), _declares),
}

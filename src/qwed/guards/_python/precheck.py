"""Fast pre-check: decide if a program only computes, so that the full check would find nothing.

It checks names by the same tables, independent of their position; everything it cannot decide is left to the full
check.
"""

import ast
import re

from qwed.guards._python.analysis import OBFUSCATORS, has_module_name
from qwed.guards._python.annotations import can_hold_code
from qwed.guards._python.argument_rules import ACTING_KEYWORDS
from qwed.guards._python.attributes import CLASS_DATA, INTERNALS
from qwed.guards._python.calls import ENVIRONMENT_WORDS, KEYWORD_VIOLATIONS
from qwed.guards._python.formats import TEXT_SETTINGS, is_reaching_format
from qwed.guards._python.library_rules import BUILTINS, HARMLESS, KNOWN_PREFIXES, RULES, words
from qwed.guards._python.module_names import is_module
from qwed.guards._python.name_resolution import MAX_PATHS, REACHABLE_MODULES, canonical_path
from qwed.guards._python.precheck_collect import OWN_NAMES, collect_survey
from qwed.guards._python.precheck_model import NeedsFullCheckError, PrecheckScope, Survey
from qwed.guards._python.pure_functions import CONSTANTS, FUNCTIONS
from qwed.guards._python.report import rule_of
from qwed.guards._python.safe_imports import (
    LIBRARY_RISKY_ATTRIBUTES,
    RISKY_ATTRIBUTES,
    RISKY_NAMES,
    SAFE_BUILTINS,
    SafeImport,
    safe_import_of,
)
from qwed.guards._python.string_eval_calls import OPTION_CALLS, is_code_text, is_file_option
from qwed.guards._python.sympy_strings import BoundNames, are_formulas_plain, passes_on_higher_order

MAX_CHARACTERS = 250_000
MAX_BINDINGS = 8_000
MAX_LOOPS = 1_000
MAX_FORMULA_BINDINGS, MAX_FORMULA_LOOPS = 400, 50
"""Limits for programs whose texts are followed to sympy."""
RISKY_KEYWORDS = (
    KEYWORD_VIOLATIONS.keys()
    | ENVIRONMENT_WORDS
    | ACTING_KEYWORDS
    | words("printer these formula field_transformer fromfile_prefix_chars")
)
_TEXT_LIBRARIES = {path.partition(".")[0] for path in CONSTANTS}

_DOTTED_NAME = re.compile(r"([^\W\d]\w*)((?:\.[^\W\d]\w*)*)")

Imports = dict[str, list[SafeImport]]
"""Import bindings of each name."""


def is_plain(tree: ast.Module, length: int) -> bool:
    """Return True if the program only computes; False means that the full check decides."""
    if length > MAX_CHARACTERS:
        return False
    try:
        survey = collect_survey(tree)
        _annotations(survey)
        imports = _imports(survey)
    except NeedsFullCheckError:
        return False
    roots = _roots(survey, imports)
    return (
        _is_small(survey, imports)
        and _are_names_bound(survey)
        and _are_modules_plain(survey, imports)
        and _is_class_data_plain(survey)
        and _are_attributes_plain(survey, imports, roots)
        and _are_texts_plain(survey, imports, roots)
    )


def _imports(survey: Survey) -> Imports:
    bound: Imports = {}
    stars = [module for module, name, _ in survey.imports if name == "*"]
    for module, name, alias in survey.imports:
        if name != "*":
            bound.setdefault(alias or module.partition(".")[0], []).append(_safe_import(module, name, alias))
    if stars:
        _safe_import(stars[0], "", stars[0])
        _bind_star_names(survey, stars, bound)
    return bound


def _safe_import(module: str, name: str, alias: str) -> SafeImport:
    row = safe_import_of(module, name, alias)
    if row is None:
        raise NeedsFullCheckError
    return row


def _bind_star_names(survey: Survey, stars: list[str], bound: Imports) -> None:
    """Treat every unbound name as a name of the star-imported library."""
    unbound = set().union(*(_open_names(scope) for scope in survey.scopes))
    # A builtin name keeps its meaning, so the full check must decide.
    if len(stars) > 1 or not unbound.isdisjoint(BUILTINS):
        raise NeedsFullCheckError
    ruled = {name for scope in survey.scopes for name in scope.loaded | scope.called if f"{stars[0]}.{name}" in RULES}
    for name in unbound | ruled:
        bound.setdefault(name, []).append(_safe_import(stars[0], name, name))
    survey.scopes[0].defined |= unbound


def _annotations(survey: Survey) -> None:
    """Add the names and texts of annotations to the survey; they must be plain."""
    if not survey.annotations:
        return
    values = set().union(*(scope.values for scope in survey.scopes))
    values.update(name for name, _ in survey.results)
    bound_names = survey.fields | values
    for annotation, scope in survey.annotations:
        pending: list[ast.expr] = [annotation]
        for node in pending:
            if type(node) is ast.Name:
                _add_name(node.id, values, scope.loaded)
                survey.bare.add(node.id)
            elif type(node) is ast.Constant:
                _annotation_text(survey, node.value, scope)
            elif type(node) is ast.Attribute:
                _add_name(node.attr, bound_names, survey.attributes)
                pending.append(node.value)
            else:
                pending += _inside(node)


def _add_name(name: str, values: set[str], names: set[str]) -> None:
    if name in values or name in OWN_NAMES or name[0] == "_":
        raise NeedsFullCheckError
    names.add(name)


def _annotation_text(survey: Survey, value: object, scope: PrecheckScope) -> None:
    """Add the names in the text of an annotation, which libraries look up."""
    if isinstance(value, str):
        if can_hold_code(value):
            raise NeedsFullCheckError
        survey.texts.append(value)
        for first, rest in _DOTTED_NAME.findall(value):
            scope.loaded.add(first)
            if rest:
                survey.uses.add((first, rest[1:]))
                survey.attributes.update(rest[1:].split("."))
            else:
                survey.bare.add(first)


def _inside(node: ast.expr) -> list[ast.expr]:
    if type(node) is ast.Subscript:
        return [node.value, node.slice]
    if type(node) is ast.Tuple or type(node) is ast.List:
        return node.elts
    if type(node) is ast.BinOp and type(node.op) is ast.BitOr:
        return [node.left, node.right]
    raise NeedsFullCheckError


def _is_small(survey: Survey, imports: Imports) -> bool:
    """Return True if the full check would stay within its limits."""
    attribute_count = len(survey.attributes) + len(survey.methods)
    growing = sum(row.path in KNOWN_PREFIXES for rows in imports.values() for row in rows)
    growing += sum(len(SAFE_BUILTINS & scope.loaded) for scope in survey.scopes)
    bound = len(survey.bindings) + survey.parameters
    meanings = len(survey.imports) + growing * attribute_count
    follows = "sympy" in _roots(survey, imports)
    bindings, loops = (MAX_FORMULA_BINDINGS, MAX_FORMULA_LOOPS) if follows else (MAX_BINDINGS, MAX_LOOPS)
    return bound <= bindings and survey.loops <= loops and meanings < MAX_PATHS


def _are_names_bound(survey: Survey) -> bool:
    """Return True if every used name is bound and none is risky."""
    return not any(_open_names(scope) for scope in survey.scopes)


def _is_class_data_plain(survey: Survey) -> bool:
    """Return True if no class states by hand how its objects are built or matched."""
    bound = set().union(*(scope.values | scope.defined for scope in survey.scopes))
    return (
        INTERNALS.isdisjoint(bound)
        and CLASS_DATA.isdisjoint(bound | survey.attributes | survey.methods)
        and CLASS_DATA.isdisjoint(survey.texts)
    )


def _are_modules_plain(survey: Survey, imports: Imports) -> bool:
    """Return True if imported names are only used for attributes that compute, and modules never as values."""
    modules = [(name, row.path) for name, rows in imports.items() for row in rows if is_module(row.path)]
    if len(dict(modules)) < len(modules):
        return False
    if any(name in survey.bare or name in survey.assigned_owners for name, _ in modules):
        return False
    return all(
        rule_of(canonical_path(f"{row.path}.{used}")) == HARMLESS
        for name, used in survey.uses
        for row in imports.get(name, ())
    )


def _open_names(scope: PrecheckScope) -> set[str]:
    """Return the unbound names, and those that are risky even if bound."""
    risky = (scope.loaded & RISKY_NAMES) | (scope.called & RISKY_NAMES)
    return (scope.unbound() - SAFE_BUILTINS) | risky


def _are_attributes_plain(survey: Survey, imports: Imports, roots: set[str]) -> bool:
    attributes = survey.attributes | survey.methods
    if not attributes.isdisjoint(RISKY_ATTRIBUTES) or not survey.words.isdisjoint(RISKY_KEYWORDS):
        return False
    if any(not attributes.isdisjoint(LIBRARY_RISKY_ATTRIBUTES.get(root, ())) for root in roots):
        return False
    return not survey.own or _is_self_plain(survey, imports, attributes)


def _roots(survey: Survey, imports: Imports) -> set[str]:
    """Return the used libraries, by every name they have."""
    roots = {row.root for rows in imports.values() for row in rows}
    return roots.union(module.partition(".")[0] for module, _, _ in survey.imports)


def _is_self_plain(survey: Survey, imports: Imports, attributes: set[str]) -> bool:
    """Return True if `self` is always the object itself, so that its private attributes belong to the program."""
    if any(name.lstrip("_") in REACHABLE_MODULES for name in attributes):
        return False
    bound = survey.words.union(imports, *(scope.values for scope in survey.scopes))
    return bound.isdisjoint(OWN_NAMES)


def _are_texts_plain(survey: Survey, imports: Imports, roots: set[str]) -> bool:
    if not TEXT_SETTINGS.keys().isdisjoint(survey.texts):
        return False
    if any(text in INTERNALS or has_module_name(text) or is_reaching_format(text) for text in survey.texts):
        return False
    if "z3" in roots and not _are_options_plain(survey, imports):
        return False
    return "sympy" not in roots or _are_formulas_safe(survey, imports, roots)


def _are_options_plain(survey: Survey, imports: Imports) -> bool:
    option_names = [name for name, rows in imports.items() if any(row.path in OPTION_CALLS for row in rows)]
    return _are_z3_options_plain(survey, frozenset(option_names))


def _are_formulas_safe(survey: Survey, imports: Imports, roots: set[str]) -> bool:
    called = survey.methods.union(*(scope.called for scope in survey.scopes))
    paths = {name: {row.path for row in rows} for name, rows in imports.items()}
    last = {path.rpartition(".")[2] for bound_paths in paths.values() for path in bound_paths}
    if any(map(is_code_text, survey.texts)):
        return False
    if "lambdify" in called | survey.attributes | last:
        return False
    if (
        not called.isdisjoint(OBFUSCATORS)
        or not roots.isdisjoint(_TEXT_LIBRARIES)
        or passes_on_higher_order(survey, paths)
    ):
        return False
    own = set().union(*(scope.values for scope in survey.scopes))
    folded = {name for name, bound_paths in paths.items() if not bound_paths.isdisjoint(FUNCTIONS)}
    sympy = frozenset(name for name, rows in imports.items() if any(row.root == "sympy" for row in rows))
    return are_formulas_plain(survey, BoundNames(frozenset(imports.keys() - own - folded), sympy, frozenset(own)))


_OPTION_CALL_NAMES = frozenset(path.rpartition(".")[2] for path in OPTION_CALLS)
"""Names of the z3 functions that take options."""


def _are_z3_options_plain(survey: Survey, names: frozenset[str]) -> bool:
    """Return True if the options passed to z3 are literals and name no file; `names` are the imported z3 functions that
    take options."""
    if not _OPTION_CALL_NAMES.isdisjoint(survey.attributes) or any(
        not names.isdisjoint(scope.loaded) for scope in survey.scopes
    ):
        return False
    return all(_has_plain_options(call) for call in survey.calls if _takes_options(call.func, names))


def _takes_options(func: ast.expr, names: frozenset[str]) -> bool:
    if isinstance(func, ast.Name):
        return func.id in names
    return isinstance(func, ast.Attribute) and func.attr in _OPTION_CALL_NAMES


def _has_plain_options(call: ast.Call) -> bool:
    options = [word.arg or "" for word in call.keywords]
    for part in call.args:
        if not isinstance(part, ast.Constant):
            return False
        options += [part.value] if isinstance(part.value, str) else []
    return not any(map(is_file_option, options))
